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

// errGone says that the CR that the attempt began with is no more: deleted, or
// followed by another object of its name. There is nothing left to do for it.
var errGone = errors.New("the custom resource is gone")

// errRefused says that the API server refuses a write for what it says: no other
// writer was in the way, and repeating it at once mends nothing.
var errRefused = errors.New("the API server refuses the change")

// errFenced says that this manager does not surely lead any more: whatever is to
// be done for the CR is the next leader's.
var errFenced = errors.New("this manager does not surely lead any more")

func (r *Reconciler) leads() bool { return r.Fence == nil || r.Fence() }

// unlessFenced drops the errors that a manager meets behind its fence.
func (r *Reconciler) unlessFenced(err error) error {
	if !r.leads() {
		return nil
	}
	return err
}

// ignoreGone drops the errors that say that nothing is left for this manager to do
// for the CR.
func ignoreGone(err error) error {
	if errors.Is(err, errGone) || errors.Is(err, errDeleted) || errors.Is(err, errFenced) || errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// requestTimeout ends a request that nobody answers, as with a connection that
// has died without a word.
const requestTimeout = 15 * time.Second

// persistence says how long a write is tried while the API server cannot take it.
type persistence int

const (
	// brief gives up after about 5 s: the attempt is made again from its beginning.
	brief persistence = iota
	// lasting goes on until the context ends: what a run came to is not left to
	// the queue, where hours of other runs might go before it.
	lasting
)

// briefTries spread over about 5 s.
const briefTries = 9

// writeInterim writes a report that is no result. Where the API server refuses it,
// the attempt goes on: the CR's content matters more.
func (r *Reconciler) writeInterim(ctx context.Context, a *attempt, report status.Report) error {
	err := r.writeStatus(ctx, a, report, brief)
	if errors.Is(err, errRefused) {
		log.FromContext(ctx).Error(err, statusRefused)
		return nil
	}
	return err
}

const statusRefused = "the status could not be written; does the schema of the kind have one, and allow conditions with ansibleResult?"

// writeResult writes what the attempt came to. What the kind's schema refuses, no
// repetition mends: the log says so, and the status only ceases to say that a run is
// at work. An admission policy or webhook may refuse it for a time: that is an error.
func (r *Reconciler) writeResult(ctx context.Context, a *attempt) error {
	err := r.writeStatus(ctx, a, a.verdict.report(), lasting)
	switch {
	case !errors.Is(err, errRefused):
		return err
	case apierrors.IsNotFound(err): // The kind has lost its status.
		log.FromContext(ctx).Error(err, statusRefused)
		return nil
	case schemaRefuses(err):
		log.FromContext(ctx).Error(err, statusRefused)
		return r.writeStatus(ctx, a, status.Unwritable(a.verdict.version.generation), lasting)
	}
	return err
}

// schemaRefuses reports whether the schema of the kind refuses a change: it names each
// field that it refuses, and why. An admission policy gives a message alone.
func schemaRefuses(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	causes := answer.Status().Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Type == "" || c.Field == "" })
}

// writeStatus merges the report into what stands in the CR's status now. It
// writes nothing where that says the report already.
func (r *Reconciler) writeStatus(ctx context.Context, a *attempt, report status.Report, p persistence) error {
	if !r.Watch.ManageStatus || r.NoStatus {
		return nil
	}
	err := r.patch(ctx, a, write{r.toStatus, p}, func(current *unstructured.Unstructured) []status.Operation {
		return status.Patch(current, report, r.Clock.Now())
	})
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// addFinalizer ends with errDeleted for a CR that is being deleted by now: the
// API server takes no new finalizer for it, and without one nothing must run.
func (r *Reconciler) addFinalizer(ctx context.Context, a *attempt) error {
	name, deleting := r.Watch.Finalizer.Name, false
	err := r.patch(ctx, a, write{r.toObject, brief}, func(current *unstructured.Unstructured) []status.Operation {
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
	err := r.patch(ctx, a, write{r.toObject, lasting}, func(current *unstructured.Unstructured) []status.Operation {
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

// write is how a change gets to the API server.
type write struct {
	send        send
	persistence persistence
}

// patch sends what change computes, and computes it anew where another writer
// was faster: each try starts from a fresh read. It ends with errGone when the
// CR is gone or another object has its name, with errFenced when another manager
// may lead, with errRefused when the API server refuses the change itself, and
// with what the API server says where waiting does not mend it.
func (r *Reconciler) patch(ctx context.Context, a *attempt, to write, what change) error {
	t := tries{r: r, attempt: a, to: to, what: what}
	pause := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: math.MaxInt, Cap: 5 * time.Second}
	err := pause.DelayFunc().Until(ctx, true, true, t.once)
	if wait.Interrupted(err) && t.last != nil {
		return t.last
	}
	return err
}

// tries are those of one write.
type tries struct {
	r       *Reconciler
	attempt *attempt
	to      write
	what    change

	count int
	last  error
	// refused is the version of the CR whose change the API server called invalid, or
	// for which it has no status.
	refused string
}

// once tries once. It is done with the last try, whatever came of it.
func (t *tries) once(ctx context.Context) (done bool, err error) {
	t.last = t.send(ctx)
	t.count++
	enough := t.count >= briefTries && (t.to.persistence == brief || t.r.Runs.Stopped())
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
	err = sendOperations(ctx, current, t.to.send, t.what(current))
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		// A failed test of a JSON Patch says Invalid, too, and a CR that has gone since
		// is not found either.
		t.refused = current.GetResourceVersion()
	}
	return err
}

// isTransient reports whether an error of a write may pass with time: another writer
// was faster, or the API server is busy, ill, or out of reach.
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
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return to(ctx, cr.DeepCopy(), client.RawPatch(types.JSONPatchType, data))
}
