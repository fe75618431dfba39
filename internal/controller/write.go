package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/status"
)

// errGone says that the CR that the attempt began with is no more: deleted, or
// followed by another object of its name. There is nothing left to do for it.
var errGone = errors.New("the custom resource is gone")

// errRefused says that the API server refuses a write for what it says, so that
// no repetition mends it.
var errRefused = errors.New("the API server refuses the change")

// ignoreGone drops the errors that say that nothing is left to do for the CR.
func ignoreGone(err error) error {
	if errors.Is(err, errGone) || errors.Is(err, errDeleted) {
		return nil
	}
	return err
}

// writeBackoff spreads nine tries of one write over about 5 s. What still fails
// then is taken up by a later attempt.
func writeBackoff() wait.Backoff {
	return wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 9}
}

// writeStatus merges the report into what stands in the CR's status now. It
// writes nothing where that says the report already.
func (r *Reconciler) writeStatus(ctx context.Context, a *attempt, report status.Report) error {
	if !r.Watch.ManageStatus || r.NoStatus {
		return nil
	}
	err := r.patch(ctx, a, r.toStatus, func(current *unstructured.Unstructured) []status.Operation {
		return status.Patch(current, report, r.Clock.Now())
	})
	if errors.Is(err, errRefused) {
		log.FromContext(ctx).Error(err, "the status could not be written; does the schema of the kind allow conditions with ansibleResult?")
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// addFinalizer ends with errDeleted for a CR that is being deleted by now: the
// API server takes no new finalizer for it, and without one nothing must run.
func (r *Reconciler) addFinalizer(ctx context.Context, a *attempt) error {
	name, deleting := r.Watch.Finalizer.Name, false
	err := r.patch(ctx, a, r.toObject, func(current *unstructured.Unstructured) []status.Operation {
		finalizers := current.GetFinalizers()
		deleting = current.GetDeletionTimestamp() != nil
		switch {
		case deleting:
			return nil
		case slices.Contains(finalizers, name):
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
	err := r.patch(ctx, a, r.toObject, func(current *unstructured.Unstructured) []status.Operation {
		index := slices.Index(current.GetFinalizers(), name)
		if index < 0 {
			return nil
		}
		return tested(current, status.Operation{Op: "remove", Path: fmt.Sprintf("/metadata/finalizers/%d", index)})
	})
	if err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("remove the finalizer %q: %w", name, err)
	}
	return nil // A CR that is gone holds no finalizer.
}

func tested(cr *unstructured.Unstructured, change status.Operation) []status.Operation {
	return append(status.Tests(cr), change)
}

// send is one of the two ways to patch a CR.
type send func(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error

func (r *Reconciler) toStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return r.Client.Status().Patch(ctx, cr, patch)
}

func (r *Reconciler) toObject(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return r.Client.Patch(ctx, cr, patch)
}

// change computes the operations that a CR needs as it stands; none is a fine answer.
type change func(current *unstructured.Unstructured) []status.Operation

// patch sends what change computes, and computes it anew where another writer
// was faster: each try starts from a fresh read. It ends with errGone when the
// CR is gone or another object has its name, and with errRefused when the API
// server refuses the change itself.
func (r *Reconciler) patch(ctx context.Context, a *attempt, to send, what change) error {
	var last error
	refused := ""
	err := wait.ExponentialBackoffWithContext(ctx, writeBackoff(), func(ctx context.Context) (bool, error) {
		current, err := r.current(ctx, a)
		if err == nil && current.GetResourceVersion() == refused {
			return false, fmt.Errorf("%w: %w", errRefused, last)
		}
		if err == nil {
			last = sendOperations(ctx, current, to, what(current))
			err = last
		}
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err):
			return false, errGone
		case errors.Is(err, errGone) || apierrors.IsForbidden(err):
			return false, err
		case apierrors.IsInvalid(err):
			refused = current.GetResourceVersion() // A failed test of a JSON Patch says Invalid, too.
		}
		last = err
		return false, nil
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

func (r *Reconciler) current(ctx context.Context, a *attempt) (*unstructured.Unstructured, error) {
	current, err := r.get(ctx, a.request)
	if err == nil && current.GetUID() != a.cr.GetUID() {
		err = errGone
	}
	return current, err
}

func sendOperations(ctx context.Context, cr *unstructured.Unstructured, to send, operations []status.Operation) error {
	if len(operations) == 0 {
		return nil
	}
	data, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	return to(ctx, cr.DeepCopy(), client.RawPatch(types.JSONPatchType, data))
}
