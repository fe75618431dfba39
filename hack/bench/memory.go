package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/controlplane"
)

const (
	memoryPart = "Memory of the manager (RSS)"
	// mostRSS is the goal of an idle manager, in MiB.
	mostRSS = 120.0
)

// idling is a manager whose memory is measured from stage to stage.
type idling struct {
	*bench

	cluster   *controlplane.Cluster
	resources *resources
	manager   *manager
	fail      context.CancelCauseFunc // Ends the measurement when something of it ends.
	rows      []report.Row
}

// measureMemory measures an idle manager: without custom resources, with many in
// its cache, after a few runs, and when it has looked at all of them once.
func measureMemory(parent context.Context, b *bench) (rows []report.Row, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	m := &idling{bench: b, fail: cancel}
	defer func() { err = errors.Join(err, m.takeDown()) }()
	for _, stage := range []func(context.Context) error{m.boot, m.empty, m.cached, m.ran, m.refused} {
		if err := stage(ctx); err != nil {
			return m.rows, m.explain(parent, ctx, err)
		}
	}
	return m.rows, nil
}

// explain adds to a stage's error why it came to it, unless the measurement was
// interrupted.
func (m *idling) explain(parent, ctx context.Context, err error) error {
	switch {
	case parent.Err() != nil:
		return err
	case ctx.Err() != nil:
		return errors.Join(err, context.Cause(ctx)) // With the end of the log of what ended.
	case m.manager != nil:
		return fmt.Errorf("%w; of the manager: %s", err, m.manager.program.Quote())
	default:
		return err
	}
}

func (m *idling) boot(ctx context.Context) (err error) {
	m.say("memory: booting a cluster; about 10 s")
	m.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(m.root, "bin", "controlplane")})
	if err != nil {
		return err
	}
	go m.watch(ctx, m.cluster.Failed())
	m.resources, err = newResources(ctx, m.cluster.Config, filepath.Join(m.project(), "crd.yaml"))
	return err
}

// empty is the manager with nothing to do, which is what the others compare with.
func (m *idling) empty(ctx context.Context) error {
	m.say("memory: starting the manager; about 15 s")
	if err := m.start(ctx); err != nil {
		return err
	}
	if err := m.note(ctx, report.Row{Name: "idle, no custom resources"}); err != nil {
		return err
	}
	return m.manager.stop()
}

// cached is a manager that starts when the resources are there, as after an
// upgrade: listing them at once costs more than seeing them come.
func (m *idling) cached(ctx context.Context) error {
	n := m.settings.resources
	m.say("memory: creating %d custom resources of 2 KiB and starting the manager again; about 20 s", n)
	if err := m.resources.create(ctx, n, m.settings.runs); err != nil {
		return err
	}
	if err := m.start(ctx); err != nil {
		return err
	}
	return m.note(ctx, report.Row{
		Name: fmt.Sprintf("idle, %d custom resources", n),
		Goal: report.AtMost(mostRSS),
		Note: "of 2 KiB each; cached but not run, because the watch's selector does not match them",
	})
}

// ran is the same manager after real runs.
func (m *idling) ran(ctx context.Context) error {
	n := m.settings.runs
	m.say("memory: %d of them run; about 20 s", n)
	if err := m.resources.label(ctx, 0, n); err != nil {
		return err
	}
	if err := m.resources.await(ctx, "Successful", n); err != nil {
		return err
	}
	return m.note(ctx, report.Row{
		Name: fmt.Sprintf("idle, after %d real runs", n),
		Goal: report.AtMost(mostRSS),
		Note: "the same manager, the others still not run",
	})
}

// refused is the same manager when each resource has been through the queue and
// has its status. No Ansible is started: their specs have a name that is refused.
func (m *idling) refused(ctx context.Context) error {
	n, runs := m.settings.resources, m.settings.runs
	m.say("memory: the manager looks at all %d of them; about 30 s", n)
	if err := m.resources.label(ctx, runs, n); err != nil {
		return err
	}
	if err := m.resources.await(ctx, "Failure", n-runs); err != nil {
		return err
	}
	err := m.note(ctx, report.Row{
		Name: fmt.Sprintf("idle, all %d reconciled once", n),
		Goal: report.AtMost(mostRSS),
		Note: "the others refused before Ansible (InvalidSpec), to spare as many runs; with queue, status, Event and metrics of each",
	})
	if err != nil {
		return err
	}
	peak, err := m.manager.memory("VmHWM")
	if err != nil {
		return err
	}
	row := report.Samples{peak}.Row("MiB")
	row.Part, row.Name = memoryPart, "the most it ever had since its start"
	m.rows = append(m.rows, row)
	return nil
}

func (m *idling) start(ctx context.Context) (err error) {
	m.manager, err = startManager(m.bench, m.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	go m.watch(ctx, m.manager.group.Failed())
	return m.manager.ready(ctx)
}

// note completes the row with the memory of the manager once that is steady.
func (m *idling) note(ctx context.Context, row report.Row) error {
	samples, err := m.manager.idle(ctx)
	if err != nil {
		return err
	}
	found := samples.Row("MiB")
	found.Part, found.Name, found.Goal, found.Note = memoryPart, row.Name, row.Goal, row.Note
	m.rows = append(m.rows, found)
	return nil
}

// watch ends the measurement when a process ends that should still run.
func (m *idling) watch(ctx context.Context, failed <-chan error) {
	select {
	case err := <-failed:
		m.fail(err)
	case <-ctx.Done():
	}
}

func (m *idling) takeDown() error {
	var errs []error
	if m.manager != nil {
		errs = append(errs, m.manager.stop())
	}
	if m.cluster != nil {
		errs = append(errs, m.cluster.Stop())
	}
	return errors.Join(errs...)
}
