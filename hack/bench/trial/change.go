package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	pending := map[string]string{}
	for _, name := range names {
		pending[name] = ""
	}
	err := Each(ctx, names, func(ctx context.Context, name string) error {
		return client.IgnoreAlreadyExists(s.options.Client.Create(ctx, harness.Custom(c.Kind, s.options.Namespace, name, c.spec)))
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", c.Kind.Kind, err)
	}
	return s.follow(ctx, c.list(), pending, func(*unstructured.Unstructured, time.Time) error { return nil })
}

// Change changes the CRs at once, and returns when each has run for it, well, and says
// so.
func (s *Site) Change(ctx context.Context, c Content, names []string) (batch Batch, err error) {
	list := c.list()
	if err := s.options.Client.List(ctx, list, client.InNamespace(s.options.Namespace)); err != nil {
		return batch, fmt.Errorf("list %s: %w", c.Kind.Kind, err)
	}
	completed, pending := map[string]string{}, map[string]string{}
	for i := range list.Items {
		completed[list.Items[i].GetName()] = completion(&list.Items[i])
	}
	for _, name := range names {
		pending[name] = completed[name]
	}
	if err := s.account(ctx, &batch, -1); err != nil {
		return batch, err
	}
	var mu sync.Mutex
	changed := map[string]time.Time{}
	began := time.Now()
	err = Each(ctx, names, func(ctx context.Context, name string) error {
		mu.Lock()
		changed[name] = time.Now()
		mu.Unlock()
		object := harness.Custom(c.Kind, s.options.Namespace, name, nil)
		return s.options.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, c.change(time.Now())))
	})
	if err != nil {
		return batch, fmt.Errorf("change %s: %w", c.Kind.Kind, err)
	}
	err = s.follow(ctx, list, pending, func(object *unstructured.Unstructured, at time.Time) error {
		run, err := record(filepath.Join(s.RunDir(), string(object.GetUID()), "artifacts"), changed[object.GetName()])
		run.Reported = at
		batch.Runs, batch.Wall = append(batch.Runs, run), max(batch.Wall, at.Sub(began))
		return err
	})
	if err != nil {
		return batch, err
	}
	return batch, s.account(ctx, &batch, 1)
}

// account adds what the manager has counted up to now, or takes it away: sign is 1 or -1.
func (s *Site) account(ctx context.Context, to *Batch, sign int) error {
	metrics, err := s.Metrics(ctx)
	if err != nil {
		return err
	}
	cpu, err := treeTime(s.PID())
	to.CPU += time.Duration(sign) * cpu
	to.Launches = to.Launches.Plus(launches(metrics, sign))
	return err
}

// follow watches CRs from the list's version on, how they are where it has none, until
// each pending one has another completion than the one that is given by its name. It
// calls done for each of them, with the time when that was seen.
func (s *Site) follow(ctx context.Context, list *unstructured.UnstructuredList, pending map[string]string, done func(*unstructured.Unstructured, time.Time) error) error {
	w, err := s.options.Client.Watch(ctx, list, &client.ListOptions{
		Namespace: s.options.Namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", list.GetKind(), err)
	}
	defer w.Stop()
	for len(pending) > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d of %s to be run: %w", len(pending), list.GetKind(), context.Cause(ctx))
		case <-s.Ended():
			return errors.New("the manager has ended")
		case event := <-w.ResultChan():
			at := time.Now()
			object, err := news(event)
			if err != nil {
				return err
			}
			name, now := object.GetName(), completion(object)
			if before, waits := pending[name]; !waits || now == "" || now == before {
				continue
			}
			delete(pending, name)
			if err := done(object, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// news is the object of an event. A run that has failed is an error, and so is the
// watch's end.
func news(event watch.Event) (*unstructured.Unstructured, error) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return nil, fmt.Errorf("the watch has ended: %w", apierrors.FromObject(event.Object))
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
