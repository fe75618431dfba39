package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/faults/apiproxy"
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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // Far beyond what it takes.
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

// releasePeriod is the period of a chart's watch where none is given, releasePeriods how many
// are measured.
const releasePeriod, releasePeriods = time.Minute, 2

// measureReleases measures a manager at rest that keeps many releases of the chart of
// examples/hello, each of two Deployments and two Services.
func measureReleases(ctx context.Context, s *session) error {
	n, hello := s.settings.releases, schema.GroupKind{Group: "demo.example.com", Kind: "Hello"}
	s.say("releases: booting a cluster; about 20 s")
	if err := s.boot(ctx, []schema.GroupKind{hello}); err != nil {
		return err
	}
	proxy, err := apiproxy.Start(s.cluster.Config)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, proxy.Close)
	o, err := s.stubbed("releases")
	o.Project, o.Kubeconfig = filepath.Join(s.root, "examples", "hello"), filepath.Join(s.dir, "releases.kubeconfig")
	if err := errors.Join(err, proxy.WriteKubeconfig(o.Kubeconfig)); err != nil {
		return err
	}
	if err := s.start(ctx, o, hello.Kind); err != nil {
		return err
	}
	s.say("releases: installing %d; about %d s", n, n)
	err = each(ctx, names("release", n), func(ctx context.Context, name string) error {
		return s.client.Create(ctx, harness.Custom(hello, namespace, name, map[string]any{"replicaCount": int64(0)})) // Pods are no part of it.
	})
	if err != nil {
		return fmt.Errorf("create the custom resources: %w", err)
	}
	err = s.idle(ctx, s.logged(ctx, "Installed release", n, seldom), report.Row{
		Name: fmt.Sprintf("memory (RSS) with %d releases", n), Goal: report.AtMost(mostRSS),
	})
	if err != nil {
		return err
	}
	return s.restWithReleases(ctx, proxy, float64(n))
}

// restWithReleases adds what periods without a change cost. A write is an error. The goal of
// reads: the CR, the revisions, and each object, which the API proxy reads too before a dry run.
func (s *session) restWithReleases(ctx context.Context, proxy *apiproxy.Proxy, n float64) error {
	s.say("releases: %d periods of %s", releasePeriods, releasePeriod)
	var cpu, reads, dryRuns []float64
	for range releasePeriods {
		from := len(proxy.Journal())
		before, err := treeTime(s.manager.PID())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(releasePeriod): // It is what is measured.
		}
		after, afterErr := treeTime(s.manager.PID())
		if err := errors.Join(err, afterErr); err != nil {
			return err
		}
		var read, dryRun float64 // requests; watches are none
		for _, request := range proxy.Journal()[from:] {
			switch {
			case request.Write() && len(request.Query["dryRun"]) > 0:
				dryRun++
			case request.Write():
				return fmt.Errorf("a write in a period without a change: %+v", request)
			case request.Verb == "get" || request.Verb == "list":
				read++
			}
		}
		cpu, reads, dryRuns = append(cpu, milliseconds(after-before)/n), append(reads, read/n), append(dryRuns, dryRun/n)
	}
	const note = "of 1 min, without a change and without a write; a release has four objects"
	s.add(report.Row{Name: "CPU for each release and period", Unit: "ms", Goal: report.AtMost(50), Note: note}, cpu...)
	s.add(report.Row{Name: "reads for each release and period", Goal: report.AtMost(13), Note: note}, reads...)
	s.add(report.Row{Name: "dry runs for each release and period", Goal: report.AtMost(5), Note: note}, dryRuns...)
	return nil
}

// idle adds a row with the resident memory of a manager, which what came before has brought
// to rest, once that is steady: when 5 s of samples lie within 1 %. A Go program gives memory
// back bit by bit, so that the wait has an end where it never is.
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
