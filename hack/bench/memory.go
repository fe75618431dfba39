package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness"
)

// mostRSS is the goal of an idle manager, in MiB.
const mostRSS = 120.0

// measureMemory measures an idle manager: without custom resources, with many in
// its cache, after a few runs, and when it has looked at all of them once.
func measureMemory(ctx context.Context, s *session) error {
	n, runs := s.settings.resources, s.settings.runs
	all := names("bench", n)
	start := func(home string) error {
		return s.start(ctx, s.options(home, "--health-probe-bind-address=127.0.0.1:0", "--user-metrics-bind-address=0", "--max-backoff=5m"), "Bench")
	}
	s.say("memory: booting a cluster, and a manager with nothing to do; about 25 s")
	if err := s.boot(ctx, []schema.GroupKind{benchKind("Bench")}); err != nil {
		return err
	}
	if err := s.idle(ctx, start("empty"), report.Row{Name: "idle, no custom resources"}); err != nil {
		return err
	}
	// As after an upgrade: listing them at once costs more than seeing them come.
	s.say("memory: creating %d custom resources of 2 KiB, and starting a manager; about 20 s", n)
	err := errors.Join(s.dismiss(), each(ctx, all, func(ctx context.Context, name string) error {
		return s.client.Create(ctx, resource(name, slices.Contains(all[:runs], name)))
	}))
	if err != nil {
		return fmt.Errorf("create the custom resources: %w", err)
	}
	err = s.idle(ctx, start("many"), report.Row{
		Name: fmt.Sprintf("idle, %d custom resources", n), Goal: report.AtMost(mostRSS),
		Note: "of 2 KiB each; cached but not run, because the watch's selector does not match them",
	})
	if err != nil {
		return err
	}
	s.say("memory: %d of them run; about 20 s", runs)
	err = s.idle(ctx, s.release(ctx, all[:runs], "Successful"), report.Row{
		Name: fmt.Sprintf("idle, after %d real runs", runs), Goal: report.AtMost(mostRSS), Note: "the same manager, the others still not run",
	})
	if err != nil {
		return err
	}
	// No Ansible is started: their specs have a name that is refused.
	s.say("memory: the manager looks at all %d of them; about 30 s", n)
	err = s.idle(ctx, s.release(ctx, all[runs:], "Failure"), report.Row{
		Name: fmt.Sprintf("idle, all %d reconciled once", n), Goal: report.AtMost(mostRSS),
		Note: "the others refused before Ansible (InvalidSpec), to spare as many runs; with queue, status, Event and metrics of each",
	})
	if err != nil {
		return err
	}
	return s.peak("the most it ever had since its start")
}

// release makes the watch's selector match the resources, and waits until the condition
// is True on so many.
func (s *session) release(ctx context.Context, names []string, condition string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": selected()}})
	if err != nil {
		return err
	}
	err = each(ctx, names, func(ctx context.Context, name string) error {
		return s.client.Patch(ctx, harness.Custom(benchKind("Bench"), namespace, name, nil), client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("label the custom resources: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // Far beyond the usual time.
	defer cancel()
	return s.until(ctx, fmt.Sprintf("%d resources have condition %s", len(names), condition), time.Second, func(ctx context.Context) (bool, error) {
		list := listOf(benchKind("Bench"))
		err := s.client.List(ctx, list)
		reported := 0
		for i := range list.Items {
			if harness.ConditionOf(&list.Items[i], condition).Status == "True" {
				reported++
			}
		}
		return reported == len(names), err
	})
}

// resource is one of 2 KiB, as it is sent. One that can't be run has a variable that no
// custom resource may set.
func resource(name string, runnable bool) *unstructured.Unstructured {
	settings := map[string]any{}
	for i := range 42 {
		settings[fmt.Sprintf("field%02d", i)] = strings.Repeat("x", 32)
	}
	spec := map[string]any{"size": int64(3), "benchSettings": settings}
	if !runnable {
		spec["ansible_connection"] = "local"
	}
	return harness.Custom(benchKind("Bench"), namespace, name, spec)
}

// idle adds a row with the resident memory of a manager at rest, once that is steady: when 5 s of
// samples lie within 1 %. before is the error of the work that has brought it to rest. A Go program
// gives memory back bit by bit, so that the wait has an end where it never is steady.
func (s *session) idle(ctx context.Context, before error, row report.Row) error {
	if before != nil {
		return before
	}
	var samples []float64
	err := wait.PollUntilContextTimeout(ctx, seldom, 30*time.Second, true, func(context.Context) (bool, error) {
		memory, err := harness.MemoryOf(s.manager.PID())
		samples = append(samples, mebibytes(memory.Resident))
		samples = samples[max(0, len(samples)-10):]
		return len(samples) == 10 && slices.Min(samples) >= 0.99*slices.Max(samples), err
	})
	if err != nil && (ctx.Err() != nil || !wait.Interrupted(err)) {
		return err
	}
	row.Unit = "MiB"
	s.add(row, samples...)
	return nil
}

// peak adds a row with the most memory that the manager ever had.
func (s *session) peak(name string) error {
	memory, err := harness.MemoryOf(s.manager.PID())
	s.add(report.Row{Name: name, Unit: "MiB"}, mebibytes(memory.Peak))
	return err
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
