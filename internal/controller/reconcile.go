package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Defaults are the manager's settings where neither the watch nor the CR has one.
type Defaults struct {
	// ReconcilePeriod is the pause between two runs; 0 is none.
	ReconcilePeriod time.Duration
	// MaxBackoff caps the pause after failures.
	MaxBackoff time.Duration
	// ServiceAccount names the account of runs whose CR and watch name none; "" is the manager's own.
	ServiceAccount string
}

// Reconciler reconciles the CRs of one watch. The fields are set once, before
// the first Reconcile.
type Reconciler struct {
	Watch    watches.Watch
	Defaults Defaults
	Client   client.Client
	Reader   client.Reader // reads live, past every cache
	Content  content.Engine
	Access   Access
	Recorder events.EventRecorder
	Attempts *Attempts
	Slots    Slots
	// Locks is nil for a manager that has all CRs of its kinds.
	Locks RunLocks
	Clock clock.PassiveClock
	// Digest is that of all that a run depends on beside its CR: the watch, its
	// content, the Python environment. "" makes every CR run once after a restart.
	Digest string
	// Translates is true if functions make the values of the content, which may depend on
	// anything: then an earlier run proves nothing unless its values were those of now. The work
	// says which they are (ValuesDigest).
	Translates bool
	// Writers knows which runs wrote CRs; nil: nobody knows.
	Writers *Writers
	// Meter may be nil.
	Meter Meter
	// Observers observe each run, whatever its kind of content.
	Observers []content.Observer
	// Related may be nil: then no other object makes content run.
	Related Related
	// NoStatus is true where the kind has no status subresource.
	NoStatus bool
	// Began is when the controller of the watch did.
	Began time.Time
	// Fence reports whether this manager surely leads. While it does not, nothing runs and
	// nothing is written. Nil: it always leads.
	Fence func() bool

	states states
	// plain is true if the kind's schema refuses the conditions of kstatus.
	plain atomic.Bool
	// drops is true once the log says that the kind's schema drops fields of the status.
	drops atomic.Bool
	// slowed is the number of CRs whose runs are slowed down.
	slowed atomic.Int64
}

// Reconcile runs the CR's content if it must run, and updates the CR's status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runCtx, done, ok := r.Attempts.Enter(ctx)
	if !ok {
		return reconcile.Result{}, nil // The manager stops; its successor starts from the CR as it is then.
	}
	defer done()
	a := &attempt{request: req, entry: r.states.of(req.NamespacedName)}
	err := r.act(ctx, runCtx, a)
	return r.finish(ctx, a, err)
}

// act decides what to do with the CR, and does it. Its end frees the slot of a run, before the
// result is written, which lasts as long as the API server is away.
func (r *Reconciler) act(ctx, runCtx context.Context, a *attempt) error {
	defer a.mailbox.close()
	defer a.freeSlot()
	if err := r.admit(ctx, runCtx, a); err != nil {
		return err
	}
	switch a.step {
	case ignore:
		return nil
	case abandon:
		return r.abandon(ctx, runCtx, a)
	case rewrite:
		a.conclusion = a.state.last
		return nil
	case reportPaused:
		return r.reportPaused(ctx, runCtx, a)
	case rest:
		if err := r.endLeft(runCtx, a); err != nil {
			return err
		}
		a.rest()
		if err := r.writeInterim(ctx, a, status.Confirmed(a.cr.GetGeneration())); err != nil {
			return err
		}
		err := errors.Join(r.reportChildren(ctx, a), r.reportThrottle(ctx, a))
		r.lookAgain(a)
		return err
	case upToDate:
		return errors.Join(r.reportChildren(ctx, a), r.reportThrottle(ctx, a))
	case throttled:
		return errors.Join(r.reportChildren(ctx, a), r.throttle(ctx, a))
	default:
		return r.perform(ctx, runCtx, a)
	}
}

// admit reads the CR and decides what to do. If content is to run, it is prepared, and then waits
// for a slot. A CR that had to wait is read, decided and prepared again, because it may have
// changed. An event of the CR ends the wait: the CR may now have a higher priority, or need no run.
func (r *Reconciler) admit(ctx, runCtx context.Context, a *attempt) error {
	for runCtx.Err() == nil {
		if err := r.observe(ctx, runCtx, a); err != nil || !a.step.runs() {
			a.freeSlot()
			return err
		}
		if a.work == nil && a.refusal == nil {
			r.prepare(runCtx, a)
		}
		if runCtx.Err() != nil { // The prepared work is of no use, nor are its errors.
			break
		}
		if a.refusal != nil || a.release != nil {
			return nil
		}
		release, waited, err := r.Slots.Acquire(a.readCtx, r.Watch.GVK, a.priority())
		if err != nil {
			continue
		}
		if a.release = release; !waited {
			return nil
		}
	}
	return errStopped
}

// observe reads the CR live and decides what to do with it. If the CR is gone, its state is
// dropped and there is nothing to do.
func (r *Reconciler) observe(ctx, runCtx context.Context, a *attempt) error {
	a.observation, a.decision, a.prepared = observation{readCtx: a.mailbox.listen(runCtx)}, decision{}, prepared{}
	cr, err := r.get(ctx, a.request)
	switch {
	case apierrors.IsNotFound(err):
		a.state.version.uid = cmp.Or(a.state.version.uid, a.mailbox.takeRecorded())
		r.nameLeft(runCtx, a, err)
		r.forget(ctx, a)
		return nil
	case err != nil:
		return r.unlessFenced(err)
	case a.state.version.uid != cr.GetUID():
		r.forgetObject(ctx, a)
		a.begin(cr.GetUID())
	}
	readCtx := a.readCtx
	a.latest, a.observation = cr, r.observed(cr)
	a.readCtx, a.dirty = readCtx, a.mailbox.whyDirty()
	a.writer = r.Writers.between(a.state.version, a.version)
	a.before = outcomeBefore(&a.state, cr)
	// The API server's times have whole seconds.
	a.wasThere = (r.NoStatus || !r.Watch.ManageStatus) && cr.GetCreationTimestamp().Time.Before(r.Began.Truncate(time.Second))
	a.proof = r.proofOf(runCtx, a)
	a.state.throttle.progress(a.mailbox.takeCurrent(), r.Clock.Now())
	a.decision = decide(&a.observation, &a.state, r.Clock.Now())
	r.states.move(a.entry, a.phaseFound(a.phase))
	return nil
}

// perform runs the prepared content. It adds the finalizer before the first run. A CR that is
// refused gets none, so that it can always be deleted.
func (r *Reconciler) perform(ctx, runCtx context.Context, a *attempt) error {
	if a.refusal != nil {
		return r.reportRefusal(ctx, runCtx, a)
	}
	if a.step == addFinalizer {
		if err := r.addFinalizer(ctx, a); err != nil {
			return err
		}
	}
	return r.run(ctx, runCtx, a)
}

// reportRefusal concludes the attempt without a run.
func (r *Reconciler) reportRefusal(ctx, runCtx context.Context, a *attempt) error {
	if err := r.endLeft(runCtx, a); err != nil {
		return err
	}
	log.FromContext(ctx).Info("resource refused; next run after its next change", "reason", a.refusal.Reason, "message", a.refusal.Message)
	r.conclude(a, conclusion{refused: true, Result: content.Result{Outcome: *a.refusal}})
	return nil
}

// endLeft deletes the Job of an earlier manager if this CR must not run now, which
// ends its run.
func (r *Reconciler) endLeft(ctx context.Context, a *attempt) error {
	if err := r.Content.Terminate(ctx, string(a.cr.GetUID())); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end the run that an earlier manager began: %w", err)
	}
	return context.Cause(ctx)
}

// reportPaused writes to the status that nothing runs while the CR is paused, and makes
// content run when the pause ends.
func (r *Reconciler) reportPaused(ctx, runCtx context.Context, a *attempt) error {
	if err := r.endLeft(runCtx, a); err != nil {
		return err
	}
	a.mailbox.markDirty(causeResumed)
	if by := saysTrue(&r.Watch, a.cr, pausedSuffix); by != "" {
		log.FromContext(ctx).Info("resource paused by its annotation", "annotation", by)
	} else {
		log.FromContext(ctx).Info("resource paused by the operator's program (its option Paused in Go)")
	}
	return r.writeInterim(ctx, a, status.Paused(a.cr.GetGeneration()))
}

func (r *Reconciler) get(ctx context.Context, req reconcile.Request) (*unstructured.Unstructured, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.Watch.GVK)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.Reader.Get(ctx, req.NamespacedName, cr)
	return cr, err
}

// forget drops all data of a CR that is gone. Its references were dropped by the event of
// its deletion, but an attempt may have set them again since.
func (r *Reconciler) forget(ctx context.Context, a *attempt) {
	setReferences(r.Related, &r.Watch, a.request.NamespacedName, nil)
	r.forgetRuns(named(a.request))
	r.forgetObject(ctx, a)
	r.states.forget(a.request.NamespacedName)
}

// forgetObject drops the manager's records of the object of the state, if there is one.
func (r *Reconciler) forgetObject(ctx context.Context, a *attempt) {
	r.setSlowedBy(a, "")
	if uid := a.state.version.uid; uid != "" {
		r.removeDirectory(ctx, string(uid))
	}
}

// finish is the only exit of an attempt. It writes the conclusion to the CR's status,
// removes the finalizer after a successful finalizer run, makes an Event of a changed
// outcome, and returns when the CR is reconciled again. A conclusion that cannot be written
// stays in the state, and the next attempt writes it without a run.
func (r *Reconciler) finish(ctx context.Context, a *attempt, cause error) (reconcile.Result, error) {
	if cause != nil {
		return errorResult(cause)
	}
	if a.conclusion != nil {
		err := r.record(ctx, a)
		a.state.unwritten = err != nil && !isInterruption(err)
		if errors.Is(err, errRefused) {
			return r.retryRecord(ctx, a, err), nil
		}
		if err != nil {
			return errorResult(err)
		}
		if a.conclusion.written != nil {
			a.conclusion.written()
			a.conclusion.written = nil // It holds the work, and the conclusion stays in the state.
		}
		r.announce(a)
		r.setDue(ctx, a)
	}
	return r.requeue(ctx, a), nil
}

// record writes the conclusion to the API server.
func (r *Reconciler) record(ctx context.Context, a *attempt) error {
	finalized := a.removesFinalizer()
	if finalized && len(a.cr.GetFinalizers()) == 1 {
		return r.removeFinalizer(ctx, a) // The object goes with it: nobody would read a status.
	}
	if err := r.writeResult(ctx, a); err != nil {
		return err
	}
	if finalized {
		return r.removeFinalizer(ctx, a)
	}
	return nil
}

// retryRecord returns the pause after which a later attempt writes a conclusion that the
// API server refused. The pauses are those after failed runs. The log says it once.
func (r *Reconciler) retryRecord(ctx context.Context, a *attempt, err error) reconcile.Result {
	a.conclusion.refusals++
	if a.conclusion.refusals == 1 {
		log.FromContext(ctx).Error(err, "the API server refuses the status with the result of the run; retrying with growing pauses. The resource does not run again until this status is written")
	}
	return reconcile.Result{RequeueAfter: backoffAfter(a.conclusion.refusals, r.Defaults.MaxBackoff)}
}

// setDue records when content runs again although nothing changes. The pause begins when
// the conclusion has been written.
func (r *Reconciler) setDue(ctx context.Context, a *attempt) {
	after := requeueAfter(a.conclusion, backoffAfter(a.state.failures, r.Defaults.MaxBackoff))
	log.FromContext(ctx).V(1).Info("reconcile finished", "reason", a.conclusion.Outcome.Reason, "requeueAfter", after)
	if after > 0 {
		a.state.due = r.Clock.Now().Add(after)
	}
}

// requeue returns when the CR is reconciled again if no event comes.
func (r *Reconciler) requeue(ctx context.Context, a *attempt) reconcile.Result {
	var after time.Duration
	switch next := nextLook(a, r.Clock.Now()); {
	case a.step == rewrite:
		after = immediately // The event of this attempt may require a run, too.
	case a.step == ignore, a.step == reportPaused, next.IsZero():
	default:
		after = max(next.Sub(r.Clock.Now()), immediately)
	}
	if a.step == upToDate || a.step == rest {
		log.FromContext(ctx).V(1).Info("nothing changed since its last run", "comesAgainAfter", after)
	}
	if after == 0 {
		return reconcile.Result{}
	}
	priority := slots.Normal
	if a.version.deleting {
		priority = slots.Urgent
	}
	return reconcile.Result{RequeueAfter: after, Priority: queuePriority(priority)}
}

// queuePriority returns the priority as the queue takes it.
func queuePriority(p slots.Priority) *int { return new(int(p)) }
