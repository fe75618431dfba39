package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// collect waits until nothing changes any more, and collects.
func (t *trial) collect(ctx context.Context) (oracle.Evidence, error) {
	e := oracle.Evidence{Plan: t.plan, Directory: t.dir}
	if err := t.settled(ctx, !t.plan.Operation.Course().Gone); err != nil {
		e.Unsettled = append(e.Unsettled, err.Error())
	}
	e.Took = time.Since(t.ended)
	var errs [5]error
	e.Final, errs[0] = t.user.fetch(ctx)
	e.Events, errs[1] = t.events(ctx)
	e.Runs, errs[2] = stub.ReadJournal(t.dir)
	e.Left = append(t.left(e.Final), t.secrets(e.Runs)...)
	e.Requests = t.proxy.Journal()
	t.managers.stop()
	e.Audited, errs[3] = t.audit.Writes(t.user.namespace, "ensign/")
	for _, process := range told(processes(t.dir, 0)) {
		e.Left = append(e.Left, "after the stop of the manager: "+process)
	}
	e.Misdeeds, e.Kills, errs[4] = t.managers.blamed()
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Touched = int(t.touched.Load())
	e.UIDs, e.Foreign = t.uids, t.foreign()
	return e, errors.Join(slices.Concat(errs[:], t.problem)...)
}

// settled waits until the CR is as it should be and nothing happens any more. The
// error says what is missing.
func (t *trial) settled(ctx context.Context, present bool) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, look, cmp.Or(t.lab.options.Settle, settleLimit), true, func(context.Context) (bool, error) {
		missing = errors.Join(t.missing(ctx, present)...)
		return missing == nil, nil
	})
	if err != nil && missing != nil {
		return missing
	}
	return err
}

// missing says what keeps the trial from being settled.
func (t *trial) missing(ctx context.Context, present bool) []error {
	var found []error
	cr, err := t.user.fetch(ctx)
	switch {
	case err != nil:
		found = append(found, err)
	case present && cr == nil:
		found = append(found, errors.New("there is no resource"))
	case !present && cr != nil:
		found = append(found, errors.New("the resource is still there"))
	case present:
		found = append(found, oracle.Unreported(cr)...)
	}
	if err := t.calm(); err != nil {
		found = append(found, err)
	}
	if len(found) > 0 {
		return found // The look at all processes costs the most.
	}
	if left := t.left(cr); len(left) > 0 {
		found = append(found, fmt.Errorf("left: %v", left))
	}
	return found
}

// calm says what keeps the manager from being at rest: it does not watch, or it,
// the fault or the beginning of its watch is too recent.
func (t *trial) calm() error {
	t.mu.Lock()
	last := t.ended
	t.mu.Unlock()
	watches := false
	for _, r := range t.proxy.Journal() {
		open := t.watches(r) && r.Answered.IsZero()
		watches = watches || open
		if open || r.Write() {
			last = slices.MaxFunc([]time.Time{last, r.Arrived, r.Answered}, time.Time.Compare)
		}
	}
	if !watches {
		return errors.New("the manager does not watch")
	}
	if since := time.Since(last); since < quiet {
		return fmt.Errorf("something happened %s ago", since)
	}
	return nil
}

// watches is true for a watch of the kind that the API server has accepted.
func (t *trial) watches(r apiproxy.Request) bool {
	return r.Verb == "watch" && t.ours(r) && r.Upstream == http.StatusOK
}

// foreign is what another writer left in the object, for good.
func (t *trial) foreign() oracle.Foreign {
	switch {
	case t.plan.Fault != plan.Race || t.plan.Operation.Course().Gone:
		return oracle.Foreign{}
	case t.plan.Point == plan.FinalizerAdd:
		return oracle.Foreign{Finalizer: rivalFinalizer}
	case t.plan.Point == plan.FinalizerRemove || t.kind() == plain && t.plan.Point == plan.StatusRunning:
		return oracle.Foreign{} // It went with the first object.
	default:
		return oracle.Foreign{Condition: rivalCondition()}
	}
}

// events lists what the manager told of the CRs, each as often as it was told.
func (t *trial) events(ctx context.Context) (found []string, err error) {
	list := &eventsv1.EventList{}
	if err := t.lab.client.List(ctx, list, client.InNamespace(t.user.namespace)); err != nil {
		return nil, fmt.Errorf("list the Events: %w", err)
	}
	for i := range list.Items {
		e := &list.Items[i]
		if e.Regarding.Kind != t.kind() {
			continue
		}
		count := 1
		if e.Series != nil {
			count = int(e.Series.Count)
		}
		found = append(found, slices.Repeat([]string{e.Type + " " + e.Reason}, count)...)
	}
	return found, nil
}

// left lists what should not be there when no run is live: processes and zombies,
// directories of CRs that are gone, files of runs, descriptors of those.
func (t *trial) left(cr *unstructured.Unstructured) []string {
	manager := t.managers.pid()
	found := told(processes(t.dir, manager))
	if manager > 0 {
		found = append(found, zombies(manager)...)
		found = append(found, descriptors(manager, t.managers.RunDir)...)
	}
	uid := ""
	if cr != nil {
		uid = string(cr.GetUID())
	}
	return append(found, directories(t.managers.RunDir, uid)...)
}

// secrets lists tokens of ended runs that are still good, or that stand in files.
func (t *trial) secrets(runs []stub.Record) []string {
	var found []string
	for _, run := range runs {
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(run.Kubeconfig))
		if err != nil || run.What != stub.Ended {
			continue
		}
		// Of a run whose API proxy went with its manager nobody answers.
		err = ask(config)
		gone := err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
		if !gone && !apierrors.IsUnauthorized(err) {
			found = append(found, fmt.Sprintf("the token of run %s is good for an answer (error %v)", run.Run, err))
		}
		found = append(found, holding(t.managers.RunDir, config.BearerToken)...)
	}
	return found
}

// ask asks the API that a run could reach for its version.
func ask(config *rest.Config) error {
	config.Timeout = 10 * time.Second
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err == nil {
		_, err = api.ServerVersion()
	}
	return err
}
