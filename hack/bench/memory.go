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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
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

// measureMemory measures an idle manager: without custom resources, with many in
// its cache, after a few runs, and when it has looked at all of them once.
func measureMemory(ctx context.Context, s *session) error {
	n, runs := s.settings.resources, s.settings.runs
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("bench-%05d", i)
	}
	for _, stage := range []struct {
		about string
		reach func() error
		row   report.Row
	}{
		{
			about: "booting a cluster, and a manager with nothing to do; about 25 s",
			reach: func() error {
				if err := s.boot(ctx, harness.Definition(benchKind())); err != nil {
					return err
				}
				return s.start(ctx, "empty")
			},
			row: report.Row{Name: "idle, no custom resources"},
		},
		{
			// As after an upgrade: listing them at once costs more than seeing them come.
			about: fmt.Sprintf("creating %d custom resources of 2 KiB, and starting a manager; about 20 s", n),
			reach: func() error {
				err := errors.Join(s.dismiss(), each(ctx, names, func(ctx context.Context, name string) error {
					return s.client.Create(ctx, resource(name, slices.Contains(names[:runs], name)))
				}))
				if err != nil {
					return fmt.Errorf("create the custom resources: %w", err)
				}
				return s.start(ctx, "many")
			},
			row: report.Row{
				Name: fmt.Sprintf("idle, %d custom resources", n), Goal: report.AtMost(mostRSS),
				Note: "of 2 KiB each; cached but not run, because the watch's selector does not match them",
			},
		},
		{
			about: fmt.Sprintf("%d of them run; about 20 s", runs),
			reach: func() error { return s.release(ctx, names[:runs], "Successful") },
			row:   report.Row{Name: fmt.Sprintf("idle, after %d real runs", runs), Goal: report.AtMost(mostRSS), Note: "the same manager, the others still not run"},
		},
		{
			// No Ansible is started: their specs have a name that is refused.
			about: fmt.Sprintf("the manager looks at all %d of them; about 30 s", n),
			reach: func() error { return s.release(ctx, names[runs:], "Failure") },
			row: report.Row{
				Name: fmt.Sprintf("idle, all %d reconciled once", n), Goal: report.AtMost(mostRSS),
				Note: "the others refused before Ansible (InvalidSpec), to spare as many runs; with queue, status, Event and metrics of each",
			},
		},
	} {
		s.say("memory: %s", stage.about)
		if err := stage.reach(); err != nil {
			return err
		}
		if err := s.idle(ctx, stage.row); err != nil {
			return err
		}
	}
	return s.peak("the most it ever had since its start")
}

// start starts a manager of the project.
func (s *session) start(ctx context.Context, home string) error {
	o := s.options(home)
	o.Args = []string{"--health-probe-bind-address=127.0.0.1:0", "--user-metrics-bind-address=0", "--max-backoff=5m"}
	manager, err := harness.Start(o)
	if err != nil {
		return err
	}
	s.keep(manager)
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return manager.Ready(ctx, benchKind().Kind)
}

// release makes the watch's selector match the resources, and waits until the condition
// is True on so many.
func (s *session) release(ctx context.Context, names []string, condition string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": selected()}})
	if err != nil {
		return err
	}
	err = each(ctx, names, func(ctx context.Context, name string) error {
		return s.client.Patch(ctx, harness.Custom(benchKind(), namespace, name, nil), client.RawPatch(types.MergePatchType, patch))
	})
	if err != nil {
		return fmt.Errorf("label the custom resources: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reportedLimit)
	defer cancel()
	return s.until(ctx, fmt.Sprintf("%d resources have condition %s", len(names), condition), time.Second, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(benchKind().WithVersion("v1"))
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
