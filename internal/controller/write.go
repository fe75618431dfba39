package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/controller/status"
)

// errRefused: the API server refuses the content of a write. No other writer was in the
// way, so repeating it at once does not help.
var errRefused = errors.New("the API server refuses the change")

func (r *Reconciler) leads() bool { return r.Fence == nil || r.Fence() }

// unlessFenced returns errFenced for an error that a manager meets while it does not lead.
func (r *Reconciler) unlessFenced(err error) error {
	if !r.leads() {
		return errFenced
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

// change returns the operations that a CR needs as the API server answered last; none if there is
// nothing to change.
type change func(current *unstructured.Unstructured) []status.Operation

// write is how a change is sent to the API server.
type write struct {
	send        send
	persistence persistence
}

// patch sends the operations that the CR needs. It reads the CR and repeats that if another writer
// was faster or the API server cannot answer. It returns errGone if the CR is gone or another object
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
	current, operations, err := t.current(ctx)
	if err != nil {
		return err
	}
	answer, err := sendOperations(ctx, current, t.to.send, operations)
	switch {
	case err == nil:
		t.attempt.latest = answer
		t.r.warnDropped(ctx, status.Dropped(answer, operations))
	case apierrors.IsInvalid(err), apierrors.IsNotFound(err):
		// The answer is the same if a test of the JSON Patch failed, or the CR is gone. Only if
		// the next read shows the same version, the change itself was refused.
		t.refused = current.GetResourceVersion()
	}
	return err
}

// current returns the CR and the operations that it needs. It takes the CR as the API server
// answered last, without a read, if that needs any operations: their test of the resource version
// fails if the CR has changed since. After an error, the next try reads the CR.
func (t *tries) current(ctx context.Context) (current *unstructured.Unstructured, operations []status.Operation, err error) {
	a := t.attempt
	if current, a.latest = a.latest, nil; current != nil {
		operations = t.what(current)
	}
	read := len(operations) == 0
	if read {
		current, err = t.r.get(ctx, a.request)
	}
	switch {
	case !t.r.leads(): // Asked after the read, which may take long.
		return nil, nil, errFenced
	case apierrors.IsNotFound(err):
		return nil, nil, errGone
	case err != nil:
		return nil, nil, err
	case current.GetUID() != a.cr.GetUID():
		return nil, nil, errGone
	case abandoned(&t.r.Watch, current) && !a.removesFinalizer():
		return nil, nil, errAbandoned // The removal of the finalizer does not wait for a status that cannot be written.
	case current.GetResourceVersion() == t.refused:
		return nil, nil, fmt.Errorf("%w: %w", errRefused, t.last)
	case read:
		operations = t.what(current)
	}
	return current, operations, nil
}

// isTransient reports whether repeating a write may help: another writer was faster, or the
// API server is busy, failing, or out of reach.
func isTransient(err error) bool {
	var answer apierrors.APIStatus
	if isInterruption(err) || errors.Is(err, errRefused) {
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
