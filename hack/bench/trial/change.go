package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/usage"
	"github.com/ensign-operator/ensign/test/harness"
)

// Batch is what came of CRs that were changed at once.
type Batch struct {
	// Runs are one for each CR, in no order.
	Runs []Run
	// Wall is the time from the first change to the last status.
	Wall time.Duration
	// CPU is the processor time, meanwhile, of the manager with all its processes:
	// runs, the servers of warm ones, and what those fork.
	CPU      time.Duration
	Launches Launches
}

// Create makes CRs, of which some may be there already, and waits until each has run
// well, ever.
func (s *Site) Create(ctx context.Context, c Content, names []string) error {
	o := s.options
	if err := c.create(ctx, o.Client, o.Namespace, names); err != nil {
		return err
	}
	pending := map[string]string{}
	for _, name := range names {
		pending[name] = ""
	}
	return s.follow(ctx, c, expectation{pending: pending, done: func(*unstructured.Unstructured, time.Time) {}})
}

// Change changes the CRs at once, and returns when each has run for it, well, and says
// so.
func (s *Site) Change(ctx context.Context, c Content, names []string) (Batch, error) {
	o := s.options
	list := c.list()
	if err := o.Client.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
		return Batch{}, fmt.Errorf("list %s: %w", c.Kind.Kind, err)
	}
	completed := map[string]string{}
	for i := range list.Items {
		completed[list.Items[i].GetName()] = completion(&list.Items[i])
	}
	pending := map[string]string{}
	for _, name := range names {
		pending[name] = completed[name]
	}
	before, err := s.stand(ctx)
	if err != nil {
		return Batch{}, err
	}
	batch, err := s.change(ctx, c, list.GetResourceVersion(), pending)
	if err != nil {
		return Batch{}, err
	}
	after, err := s.stand(ctx)
	batch.CPU, batch.Launches = after.cpu-before.cpu, after.launches.minus(before.launches)
	return batch, err
}

// standing is what a manager has counted up to a moment.
type standing struct {
	cpu      time.Duration
	launches Launches
}

func (s *Site) stand(ctx context.Context) (now standing, err error) {
	if now.launches, err = s.launches(ctx); err != nil {
		return now, err
	}
	now.cpu, err = usage.TreeTime(s.PID())
	return now, err
}

func (s *Site) change(ctx context.Context, c Content, version string, pending map[string]string) (Batch, error) {
	o := s.options
	var names []string
	for name := range pending {
		names = append(names, name)
	}
	var mu sync.Mutex
	changed := map[string]time.Time{}
	began := time.Now()
	err := parallel(ctx, names, func(ctx context.Context, name string) error {
		mu.Lock()
		changed[name] = time.Now()
		mu.Unlock()
		return o.Client.Patch(ctx, c.object(o.Namespace, name), client.RawPatch(types.MergePatchType, c.change(time.Now())))
	})
	if err != nil {
		return Batch{}, fmt.Errorf("change %s: %w", c.Kind.Kind, err)
	}
	var batch Batch
	var failed error
	err = s.follow(ctx, c, expectation{version, pending, func(object *unstructured.Unstructured, at time.Time) {
		run, err := record(filepath.Join(s.RunDir(), string(object.GetUID()), "artifacts"), changed[object.GetName()])
		failed = errors.Join(failed, err)
		run.Reported = at
		batch.Runs = append(batch.Runs, run)
	}})
	for _, run := range batch.Runs {
		batch.Wall = max(batch.Wall, run.Reported.Sub(began))
	}
	return batch, errors.Join(err, failed)
}

// expectation is of CRs that run.
type expectation struct {
	// version is where a watch of them begins; "" for how they are.
	version string
	// pending are the completions of the CRs, by name, which newer ones are to follow.
	pending map[string]string
	// done is told of each CR that has one, and when that was seen.
	done func(*unstructured.Unstructured, time.Time)
}

// follow returns when nothing is pending.
func (s *Site) follow(ctx context.Context, c Content, e expectation) error {
	w, err := s.options.Client.Watch(ctx, c.list(), &client.ListOptions{Namespace: s.options.Namespace, Raw: &metav1.ListOptions{ResourceVersion: e.version}})
	if err != nil {
		return fmt.Errorf("watch %s: %w", c.Kind.Kind, err)
	}
	defer w.Stop()
	for len(e.pending) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d of %s to be run: %w", len(e.pending), c.Kind.Kind, context.Cause(ctx))
		case <-s.Ended():
			return errors.New("the manager has ended")
		case event, open := <-w.ResultChan():
			at := time.Now()
			if !open {
				return fmt.Errorf("the watch of %s has ended", c.Kind.Kind)
			}
			object, err := news(event)
			if err != nil {
				return err
			}
			now := completion(object)
			if before, waited := e.pending[object.GetName()]; waited && now != "" && now != before {
				delete(e.pending, object.GetName())
				e.done(object, at)
			}
		}
	}
	return nil
}

// news is the object of an event. A run that has failed is an error.
func news(event watch.Event) (*unstructured.Unstructured, error) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return nil, fmt.Errorf("the watch tells %s of %T", event.Type, event.Object)
	}
	if failure := harness.ConditionOf(object, "Failure"); failure.Status == "True" {
		return nil, fmt.Errorf("%s %s: %s: %s", object.GetKind(), object.GetName(), failure.Reason, failure.Message)
	}
	return object, nil
}

// completion is when the last run that ended well did, as its status has it; "" while
// one is live, and when there was none.
func completion(object *unstructured.Unstructured) string {
	running := harness.ConditionOf(object, "Running")
	if running.Reason != "Successful" {
		return ""
	}
	text, _ := running.Result["completion"].(string)
	return text
}
