package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// requestTimeout ends a request without an answer, as on a connection that died silently.
const requestTimeout = 15 * time.Second

// persistence is how long a write is repeated while the API server does not take it.
type persistence int

const (
	// fewTries gives up after about 5 s; then the whole attempt is repeated.
	fewTries persistence = iota
	// untilWritten goes on until the context ends, or for maxTries once the manager stops. The
	// result of a run is not left to the queue, where other runs might delay it for hours.
	untilWritten
)

// maxTries take about 5 s.
const maxTries = 9

// send patches a CR: toStatus or toObject.
type send func(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error

func (r *Reconciler) toStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return r.Client.Status().Patch(ctx, cr, patch)
}

func (r *Reconciler) toObject(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return r.Client.Patch(ctx, cr, patch)
}

// change returns the operations that a CR needs as it was just read; none if there is
// nothing to change.
type change func(current *unstructured.Unstructured) []status.Operation

// write is how a change is sent to the API server.
type write struct {
	send        send
	persistence persistence
}

// patch reads the CR and sends the operations of change. It repeats both if another writer was
// faster or the API server cannot answer. It returns errGone if the CR is gone or another object
// has its name, and errAbandoned if the CR is to go without its finalizer. It returns errFenced if
// another manager may lead, and errRefused if the API server refuses the change itself. It returns
// the API server's error if repeating does not help.
func (r *Reconciler) patch(ctx context.Context, a *attempt, to write, what change) error {
	t := tries{r: r, attempt: a, to: to, what: what}
	pause := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: 5 * time.Second}
	err := pause.DelayFunc().Until(ctx, true, true, t.once)
	if wait.Interrupted(err) && t.last != nil {
		return t.last
	}
	return err
}

// tries holds the state of one write between its tries.
type tries struct {
	r       *Reconciler
	attempt *attempt
	to      write
	what    change

	count int
	last  error
	// refused is the resource version for which the API server answered Invalid or NotFound.
	refused string
}

// once tries once, and reports whether that was the last try.
func (t *tries) once(ctx context.Context) (done bool, err error) {
	t.last = t.send(ctx)
	t.count++
	enough := t.count >= maxTries && (t.to.persistence == fewTries || t.r.Attempts.Stopped())
	if t.last == nil || enough || !isTransient(t.last) {
		return true, t.last
	}
	return false, nil
}

func (t *tries) send(ctx context.Context) error {
	current, err := t.r.current(ctx, t.attempt)
	switch {
	case err != nil:
		return err
	case current.GetResourceVersion() == t.refused:
		return fmt.Errorf("%w: %w", errRefused, t.last)
	}
	operations := t.what(current)
	answer, err := sendOperations(ctx, current, t.to.send, operations)
	if err == nil {
		t.r.warnDropped(ctx, status.Dropped(answer, operations))
	}
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		// The answer is the same if a test of the JSON Patch failed, or the CR is gone. Only if
		// the next read shows the same version, the change itself was refused.
		t.refused = current.GetResourceVersion()
	}
	return err
}

// isTransient reports whether repeating a write may help: another writer was faster, or the
// API server is busy, failing, or out of reach.
func isTransient(err error) bool {
	var answer apierrors.APIStatus
	if ignoreGone(err) == nil || errors.Is(err, errRefused) {
		return false
	}
	if !errors.As(err, &answer) {
		return true // No answer at all.
	}
	switch code := answer.Status().Code; code {
	case http.StatusConflict, http.StatusUnprocessableEntity, http.StatusNotFound, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

func (r *Reconciler) current(ctx context.Context, a *attempt) (*unstructured.Unstructured, error) {
	current, err := r.get(ctx, a.request)
	switch {
	case !r.leads(): // Asked after the read, which may take long.
		err = errFenced
	case apierrors.IsNotFound(err):
		err = errGone
	case err == nil && current.GetUID() != a.cr.GetUID():
		err = errGone
	case err == nil && abandoned(&r.Watch, current) && !a.removesFinalizer():
		err = errAbandoned // Whatever keeps a status from being written keeps no CR that is given up.
	}
	return current, err
}

// warnDropped says once that the schema of the kind drops fields of the status.
func (r *Reconciler) warnDropped(ctx context.Context, fields []string) {
	if len(fields) > 0 && !r.drops.Swap(true) {
		log.FromContext(ctx).Info("WARNING: the schema of the kind drops fields of the status, so that resources run again after each restart and requested runs never show their end. "+
			"Set x-kubernetes-preserve-unknown-fields: true on the status in the CRD, or embed content.Status in its type in Go", "gvk", r.Watch.GVK.String(), "fields", fields)
	}
}

// sendOperations returns the object as the API server has it then.
func sendOperations(ctx context.Context, cr *unstructured.Unstructured, to send, operations []status.Operation) (*unstructured.Unstructured, error) {
	if len(operations) == 0 {
		return cr, nil
	}
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer := cr.DeepCopy()
	return answer, to(ctx, answer, client.RawPatch(types.JSONPatchType, data))
}
