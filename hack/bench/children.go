package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/crowd"
)

const (
	childrenPart = "Children"
	// Goals of a manager before many children: until it watches them, its memory in
	// MiB, and until a deleted one brings its CR back.
	mostUntilLive = 20.0
	mostForMany   = 250.0
	mostUntilRun  = 1.0
	// childrenOfOne is how many children a custom resource has.
	childrenOfOne = 10
)

// looking is a manager that looks after the children of many custom resources.
type looking struct {
	*bench

	cluster *controlplane.Cluster
	crowd   crowd.Crowd
	manager *crowd.Manager
	rows    []report.Row
}

// measureChildren measures a manager that starts before many children, and how soon it
// takes note of drift. Its runs are no Ansible.
func measureChildren(ctx context.Context, b *bench) (rows []report.Row, err error) {
	l := &looking{bench: b}
	defer func() { err = errors.Join(err, l.takeDown()) }()
	for _, stage := range []func(context.Context) error{l.boot, l.start, l.ran, l.drift} {
		if err := stage(ctx); err != nil {
			return l.rows, err
		}
	}
	return l.rows, nil
}

func (l *looking) boot(ctx context.Context) (err error) {
	n := l.settings.children
	l.say("children: booting a cluster, with %d children of 1 KiB; about 40 s", n)
	if l.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(l.root, "bin", "controlplane")}); err != nil {
		return err
	}
	r, err := newResources(ctx, l.cluster.Config, filepath.Join(l.project(), "crd.yaml"))
	if err != nil {
		return err
	}
	l.crowd = crowd.Crowd{
		Client: r.client, Kind: benchKind().GroupKind(), Namespace: namespace, Labels: map[string]string{"bench.ensign.io/run": "yes"},
		CRs: max(1, n/childrenOfOne), Children: min(n, childrenOfOne),
	}
	return l.crowd.Create(ctx)
}

func (l *looking) start(ctx context.Context) (err error) {
	l.say("children: starting the manager; about 5 s")
	l.manager, err = l.crowd.Start(ctx, harness.Options{
		Binary: filepath.Join(l.root, "bin", "manager"), Project: l.project(), Kubeconfig: l.cluster.Kubeconfig, Home: filepath.Join(l.dir, "many"),
	})
	if err != nil {
		return err
	}
	l.add(report.Samples{l.manager.Live.Seconds()}.Row("s"), "from the manager's start until all of them are watched", report.AtMost(mostUntilLive),
		fmt.Sprintf("%d children of %d custom resources", l.crowd.CRs*l.crowd.Children, l.crowd.CRs))
	return nil
}

// ran measures the memory of a manager that has been through all custom resources.
func (l *looking) ran(ctx context.Context) error {
	l.say("children: a run for each of %d custom resources; about 60 s", l.crowd.CRs)
	if err := l.manager.Ran(ctx); err != nil {
		return err
	}
	var peak float64
	samples, err := settled(ctx, func() (float64, error) {
		memory, err := harness.MemoryOf(l.manager.PID())
		peak = float64(memory.Peak) / (1 << 20)
		return float64(memory.Resident) / (1 << 20), err
	})
	if err != nil {
		return err
	}
	l.add(samples.Row("MiB"), "memory (RSS) after a run for each custom resource", report.AtMost(mostForMany), "runs that do nothing and succeed, by a stub of ansible-runner")
	l.add(report.Samples{peak}.Row("MiB"), "the most it ever had", nil, "")
	return nil
}

// drift deletes children, one after another.
func (l *looking) drift(ctx context.Context) error {
	times := min(2*l.settings.repeats, l.crowd.CRs)
	l.say("children: deleting %d of them, one after another; about 2 s", times)
	var took report.Samples
	for i := range times {
		d, err := l.manager.Drift(ctx, i)
		if err != nil {
			return err
		}
		took = append(took, d.Seconds())
	}
	row := took.Row("s")
	row.Value = row.High // Each of them is to be noticed in time.
	l.add(row, "from a child's deletion to the start of the run", report.AtMost(mostUntilRun), fmt.Sprintf("the longest of %d", times))
	return nil
}

func (l *looking) add(row report.Row, name string, goal *report.Goal, note string) {
	row.Part, row.Name, row.Goal, row.Note = childrenPart, name, goal, note
	l.rows = append(l.rows, row)
}

func (l *looking) takeDown() error {
	var errs []error
	if l.manager != nil {
		errs = append(errs, l.manager.Stop())
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.Stop())
	}
	return errors.Join(errs...)
}
