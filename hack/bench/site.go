package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// batch is the result of CRs that were changed at once.
type batch struct {
	// runs are one for each CR, in no order.
	runs []run
	// wall is the time from the first change to the last status.
	wall time.Duration
	// cpu is the processor time in this time of the manager with all its processes: runs, the
	// servers of warm ones, and their forks.
	cpu      time.Duration
	launches launches
	// after is how the manager stands at the end.
	after standing
}

// standing is the processor time that a manager has used since its start, with all its processes and
// by itself, and its resident memory in MiB.
type standing struct {
	all, own time.Duration
	resident float64
}

// site is a manager of the CRs of a side.
type site struct {
	*harness.Manager
	side
}

// startSite starts a manager, which ends with the part, makes a CR of each role, and waits
// until they have run, and until the runs of a warm manager are warm.
func startSite(ctx context.Context, by side) (*site, error) {
	slots, o := strconv.Itoa(by.slots), by.options(by.home())
	o.Namespace, o.Project = by.namespace, by.operator.project
	o.Args = []string{
		"--warm=" + strconv.FormatBool(by.way.warm()), "--max-concurrent-runs=" + slots, "--max-concurrent-reconciles=" + slots,
		"--watches-file=" + by.operator.watches, "--leader-election-namespace=" + by.namespace, "--ansible-roles-path=" + filepath.Join(by.root, "roles"),
	}
	o.Env = append([]string{"ANSIBLE_GATHERING=explicit"}, by.operator.env...) // As config/manager has it.
	if by.way == tracedWay {
		o.Env = append(o.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+by.operator.collector)
	}
	var kinds []string
	for _, r := range by.operator.roles {
		kinds = append(kinds, r.kind.Kind)
	}
	if err := by.start(ctx, o, kinds...); err != nil {
		return nil, err
	}
	s := &site{Manager: by.manager, side: by}
	for _, r := range by.operator.roles {
		if err := s.create(ctx, r, 1); err != nil {
			return nil, err
		}
	}
	if !by.way.warm() {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // Far beyond the usual time.
	defer cancel()
	for {
		done, err := s.change(ctx, by.operator.roles[0], 1)
		if err != nil {
			return nil, fmt.Errorf("wait for a warm run: %w", err)
		}
		if done.launches == (launches{Warm: 1}) { // From its beginning to its end.
			return s, nil
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
	return s.follow(ctx, listOf(r.kind), pending, func(*unstructured.Unstructured, time.Time) error { return nil })
}

// change changes so many CRs at once, and returns when each has run for it, well, and says
// so.
func (s *site) change(ctx context.Context, r role, crs int) (done batch, err error) {
	list := listOf(r.kind)
	if err := s.client.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return done, fmt.Errorf("list %s: %w", r.kind.Kind, err)
	}
	pending := map[string]string{}
	for i := range list.Items {
		if name := list.Items[i].GetName(); slices.Contains(r.names(crs), name) {
			pending[name] = completion(&list.Items[i])
		}
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

// account adds the manager's counts up to now, or takes them away: sign is 1 or -1.
func (s *site) account(ctx context.Context, to *batch, sign int) error {
	metrics, err := s.Metrics(ctx)
	if err != nil {
		return err
	}
	memory, memoryErr := harness.MemoryOf(s.PID())
	own, ownErr := ownTime(s.PID())
	cpu, err := treeTime(s.PID())
	to.cpu += time.Duration(sign) * cpu
	to.launches = to.launches.plus(launchesOf(metrics, sign))
	to.after = standing{all: cpu, own: own, resident: mebibytes(memory.Resident)}
	return errors.Join(err, ownErr, memoryErr)
}

// follow watches CRs from the list's version on, how they are where it has none, until
// each pending one has another completion than the one that is given by its name. It
// calls done for each of them, with the time when that was seen. A run that has failed is
// an error.
func (s *site) follow(ctx context.Context, list *unstructured.UnstructuredList, pending map[string]string, done func(*unstructured.Unstructured, time.Time) error) error {
	w, err := s.client.Watch(ctx, list, &client.ListOptions{
		Namespace: s.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", list.GetKind(), err)
	}
	_, err = watchtools.UntilWithoutRetry(ctx, w, func(event watch.Event) (bool, error) {
		at := time.Now()
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		if failure := harness.ConditionOf(object, "Failure"); failure.Status == "True" {
			return false, fmt.Errorf("%s: %s: %s", object.GetName(), failure.Reason, failure.Message)
		}
		name, now := object.GetName(), completion(object)
		if before, waits := pending[name]; !waits || now == "" || now == before {
			return false, nil
		}
		delete(pending, name)
		return len(pending) == 0, done(object, at)
	})
	if err != nil {
		return fmt.Errorf("wait for %d of %s to be run: %w", len(pending), list.GetKind(), err)
	}
	return nil
}

// completion is the end of the last run, if that succeeded, as the status has it; "" during a
// run, and before the first one.
func completion(object *unstructured.Unstructured) string {
	running := harness.ConditionOf(object, "Running")
	if running.Reason != "Successful" {
		return ""
	}
	text, _ := running.Result["completion"].(string)
	return text
}

// measure takes the memory before and while so many CRs run.
func (s *site) measure(ctx context.Context, r role, crs int) (memory, error) {
	return measure(s.PID, func() error {
		_, err := s.change(ctx, r, crs)
		return err
	})
}
