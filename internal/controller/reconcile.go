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

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Runner runs Ansible content and keeps a directory for each CR.
type Runner interface {
	// Run blocks until the run's process tree is gone.
	Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result
	// Remove deletes what runs of the CR left on disk.
	Remove(uid string) error
}

// Access opens the Kubernetes API to the runs of a CR.
type Access interface {
	// Grant returns a kubeconfig that acts for the CR until revoke is called.
	Grant(cr *unstructured.Unstructured) (kubeconfig []byte, revoke func(), err error)
}

// Observer watches runs. Its methods are called in the order of the events, by
// one goroutine a run, and must not block for long: the run waits for them.
type Observer interface {
	RunStarted(run jobevent.Run)
	JobEvent(run jobevent.Run, event jobevent.Event)
	RunEnded(run jobevent.Run, outcome jobevent.Outcome, summary jobevent.Summary, elapsed time.Duration)
}

// Forgetter is an Observer that remembers something of CRs.
type Forgetter interface {
	// Forget is told of a CR that is gone.
	Forget(watch, object string)
}

// Slots limits how many runs are live in all watches together.
type Slots interface {
	// Acquire waits for a slot; release gives it back.
	Acquire(ctx context.Context, watch string, class slots.Class) (release func(), err error)
}

// Defaults are the manager's settings where neither the watch nor the CR has one.
type Defaults struct {
	// ReconcilePeriod is the pause between two runs; 0 is none.
	ReconcilePeriod time.Duration
	// Verbosity is Ansible's, 0 to 7.
	Verbosity int
	// MaxVerbosity caps what a CR's annotation may ask for.
	MaxVerbosity int
	// MaxBackoff caps the pause after failures.
	MaxBackoff time.Duration
	// RefuseSops refuses spec keys that steer community.sops, where it is installed.
	RefuseSops bool
}

// Reconciler reconciles the CRs of one watch. The fields are set once, before
// the first Reconcile.
type Reconciler struct {
	Watch     watches.Watch
	Defaults  Defaults
	Client    client.Client
	Reader    client.Reader // reads live, past every cache
	Runner    Runner
	Access    Access
	Observers []Observer
	Recorder  events.EventRecorder
	Runs      *RunGroup
	Slots     Slots
	Clock     clock.PassiveClock
	// Digest stands for all that a run depends on beside its CR: the watch, its
	// content, the Python environment. "" makes every CR run once after a restart.
	Digest string
	// Related may be nil: nothing then brings a CR back but itself.
	Related Related
	// NoStatus is true where the kind has no status subresource.
	NoStatus bool
	// Fence reports whether this manager surely leads, without which nothing is run
	// and nothing written. Nil: it always does.
	Fence func() bool

	states states
}

// Reconcile runs the CR's role or playbook if it must run, and updates the CR's status.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	runCtx, leave, ok := r.Runs.Enter(ctx)
	if !ok {
		return reconcile.Result{}, nil // The manager stops; its successor starts from the CR as it is then.
	}
	defer leave()
	a, err := r.admit(ctx, runCtx, req)
	switch {
	case err != nil:
	case a.step == report:
		a.verdict = a.state.last
	case a.step == reportPaused:
		err = r.reportPaused(ctx, a)
	case a.step == refuse:
		r.reportRefusal(ctx, a)
	case a.step.runs():
		err = r.perform(ctx, runCtx, a)
	}
	r.states.over(req.NamespacedName)
	return r.finish(ctx, a, err)
}

// admit reads the CR and decides what to do. Where content is to run, it waits for a slot
// and then reads and decides again, because what waited may be stale. Every event of the
// CR ends the wait: the CR may have become more pressing, or need no run any more.
func (r *Reconciler) admit(ctx, runCtx context.Context, req reconcile.Request) (*attempt, error) {
	for runCtx.Err() == nil {
		heard, cancel := r.states.listen(runCtx, req.NamespacedName)
		a, err := r.look(ctx, req)
		if err != nil || !a.step.runs() {
			cancel(nil)
			return a, err
		}
		release, err := r.Slots.Acquire(heard, r.Watch.GVK.String(), a.class())
		cancel(nil)
		if err == nil {
			return r.lookAgain(ctx, runCtx, req, release)
		}
	}
	return &attempt{request: req}, nil // The manager stops.
}

// lookAgain looks at the CR of an attempt that has got a slot. It gives the slot back if
// nothing is to run any more.
func (r *Reconciler) lookAgain(ctx, runCtx context.Context, req reconcile.Request, release func()) (a *attempt, err error) {
	defer func() {
		if a == nil || !a.step.runs() {
			release()
		}
	}()
	heard, _ := r.states.listen(runCtx, req.NamespacedName) // It ends with runCtx.
	a, err = r.look(ctx, req)
	a.heard, a.release = heard, release
	return a, err
}

// look reads the CR live and decides what is to be done with it. A CR that is gone is
// forgotten; the attempt then has nothing to do.
func (r *Reconciler) look(ctx context.Context, req reconcile.Request) (*attempt, error) {
	a := &attempt{request: req}
	cr, err := r.get(ctx, req)
	if apierrors.IsNotFound(err) {
		r.forget(ctx, req)
		return a, nil
	}
	if err != nil {
		return a, r.unlessFenced(err)
	}
	if predecessor := r.states.adopt(req.NamespacedName, cr.GetUID()); predecessor != "" {
		r.removeDirectory(ctx, string(predecessor))
	}
	a.cr, a.version, a.state = cr, versionOf(&r.Watch, cr), r.states.get(req.NamespacedName)
	a.step = decide(cr, a.version, &r.Watch, a.state, r.Clock.Now())
	if a.step == run && r.settled(ctx, a) {
		a.step = rest
	}
	if a.step.runs() {
		r.prepare(a)
	}
	return a, nil
}

// settled reports whether the CR's status proves that an earlier manager ran this version
// with the same content, and that its period has not elapsed. Then the CR's state says so
// from here on. Without a status subresource whoever writes the CR writes its status, too,
// so that it proves nothing.
func (r *Reconciler) settled(ctx context.Context, a *attempt) bool {
	if a.state.last != nil || a.state.dirty != "" || r.NoStatus || r.Digest == "" {
		return false
	}
	a.digest = r.digestWith(ctx, a)
	ended, ok := status.Settled(a.cr, a.digest)
	s, err := r.settingsOf(a.cr)
	if !ok || err != nil {
		return false
	}
	var due time.Time
	if now := r.Clock.Now(); s.period > 0 {
		// A clock that was wrong then must not make the rest longer than a period.
		due = now.Add(min(s.period, s.period-now.Sub(ended)))
		if !now.Before(due) {
			return false
		}
	}
	r.states.update(a.request.NamespacedName, func(st *state) {
		st.version, st.last, st.due = a.version, &verdict{outcome: status.Last(a.cr)}, due
	})
	return true
}

// perform runs the content that the step asks for. The finalizer is added before
// the first run, and only to a CR whose variables build: what Ensign cannot run
// must not keep a CR from being deleted.
func (r *Reconciler) perform(ctx, runCtx context.Context, a *attempt) error {
	defer a.release() // Before the result is written: that may take as long as the API server is away.
	if a.step == addFinalizer {
		if err := r.addFinalizer(ctx, a); err != nil {
			return err
		}
	}
	return r.run(ctx, runCtx, a)
}

// reportRefusal ends the attempt without a run.
func (r *Reconciler) reportRefusal(ctx context.Context, a *attempt) {
	log.FromContext(ctx).Info("nothing is run until the resource changes", "reason", a.refusal.Reason, "message", a.refusal.Message)
	r.conclude(a, verdict{refused: true, outcome: *a.refusal})
}

// reportPaused says in the status that nothing is run. What would have run meanwhile runs
// when the pause ends.
func (r *Reconciler) reportPaused(ctx context.Context, a *attempt) error {
	r.states.markDirty(a.request.NamespacedName, causeResumed)
	log.FromContext(ctx).Info("nothing is run: the resource is paused by its annotation", "annotation", pausedAnnotation)
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

// forget drops what is remembered of a CR that is gone. An attempt may have said to what
// it refers since the event of its end.
func (r *Reconciler) forget(ctx context.Context, req reconcile.Request) {
	if r.Related != nil && len(r.Watch.References) > 0 {
		r.Related.Refers(r.Watch.GVK, req.NamespacedName, nil)
	}
	for _, o := range r.Observers {
		if f, remembers := o.(Forgetter); remembers {
			f.Forget(r.Watch.GVK.String(), named(req))
		}
	}
	if uid := r.states.forget(req.NamespacedName); uid != "" {
		r.removeDirectory(ctx, string(uid))
	}
}
