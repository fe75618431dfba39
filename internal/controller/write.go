package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// errGone: the attempt's CR was deleted, or another object has its name now. There is
// nothing left to do for it.
var errGone error = unwanted("the custom resource is gone")

// errRefused: the API server refuses the content of a write. No other writer was in the
// way, so repeating it at once does not help.
var errRefused = errors.New("the API server refuses the change")

// errFenced: this manager may have lost its lease. The next leader does the rest for the CR.
var errFenced = errors.New("this manager may have lost its lease")

// errPaused: the CR is paused since it was read. The next attempt reports that.
var errPaused = errors.New("the custom resource is paused")

// ErrLocked means that the CR's run of another manager has not ended yet.
var ErrLocked = errors.New("a run of another manager has not ended")

func (r *Reconciler) leads() bool { return r.Fence == nil || r.Fence() }

// unlessFenced returns errFenced for an error that a manager meets while it does not lead.
func (r *Reconciler) unlessFenced(err error) error {
	if !r.leads() {
		return errFenced
	}
	return err
}

// ignoreGone returns nil for errors after which this manager has nothing left to do for
// the CR.
func ignoreGone(err error) error {
	if errors.Is(err, errGone) || errors.Is(err, errDeleted) || errors.Is(err, errFenced) || errors.Is(err, errStopped) || errors.Is(err, errAbandoned) {
		return nil
	}
	return err
}

// writeInterim writes a report that is not a conclusion. If the API server refuses it, writeInterim
// logs that and the attempt goes on.
func (r *Reconciler) writeInterim(ctx context.Context, a *attempt, report status.Report) error {
	if len(r.merge(report)(a.cr)) == 0 {
		return nil // The CR was read just now.
	}
	return r.changeInterim(ctx, a, r.merge(report))
}

func (r *Reconciler) changeInterim(ctx context.Context, a *attempt, what change) error {
	err := r.writeStatus(ctx, a, what, fewTries)
	if errors.Is(err, errRefused) {
		log.FromContext(ctx).Error(err, statusRefused)
		return nil
	}
	return err
}

const statusRefused = "could not write the status; check that the schema of the kind has a status, and allows ansibleResult in its conditions"

// writeResult writes the conclusion to the status. If the kind's schema refuses it,
// a retry does not help: the refusal is logged, and the status only ceases to show a
// current run. An admission policy or webhook may refuse it for a time: that is an error.
func (r *Reconciler) writeResult(ctx context.Context, a *attempt) error {
	report := a.conclusion.report().WithHealth(r.health(a))
	r.lookAgain(a)
	if a.conclusion.ended.IsZero() && len(r.merge(report)(a.cr)) == 0 {
		return nil // Without a run, the CR was read just now.
	}
	err := r.writeStatus(ctx, a, r.merge(report), untilWritten)
	switch {
	case !errors.Is(err, errRefused):
		return err
	case apierrors.IsNotFound(err): // The kind has lost its status.
		log.FromContext(ctx).Error(err, statusRefused)
		return nil
	case schemaRefuses(err):
		log.FromContext(ctx).Error(err, statusRefused)
		return r.writeStatus(ctx, a, r.merge(status.Unwritable(a.conclusion.version.generation)), untilWritten)
	}
	return err
}

// schemaRefuses reports whether the kind's schema refuses a change: then the answer names
// each refused field as a cause. An admission policy gives a message only.
func schemaRefuses(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	causes := answer.Status().Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Type == "" || c.Field == "" })
}

// merge returns the change that merges the report into a status. It is none if the status shows
// the report already.
func (r *Reconciler) merge(report status.Report) change {
	return func(current *unstructured.Unstructured) []status.Operation {
		return status.Patch(current, report.ReadyBy(r.Watch.Ready, false), r.Clock.Now())
	}
}

// writeStatus changes the CR's status. If the kind's schema refuses the conditions of kstatus, the manager
// writes the others without them from then on.
func (r *Reconciler) writeStatus(ctx context.Context, a *attempt, what change, p persistence) error {
	if !r.Watch.ManageStatus || r.NoStatus {
		return nil
	}
	plain := r.plain.Load()
	err := r.patch(ctx, a, write{r.toStatus, p}, r.readable(a, what, plain))
	if !plain && errors.Is(err, errRefused) && schemaRefuses(err) {
		if r.patch(ctx, a, write{r.toStatus, p}, r.readable(a, what, true)) == nil {
			err = nil
			if !r.plain.Swap(true) {
				log.FromContext(ctx).Info("WARNING: the schema of the kind refuses the conditions Ready, Reconciling and Stalled; the status is written without them until the manager restarts", "gvk", r.Watch.GVK.String())
			}
		}
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// readable returns the change, which adds each Ready that it writes to those of the attempt. It leaves out
// the conditions of kstatus if the change is to be plain.
func (r *Reconciler) readable(a *attempt, what change, plain bool) change {
	return func(current *unstructured.Unstructured) []status.Operation {
		operations := what(current)
		if plain {
			operations = slices.DeleteFunc(operations, status.Operation.Readiness)
		}
		a.readies.addWritten(operations)
		if !slices.ContainsFunc(operations, func(o status.Operation) bool { return o.Op != "test" }) {
			return nil
		}
		return operations
	}
}

// addFinalizer returns errDeleted if the CR is being deleted by now: then the API server
// takes no new finalizer, and without one nothing may run.
func (r *Reconciler) addFinalizer(ctx context.Context, a *attempt) error {
	name, deleting := r.Watch.Finalizer.Name, false
	err := r.patch(ctx, a, write{r.toObject, fewTries}, func(current *unstructured.Unstructured) []status.Operation {
		finalizers := current.GetFinalizers()
		deleting = current.GetDeletionTimestamp() != nil
		switch {
		case deleting:
			return nil
		case holdsFinalizer(&r.Watch, current):
			return nil
		case len(finalizers) == 0:
			return tested(current, status.Operation{Op: "add", Path: "/metadata/finalizers", Value: []string{name}})
		default:
			return tested(current, status.Operation{Op: "add", Path: "/metadata/finalizers/-", Value: name})
		}
	})
	if err == nil && deleting {
		err = errDeleted
	}
	if err != nil {
		return fmt.Errorf("add the finalizer %q: %w", name, err)
	}
	return nil
}

func (r *Reconciler) removeFinalizer(ctx context.Context, a *attempt) error {
	name := r.Watch.Finalizer.Name
	err := r.patch(ctx, a, write{r.toObject, untilWritten}, func(current *unstructured.Unstructured) []status.Operation {
		var removals []status.Operation
		for index, entry := range slices.Backward(current.GetFinalizers()) { // From the end: a removal moves the later items.
			if r.Watch.Finalizer.Is(entry) {
				removals = append(removals, status.Operation{Op: "remove", Path: fmt.Sprintf("/metadata/finalizers/%d", index)})
			}
		}
		if removals == nil {
			return nil
		}
		return tested(current, removals...)
	})
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("remove the finalizer %q: %w", name, err)
	}
	a.state.released = true // A CR that is gone holds no finalizer.
	return nil
}

func tested(cr *unstructured.Unstructured, changes ...status.Operation) []status.Operation {
	return append(status.Tests(cr), changes...)
}
