package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

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
	Clock    clock.PassiveClock
	// Digest is that of all that a run depends on beside its CR: the watch, its
	// content, the Python environment. "" makes every CR run once after a restart.
	Digest string
	// Writers knows which runs wrote CRs; nil: nobody knows.
	Writers *Writers
	// Meter may be nil.
	Meter Meter
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
}

// Reconcile runs the CR's content if it must run, and updates the CR's status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runCtx, done, ok := r.Attempts.Enter(ctx)
	if !ok {
		return reconcile.Result{}, nil // The manager stops; its successor starts from the CR as it is then.
	}
	defer done()
	a, err := r.admit(ctx, runCtx, req)
	switch {
	case err != nil:
	case a.step == abandon:
		err = r.abandon(ctx, a)
	case a.step == rewrite:
		a.conclusion = a.state.last
	case a.step == reportPaused:
		err = r.reportPaused(ctx, a)
	case a.step == held:
		err = r.hold(ctx, a)
	case a.step == upToDate:
		err = r.reportBrake(ctx, a)
	case a.step == refuse:
		r.reportRefusal(ctx, a)
	case a.step.runs():
		err = r.perform(ctx, runCtx, a)
	}
	r.states.endAttempt(req.NamespacedName)
	return r.finish(ctx, a, err)
}

// admit reads the CR and decides what to do. If content is to run, it waits for a slot
// and then reads and decides again, because the CR may have changed meanwhile. An event
// of the CR ends the wait: the CR may now have a higher priority, or need no run.
func (r *Reconciler) admit(ctx, runCtx context.Context, req reconcile.Request) (*attempt, error) {
	for runCtx.Err() == nil {
		waitCtx, cancel := r.states.interruptible(runCtx, req.NamespacedName)
		a, err := r.readAndDecide(ctx, req)
		if err != nil || !a.step.runs() {
			cancel(nil)
			return a, err
		}
		release, err := r.Slots.Acquire(waitCtx, r.Watch.GVK, a.priority())
		cancel(nil)
		if err == nil {
			return r.decideInSlot(ctx, runCtx, req, release)
		}
	}
	return &attempt{request: req}, nil // The manager stops.
}

// decideInSlot reads the CR again after the wait for a slot, and decides again. It releases
// the slot if nothing is to run any more.
func (r *Reconciler) decideInSlot(ctx, runCtx context.Context, req reconcile.Request, release func()) (a *attempt, err error) {
	defer func() {
		if a == nil || !a.step.runs() {
			release()
		}
	}()
	readCtx, _ := r.states.interruptible(runCtx, req.NamespacedName) // It ends with runCtx.
	a, err = r.readAndDecide(ctx, req)
	a.readCtx, a.release = readCtx, release
	return a, err
}

// readAndDecide reads the CR live and decides what to do with it. If the CR is gone, its
// state is dropped and there is nothing to do.
func (r *Reconciler) readAndDecide(ctx context.Context, req reconcile.Request) (*attempt, error) {
	a := &attempt{request: req}
	cr, err := r.get(ctx, req)
	if apierrors.IsNotFound(err) {
		r.forget(ctx, req)
		return a, nil
	}
	if err != nil {
		return a, r.unlessFenced(err)
	}
	if predecessor := r.states.setObject(req.NamespacedName, cr.GetUID()); predecessor != "" {
		r.removeDirectory(ctx, string(predecessor))
	}
	a.cr, a.version, a.state = cr, versionOf(&r.Watch, cr), r.states.get(req.NamespacedName)
	a.writer = r.Writers.between(a.state.version, a.version)
	// The API server's times have whole seconds.
	a.wasThere = (r.NoStatus || !r.Watch.ManageStatus) && cr.GetCreationTimestamp().Time.Before(r.Began.Truncate(time.Second))
	a.decision = decide(a, &r.Watch, r.Clock.Now())
	if a.step == run && r.provedByStatus(ctx, a) {
		a.step = upToDate
	}
	if a.step.runs() {
		r.prepare(ctx, a)
	}
	return a, nil
}

// provedByStatus reports whether the CR's status proves that an earlier manager ran this
// version successfully with the same content, and that the period has not elapsed since. If
// so, it copies that into the CR's state. The status of a kind without a status subresource
// proves nothing: everyone who may write the CR may write it.
func (r *Reconciler) provedByStatus(ctx context.Context, a *attempt) bool {
	if a.state.last != nil || a.state.dirty != "" || r.NoStatus || r.Digest == "" {
		return false
	}
	a.digest = r.digestWith(ctx, a)
	ended, ok := status.SucceededWith(a.cr, a.digest)
	period, err := r.periodOf(a.cr)
	if !ok || err != nil {
		return false
	}
	var due time.Time
	if now := r.Clock.Now(); period > 0 {
		// If the clock was wrong then, the pause is still not longer than a period.
		due = now.Add(min(period, period-now.Sub(ended)))
		if !now.Before(due) {
			return false
		}
	}
	r.states.update(a.request.NamespacedName, func(st *state) {
		st.version, st.last, st.due = a.version, &conclusion{Result: content.Result{Outcome: status.Last(a.cr)}}, due
	})
	return true
}

// perform runs the content of the step. It adds the finalizer before the first run. A CR
// that is refused never gets here, so that it can always be deleted.
func (r *Reconciler) perform(ctx, runCtx context.Context, a *attempt) error {
	defer a.release() // Before the result is written, which lasts as long as the API server is away.
	if a.step == addFinalizer {
		if err := r.addFinalizer(ctx, a); err != nil {
			return err
		}
	}
	return r.run(ctx, runCtx, a)
}

// reportRefusal concludes the attempt without a run.
func (r *Reconciler) reportRefusal(ctx context.Context, a *attempt) {
	log.FromContext(ctx).Info("nothing is run until the resource changes", "reason", a.refusal.Reason, "message", a.refusal.Message)
	r.conclude(a, conclusion{refused: true, Result: content.Result{Outcome: *a.refusal}})
}

// reportPaused writes to the status that nothing runs while the CR is paused, and makes
// content run when the pause ends.
func (r *Reconciler) reportPaused(ctx context.Context, a *attempt) error {
	r.states.markDirty(a.request.NamespacedName, causeResumed)
	if pausedByAnnotation(&r.Watch, a.cr) {
		log.FromContext(ctx).Info("nothing is run: the resource is paused by its annotation", "annotation", r.Watch.AnnotationPrefix()+pausedSuffix)
	} else {
		log.FromContext(ctx).Info("nothing is run: the resource is paused by the operator's own rule")
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
func (r *Reconciler) forget(ctx context.Context, req reconcile.Request) {
	if r.Related != nil && len(r.Watch.References) > 0 {
		r.Related.Refers(r.Watch.GVK, req.NamespacedName, nil)
	}
	r.Content.Forget(r.Watch.GVK, named(req))
	uid, slowed := r.states.forget(req.NamespacedName)
	if uid != "" {
		r.removeDirectory(ctx, string(uid))
	}
	if slowed {
		r.countSlowed()
	}
}
