package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// before brings the CR to where the operation begins.
func (t *trial) before(ctx context.Context) error {
	if t.plan.Operation == plan.Repair {
		return t.breakIt(ctx)
	}
	if !slices.Contains([]plan.Operation{plan.Update, plan.Delete, plan.Recreate, plan.DeleteRetry}, t.plan.Operation) {
		return nil
	}
	if err := t.create(ctx); err != nil {
		return err
	}
	return t.settled(ctx, true)
}

// repairedAfter is how many runs of a CR have failed before its user repairs it.
const repairedAfter = 4

// breakIt creates a CR and waits until it has failed so often.
func (t *trial) breakIt(ctx context.Context) error {
	if err := t.create(ctx); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, look, t.strikeLimit(), true, func(context.Context) (bool, error) { return t.have(stub.Ended) })
}

// have reports whether so many runs have begun or ended.
func (t *trial) have(what string) (bool, error) {
	runs, err := stub.ReadJournal(t.dir)
	runs = slices.DeleteFunc(runs, func(r stub.Record) bool { return r.What != what })
	return len(runs) >= repairedAfter, err
}

// storm changes an annotation that triggers runs, all the time until the last of the runs has
// begun that fail. A run that is killed may have no end.
func (t *trial) storm(ctx context.Context) error {
	number := 0
	return wait.PollUntilContextTimeout(ctx, look, t.strikeLimit(), true, func(ctx context.Context) (bool, error) {
		number++
		err := t.user.patch(ctx, `{"metadata": {"annotations": {"ansible.sdk.operatorframework.io/verbosity": "%d"}}}`, number%2)
		over, readErr := t.have(stub.Started)
		return over, errors.Join(err, readErr)
	})
}

// act does what the user does. Of an operation during a run the rest follows when
// the run is there.
func (t *trial) act(ctx context.Context) error {
	switch t.plan.Operation {
	case plan.Update:
		return t.through(t.user.update(ctx))
	case plan.Repair:
		// Only one more run fails.
		return t.through(t.user.patch(ctx, `{"spec": {"play": {"failures": [%q]}}}`, stub.FailedTask))
	case plan.Storm:
		return errors.Join(t.through(t.create(ctx)), t.storm(ctx))
	case plan.Delete, plan.DeleteRetry:
		return t.through(t.user.delete(ctx))
	case plan.Recreate:
		if err := t.user.delete(ctx); err != nil {
			return err
		}
		return t.through(t.recreate(ctx))
	case plan.DeleteRunning, plan.PlainDeleteRunning, plan.PlainRecreateRunning:
		return t.create(ctx)
	default:
		return t.through(t.create(ctx))
	}
}

// actDuringRun does what remains of the operation, once.
func (t *trial) actDuringRun(ctx context.Context) {
	if !t.plan.Operation.Course().DuringRun {
		return
	}
	t.actedBy.Do(func() {
		err := t.user.delete(ctx)
		if err == nil && t.plan.Operation == plan.PlainRecreateRunning {
			err = t.recreate(ctx)
		}
		t.note(err)
		close(t.acted)
	})
}

func (t *trial) through(err error) error {
	t.actedBy.Do(func() { close(t.acted) })
	return err
}

// script is what the plays of the operation's CR do.
func (t *trial) script() stub.Script {
	switch t.plan.Operation {
	case plan.Retry:
		return stub.Script{Failures: []stub.Failure{stub.Forgery, stub.FailedStats}}
	case plan.DeleteRetry:
		return stub.Script{FinalizerFailures: []stub.Failure{stub.NoStats, stub.FailedTask}}
	case plan.Repair, plan.Storm:
		return stub.Script{Failures: slices.Repeat([]stub.Failure{stub.FailedTask}, repairedAfter)}
	case plan.PlainDeleteRunning, plan.PlainRecreateRunning:
		return stub.Script{Module: true}
	case plan.Update:
		return stub.Script{Stray: true}
	default:
		return stub.Script{}
	}
}

func (t *trial) create(ctx context.Context) error {
	uid, err := t.user.create(ctx, t.script())
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uids = append(t.uids, uid)
	return nil
}

// recreate waits until the CR is gone and creates another.
func (t *trial) recreate(ctx context.Context) error {
	if err := t.user.becomes(ctx, t.strikeLimit(), func(cr *unstructured.Unstructured) bool { return cr == nil }); err != nil {
		return fmt.Errorf("wait until the resource is gone: %w", err)
	}
	t.gone.Store(true)
	return t.create(ctx)
}

// uid is that of the CR with the number, counted from 0; "" while there is none.
func (t *trial) uid(number int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number >= len(t.uids) {
		return ""
	}
	return t.uids[number]
}

// touch changes the CR while the manager is blind, where it is not being deleted.
func (t *trial) touch(ctx context.Context) {
	cr, err := t.user.fetch(ctx)
	if err != nil || cr == nil || cr.GetDeletionTimestamp() != nil || t.plan.Operation.Course().Gone {
		t.note(err)
		return
	}
	t.note(client.IgnoreNotFound(t.user.update(ctx)))
	t.touched.Add(1)
}
