package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

const (
	// loadTimeout is how long the resources of a load are waited for: ten times as long
	// as it should take. How long it took is for the caller to judge.
	loadTimeout = 15 * time.Minute
	// idleTime is how long a manager is watched that has nothing to do.
	idleTime = 15 * time.Second
	// creators is how many resources are created at a time.
	creators = 16
)

// Loaded is what came out of many resources at once.
type Loaded struct {
	// Took is the time from when the manager watched until the last result stood in
	// its status.
	Took time.Duration
	// Runs are all runs; Writes and Events the most of any resource.
	Runs, Writes, Events int
	// RunsAfter and WritesAfter are those after a restart that changed nothing.
	RunsAfter, WritesAfter int
	// Log is the manager's.
	Log string
}

// Load creates so many resources, starts a manager that may have two live runs, waits
// until all are reported as successful, restarts the manager, and waits so long as to
// see whether it does anything. There is no fault.
func (l *Lab) Load(ctx context.Context, resources int) (found Loaded, err error) {
	t := &trial{lab: l}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.furnish(ctx, "--max-concurrent-runs=2", "--max-concurrent-reconciles=2"); err != nil {
		return found, fmt.Errorf("prepare: %w", err)
	}
	if err := t.createMany(ctx, resources); err != nil {
		return found, err
	}
	found.Log = t.manager.Log()
	if err := t.begin(ctx); err != nil {
		return found, err
	}
	began := time.Now()
	if err := t.allReported(ctx, resources); err != nil {
		return found, err
	}
	found.Took = time.Since(began)
	<-time.After(quiet) // Events are written a little later.
	told, err := t.events(ctx)
	if err != nil {
		return found, err
	}
	events := map[string]int{}
	for _, event := range told {
		events[event.UID] += event.Count
		found.Events = max(found.Events, events[event.UID])
	}
	runs, writes, most, err := t.done()
	found.Runs, found.Writes = runs, most
	t.manager.Pause()
	if err := errors.Join(err, t.begin(ctx)); err != nil {
		return found, err
	}
	<-time.After(idleTime)
	runsAfter, writesAfter, _, err := t.done()
	found.RunsAfter, found.WritesAfter = runsAfter-runs, writesAfter-writes
	return found, err
}

func (t *trial) createMany(ctx context.Context, resources int) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(creators)
	for i := range resources {
		work.Go(func() error {
			u := t.user
			u.name = fmt.Sprintf("cr-%04d", i)
			_, err := u.create(ctx, int64(i), stub.Script{Milliseconds: 50})
			return err
		})
	}
	return work.Wait()
}

// allReported waits until each resource is reported as successful.
func (t *trial) allReported(ctx context.Context, resources int) error {
	reported := 0
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, loadTimeout, true, func(ctx context.Context) (bool, error) {
		list, err := t.list(ctx)
		reported = 0
		for i := range list.Items {
			if len(oracle.Unreported(&list.Items[i])) == 0 {
				reported++
			}
		}
		return reported == resources, err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%d of %d resources are reported: %w", reported, resources, err), t.tail())
	}
	return nil
}

// done counts the runs that began, the writes of the manager that were applied, Events
// included, and the most writes to one resource.
func (t *trial) done() (runs, writes, most int, err error) {
	writesTo := map[string]int{}
	for _, r := range t.proxy.Journal() {
		if !r.Applied() {
			continue
		}
		writes++
		if t.ours(r) {
			writesTo[r.Name]++
			most = max(most, writesTo[r.Name])
		}
	}
	journal, err := stub.ReadJournal(t.dir)
	for _, r := range journal {
		if r.What == stub.Started {
			runs++
		}
	}
	return runs, writes, most, err
}
