package trial

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/kinds"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// loadTimeout is how long the resources of a Load are waited for.
const loadTimeout = 15 * time.Minute

// Load is many resources at once, and no fault.
type Load struct {
	Resources int
	// Slots is how many runs may be live, Task how long each of them takes.
	Slots int
	Task  time.Duration
}

// Loaded is what came out of a Load.
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

// creators is how many resources are created at a time.
const creators = 16

// Load creates the resources, starts a manager, waits until all are reported as
// successful, restarts the manager, and waits so long as to see whether it does
// anything.
func (l *Lab) Load(ctx context.Context, o Load, rest time.Duration) (_ Loaded, err error) {
	t := &trial{lab: l}
	defer func() { err = errors.Join(err, t.close()) }()
	slots := strconv.Itoa(o.Slots)
	if err := t.furnish(ctx, "--max-concurrent-runs="+slots, "--max-concurrent-reconciles="+slots); err != nil {
		return Loaded{}, fmt.Errorf("prepare: %w", err)
	}
	if err := t.createMany(ctx, o); err != nil {
		return Loaded{}, err
	}
	found := Loaded{Log: t.manager.Log()}
	if err := t.begin(ctx); err != nil {
		return found, err
	}
	began := time.Now()
	if err := t.allReported(ctx, o); err != nil {
		return found, err
	}
	found.Took = time.Since(began)
	<-time.After(quiet) // Events are written a little later.
	if err := t.count(ctx, &found); err != nil {
		return found, err
	}
	runs, writes := found.Runs, t.writes()
	t.manager.Pause()
	if err := t.begin(ctx); err != nil {
		return found, err
	}
	<-time.After(rest)
	journal, err := stub.ReadJournal(t.dir)
	found.RunsAfter, found.WritesAfter = count(journal, stub.Started)-runs, t.writes()-writes
	return found, err
}

func (t *trial) createMany(ctx context.Context, o Load) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(creators)
	for i := range o.Resources {
		work.Go(func() error {
			u := t.user
			u.Name = fmt.Sprintf("cr-%04d", i)
			_, err := u.Create(ctx, int64(i), stub.Script{Milliseconds: int(o.Task.Milliseconds())})
			return err
		})
	}
	return work.Wait()
}

// allReported waits until each resource is reported as successful, ten times as
// long as it should take: how long it took is for the caller to judge.
func (t *trial) allReported(ctx context.Context, o Load) error {
	reported := 0
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, loadTimeout, true, func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kinds.Group + "/" + kinds.Version)
		list.SetKind(t.kind() + "List")
		if err := t.lab.client.List(ctx, list, client.InNamespace(t.space)); err != nil {
			return false, err
		}
		reported = 0
		for i := range list.Items {
			if len(oracle.Unreported(&list.Items[i])) == 0 {
				reported++
			}
		}
		return reported == o.Resources, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%d of %d resources are reported: %w", reported, o.Resources, err), t.tail())
	}
	return nil
}

// count counts what was done for each resource.
func (t *trial) count(ctx context.Context, found *Loaded) error {
	writes, events := map[string]int{}, map[string]int{}
	for _, r := range t.proxy.Journal() {
		if r.Applied() && r.Resource == kinds.Plural(t.kind()) {
			writes[r.Name]++
			found.Writes = max(found.Writes, writes[r.Name])
		}
	}
	told, err := t.events(ctx)
	if err != nil {
		return err
	}
	for _, event := range told {
		events[event.UID] += event.Count
		found.Events = max(found.Events, events[event.UID])
	}
	journal, err := stub.ReadJournal(t.dir)
	found.Runs = count(journal, stub.Started)
	return err
}

// writes is how many writes of the manager were applied, Events included.
func (t *trial) writes() int {
	n := 0
	for _, r := range t.proxy.Journal() {
		if r.Applied() {
			n++
		}
	}
	return n
}

func count(journal []stub.Record, what string) int {
	n := 0
	for _, r := range journal {
		if r.What == what {
			n++
		}
	}
	return n
}
