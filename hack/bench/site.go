package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
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

// heated is far beyond what it takes until runs are warm.
const heated = 2 * time.Minute

// batch is what came of CRs that were changed at once.
type batch struct {
	// runs are one for each CR, in no order.
	runs []run
	// wall is the time from the first change to the last status.
	wall time.Duration
	// cpu is the processor time, meanwhile, of the manager with all its processes:
	// runs, the servers of warm ones, and what those fork.
	cpu      time.Duration
	launches launches
}

// site is a manager that looks after the CRs of a side.
type site struct {
	*harness.Manager
	*session
	side
}

// startSite starts a manager, which ends with the part, and waits until it watches, and
// until the runs of a warm one are.
func (s *session) startSite(ctx context.Context, by side) (*site, error) {
	slots, o, watched := strconv.Itoa(by.slots), s.options(by.home()), by.operator.roles
	o.Namespace, o.Project = by.namespace, by.operator.project
	o.Args = []string{
		"--warm=" + strconv.FormatBool(by.way == warmWay), "--max-concurrent-runs=" + slots, "--max-concurrent-reconciles=" + slots,
		"--watches-file=" + by.operator.watches, "--leader-election-namespace=" + by.namespace, "--ansible-roles-path=" + filepath.Join(s.root, "roles"),
	}
	o.Env = append([]string{"ANSIBLE_GATHERING=explicit"}, by.operator.env...) // As config/manager has it.
	m, err := harness.Start(o)
	if err != nil {
		return nil, err
	}
	s.keep(m)
	started := &site{Manager: m, session: s, side: by}
	for _, r := range watched {
		err = errors.Join(err, m.Ready(ctx, r.kind.Kind))
	}
	if err == nil && by.way == warmWay {
		err = started.heat(ctx, watched[0])
	}
	return started, err
}

// heat has a CR run until such a run is warm from its beginning to its end.
func (s *site) heat(ctx context.Context, r role) error {
	ctx, cancel := context.WithTimeout(ctx, heated)
	defer cancel()
	if err := s.create(ctx, r, 1); err != nil {
		return err
	}
	for {
		done, err := s.change(ctx, r, 1)
		if err != nil {
			return fmt.Errorf("wait for a warm run: %w", err)
		}
		if done.launches == (launches{Warm: 1}) {
			return nil
		}
	}
}

// create makes CRs, of which some may be there already, and waits until each has run
// well, ever.
func (s *site) create(ctx context.Context, r role, crs int) error {
	pending := map[string]string{}
	for _, name := range r.names(crs) {
		pending[name] = ""
	}
	err := each(ctx, r.names(crs), func(ctx context.Context, name string) error {
		return client.IgnoreAlreadyExists(s.client.Create(ctx, harness.Custom(r.kind, s.namespace, name, r.spec)))
	})
	if err != nil {
		return fmt.Errorf("create %s: %w", r.kind.Kind, err)
	}
	return s.follow(ctx, r.list(), pending, func(*unstructured.Unstructured, time.Time) error { return nil })
}

// change changes so many CRs at once, and returns when each has run for it, well, and says
// so.
func (s *site) change(ctx context.Context, r role, crs int) (done batch, err error) {
	list := r.list()
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return done, fmt.Errorf("list %s: %w", r.kind.Kind, err)
	}
	completed, pending := map[string]string{}, map[string]string{}
	for i := range list.Items {
		completed[list.Items[i].GetName()] = completion(&list.Items[i])
	}
	for _, name := range r.names(crs) {
		pending[name] = completed[name]
	}
	if err := s.account(ctx, &done, -1); err != nil {
		return done, err
	}
	var mu sync.Mutex
	changed := map[string]time.Time{}
	began := time.Now()
	err = each(ctx, r.names(crs), func(ctx context.Context, name string) error {
		mu.Lock()
		changed[name] = time.Now()
		mu.Unlock()
		object := harness.Custom(r.kind, s.namespace, name, nil)
		return s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, r.change(time.Now())))
	})
	if err != nil {
		return done, fmt.Errorf("change %s: %w", r.kind.Kind, err)
	}
	err = s.follow(ctx, list, pending, func(object *unstructured.Unstructured, at time.Time) error {
		one, err := record(filepath.Join(s.RunDir(), string(object.GetUID()), "artifacts"), changed[object.GetName()])
		one.reported = at
		done.runs, done.wall = append(done.runs, one), max(done.wall, at.Sub(began))
		return err
	})
	if err != nil {
		return done, err
	}
	return done, s.account(ctx, &done, 1)
}

// account adds what the manager has counted up to now, or takes it away: sign is 1 or -1.
func (s *site) account(ctx context.Context, to *batch, sign int) error {
	metrics, err := s.Metrics(ctx)
	if err != nil {
		return err
	}
	cpu, err := treeTime(s.PID())
	to.cpu += time.Duration(sign) * cpu
	to.launches = to.launches.plus(launchesOf(metrics, sign))
	return err
}

// follow watches CRs from the list's version on, how they are where it has none, until
// each pending one has another completion than the one that is given by its name. It
// calls done for each of them, with the time when that was seen.
func (s *site) follow(ctx context.Context, list *unstructured.UnstructuredList, pending map[string]string, done func(*unstructured.Unstructured, time.Time) error) error {
	w, err := s.client.Watch(ctx, list, &client.ListOptions{
		Namespace: s.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
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

// measure takes the memory before and while so many CRs run. What samples cost is part of
// the batch.
func (s *site) measure(ctx context.Context, r role, crs int) (memory, error) {
	all := func() float64 { return treeMemory(s.PID(), "") }
	m := memory{idle: all(), servers: treeMemory(s.PID(), "/serve.py ")}
	var err error
	m.peak, err = peak(all, func() error {
		_, err := s.change(ctx, r, crs)
		return err
	})
	return m, err
}
