package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/trial"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// mostRSS is the goal of an idle manager, in MiB.
	mostRSS = 120.0
	// resourceFields make a custom resource 2 KiB, as it is sent.
	resourceFields = 42
	// readyLimit and reportedLimit are far beyond what it takes.
	readyLimit    = time.Minute
	reportedLimit = 5 * time.Minute
)

// idling is a manager whose memory is measured from stage to stage.
type idling struct {
	*session

	// runnable are the custom resources that can be run; the others are refused.
	runnable, others []string
}

// measureMemory measures an idle manager: without custom resources, with many in
// its cache, after a few runs, and when it has looked at all of them once.
func measureMemory(ctx context.Context, s *session) error {
	names := make([]string, s.settings.resources)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%05d", i)
	}
	m := &idling{s, names[:s.settings.runs], names[s.settings.runs:]}
	for _, stage := range []func(context.Context) error{m.empty, m.cached, m.ran, m.refused} {
		if err := stage(ctx); err != nil {
			return err
		}
	}
	return nil
}

// empty is the manager with nothing to do, which is what the others compare with.
func (m *idling) empty(ctx context.Context) error {
	m.say("memory: booting a cluster; about 10 s")
	if err := m.boot(ctx, harness.Definition(benchKind())); err != nil {
		return err
	}
	if err := m.start(ctx, "empty"); err != nil {
		return err
	}
	if err := m.idle(ctx, report.Row{Name: "idle, no custom resources"}); err != nil {
		return err
	}
	return m.dismiss()
}

// cached is a manager that starts when the resources are there, as after an
// upgrade: listing them at once costs more than seeing them come.
func (m *idling) cached(ctx context.Context) error {
	n := m.settings.resources
	m.say("memory: creating %d custom resources of 2 KiB; about 5 s", n)
	err := errors.Join(
		trial.Each(ctx, m.runnable, func(ctx context.Context, name string) error { return m.client.Create(ctx, resource(name, true)) }),
		trial.Each(ctx, m.others, func(ctx context.Context, name string) error { return m.client.Create(ctx, resource(name, false)) }))
	if err != nil {
		return fmt.Errorf("create the custom resources: %w", err)
	}
	if err := m.start(ctx, "many"); err != nil {
		return err
	}
	return m.idle(ctx, report.Row{
		Name: fmt.Sprintf("idle, %d custom resources", n), Goal: report.AtMost(mostRSS),
		Note: "of 2 KiB each; cached but not run, because the watch's selector does not match them",
	})
}

// ran is the same manager after real runs.
func (m *idling) ran(ctx context.Context) error {
	m.say("memory: %d of them run; about 20 s", len(m.runnable))
	if err := m.release(ctx, m.runnable, "Successful"); err != nil {
		return err
	}
	return m.idle(ctx, report.Row{
		Name: fmt.Sprintf("idle, after %d real runs", len(m.runnable)), Goal: report.AtMost(mostRSS), Note: "the same manager, the others still not run",
	})
}

// refused is the same manager when each resource has been through the queue and
// has its status. No Ansible is started: their specs have a name that is refused.
func (m *idling) refused(ctx context.Context) error {
	n := m.settings.resources
	m.say("memory: the manager looks at all %d of them; about 30 s", n)
	if err := m.release(ctx, m.others, "Failure"); err != nil {
		return err
	}
	err := m.idle(ctx, report.Row{
		Name: fmt.Sprintf("idle, all %d reconciled once", n), Goal: report.AtMost(mostRSS),
		Note: "the others refused before Ansible (InvalidSpec), to spare as many runs; with queue, status, Event and metrics of each",
	})
	if err != nil {
		return err
	}
	memory, err := harness.MemoryOf(m.manager.PID())
	m.add(report.Row{Name: "the most it ever had since its start", Unit: "MiB"}, mebibytes(memory.Peak))
	return err
}

func (m *idling) start(ctx context.Context, home string) error {
	m.say("memory: starting the manager; about 15 s")
	o := m.options(home)
	o.Args = []string{"--health-probe-bind-address=127.0.0.1:0", "--user-metrics-bind-address=0", "--max-backoff=5m"}
	manager, err := harness.Start(o)
	if err != nil {
		return err
	}
	m.keep(manager)
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return manager.Ready(ctx, benchKind().Kind)
}

// release makes the watch's selector match the resources, and waits until the condition
// is True on so many.
func (m *idling) release(ctx context.Context, names []string, condition string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": selected()}})
	if err != nil {
		return err
	}
	err = trial.Each(ctx, names, func(ctx context.Context, name string) error {
		return m.client.Patch(ctx, harness.Custom(benchKind(), namespace, name, nil), client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("label the custom resources: %w", err)
	}
	reported := 0
	err = wait.PollUntilContextTimeout(ctx, time.Second, reportedLimit, true, func(ctx context.Context) (bool, error) {
		if code := m.manager.ExitCode(); code >= 0 {
			return false, fmt.Errorf("the manager has ended with %d", code)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(benchKind().WithVersion("v1"))
		err := m.client.List(ctx, list)
		reported = 0
		for i := range list.Items {
			if harness.ConditionOf(&list.Items[i], condition).Status == "True" {
				reported++
			}
		}
		return reported == len(names), err
	})
	if err != nil {
		return fmt.Errorf("wait for condition %s on %d resources, %d have it: %w", condition, len(names), reported, err)
	}
	return nil
}

// resource is one of many fields. One that can't be run has a variable that no custom
// resource may set.
func resource(name string, runnable bool) *unstructured.Unstructured {
	settings := map[string]any{}
	for i := range resourceFields {
		settings[fmt.Sprintf("field%02d", i)] = strings.Repeat("x", 32)
	}
	spec := map[string]any{"size": int64(3), "benchSettings": settings}
	if !runnable {
		spec["ansible_connection"] = "local"
	}
	return harness.Custom(benchKind(), namespace, name, spec)
}
