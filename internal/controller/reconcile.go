package controller

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/jobevent"
	"github.com/ensign-operator/ensign/internal/runner"
	"github.com/ensign-operator/ensign/internal/slots"
	"github.com/ensign-operator/ensign/internal/status"
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
	// Fence tells whether this manager surely leads, without which nothing is run
	// and nothing written. Nil: it always does.
	Fence func() bool

	memories memories
}

// Reconcile brings one CR to where its content wants it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	runCtx, leave, ok := r.Runs.Enter(ctx)
	if !ok {
		return reconcile.Result{}, nil // The manager stops; its successor starts from the CR as it is then.
	}
	defer leave()
	release, admitted := r.takeSlot(runCtx, req) // Before the read: what waits must not grow stale.
	defer release()
	defer func() {
		if r.memories.over(req.NamespacedName) && err == nil {
			result = reconcile.Result{RequeueAfter: soon}
		}
	}()
	cr, err := r.get(ctx, req)
	if apierrors.IsNotFound(err) {
		r.forget(ctx, req)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, r.unlessFenced(err)
	}
	attempt := r.begin(ctx, req, cr)
	if admitted {
		attempt.digest = r.digestWith(runCtx, attempt)
	}
	defer func() { result, err = r.finish(ctx, attempt, err) }()

	switch attempt.step = decide(cr, &r.Watch, r.known(attempt, admitted)); attempt.step {
	case skip, comeBack:
	case reportPending:
		attempt.resume()
	case reportPaused, rest:
		err = r.leaveAlone(ctx, attempt)
	case refuseAnnotations:
		attempt.related = r.memories.begins(cr)
		attempt.refuse(ctx, status.ReasonInvalidAnnotation, refusedAnnotations(cr))
	case addFinalizer, run, finalize:
		attempt.related = r.memories.begins(cr)
		err = r.perform(ctx, runCtx, attempt)
		release() // Before the result is written: that may take as long as the API server is away.
	}
	return result, err
}

// perform runs the content that the step asks for. The finalizer is added before
// the first run, and only to a CR whose variables build: what Ensign cannot run
// must not keep a CR from being deleted.
func (r *Reconciler) perform(ctx, runCtx context.Context, a *attempt) error {
	if !r.prepare(ctx, a) {
		return nil
	}
	if a.step == addFinalizer {
		if err := r.addFinalizer(ctx, a); err != nil {
			return err
		}
	}
	return r.run(ctx, runCtx, a)
}

// takeSlot waits for one of the manager's slots. An attempt that cannot lead to a
// run is not admitted and does not wait: for a CR that is gone, or being deleted
// without our finalizer, and for a result that only waits to be written. What an
// event tells meanwhile counts at once.
func (r *Reconciler) takeSlot(ctx context.Context, req reconcile.Request) (release func(), admitted bool) {
	defer r.memories.admitted(req.NamespacedName)
	for ctx.Err() == nil {
		waiting, wake := context.WithCancel(ctx)
		class, needed := r.memories.await(req.NamespacedName, wake)
		if !needed {
			wake()
			break
		}
		release, err := r.Slots.Acquire(waiting, r.Watch.GVK.String(), class)
		wake()
		if err == nil {
			return release, true
		}
	}
	return func() {}, false
}

func (r *Reconciler) get(ctx context.Context, req reconcile.Request) (*unstructured.Unstructured, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.Watch.GVK)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.Reader.Get(ctx, req.NamespacedName, cr)
	return cr, err
}

// begin opens the attempt and forgets what is remembered of a predecessor of
// the same name.
func (r *Reconciler) begin(ctx context.Context, req reconcile.Request, cr *unstructured.Unstructured) *attempt {
	memory, predecessor := r.memories.of(req.NamespacedName, cr.GetUID())
	if predecessor != "" {
		r.removeDirectory(ctx, string(predecessor))
	}
	return &attempt{request: req, cr: cr, memory: memory, edition: editionOf(cr)}
}

// known gathers what decide must know beside the CR.
func (r *Reconciler) known(a *attempt, admitted bool) known {
	return known{pending: a.memory.pending != nil, admitted: admitted, mayRest: r.mayRest(a)}
}

// mayRest tells whether the CR is as its content wants it since an earlier
// manager's run, and how long its period lets it rest. That is asked once, unless
// it has changed already: from then on there is a run whenever something asks for one.
// Without a status subresource whoever writes the CR writes its status too, so that
// it proves nothing.
func (r *Reconciler) mayRest(a *attempt) bool {
	ended, settled := status.Settled(a.cr, a.digest)
	s, err := r.settingsOf(a.cr)
	if a.memory.met || r.NoStatus || !settled || err != nil || r.memories.changed(a.request.NamespacedName) {
		return false
	}
	if r.memories.mustRun(a.request.NamespacedName) {
		return false // As its content wanted it, but for what has changed since.
	}
	if s.period == 0 {
		return true
	}
	// A clock that was wrong then must not make the rest longer than a period.
	a.rest = min(s.period, s.period-r.Clock.Since(ended))
	return a.rest > 0
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
	for _, uid := range r.memories.drop(req.NamespacedName) {
		r.removeDirectory(ctx, string(uid))
	}
}

// finish is the only exit of an attempt that saw the CR: it writes the status,
// removes the finalizer when its run succeeded, tells of a changed outcome, and
// says when the CR comes again. What cannot be written is remembered and written
// by the next attempt; the content does not run again for it.
func (r *Reconciler) finish(ctx context.Context, a *attempt, cause error) (reconcile.Result, error) {
	if cause != nil {
		return leave(cause)
	}
	if a.verdict == nil {
		return r.comesAgain(ctx, a), nil
	}
	a.memory.met = true
	if err := r.record(ctx, a); err != nil {
		return r.recordLater(ctx, a, err)
	}
	a.memory.pending = nil
	r.announce(a)
	after := requeueAfter(a.verdict, a.cr.GetGeneration(), r.backoff(a))
	a.memory.due = dueAfter(a.verdict, r.Clock.Now().Add(after))
	if a.step == reportPending && (r.memories.asked(a.request.NamespacedName) || r.memories.mustRun(a.request.NamespacedName)) {
		after = soon // An event came that has only led to this report.
	}
	log.FromContext(ctx).V(1).Info("attempt finished", "reason", a.verdict.outcome.Reason, "requeueAfter", after)
	class := slots.Usual
	if a.verdict.finalizing {
		class = slots.Urgent
	}
	return reconcile.Result{RequeueAfter: after, Priority: priority(class)}, nil
}

// recordLater leaves the verdict to a later attempt. What the API server refuses comes
// after the pauses that follow upon failed runs, and the log says so once.
func (r *Reconciler) recordLater(ctx context.Context, a *attempt, err error) (reconcile.Result, error) {
	if ignoreGone(err) == nil {
		return leave(err)
	}
	a.memory.pending = a.verdict
	if !errors.Is(err, errRefused) {
		return leave(err)
	}
	a.verdict.refusals++
	if a.verdict.refusals == 1 {
		log.FromContext(ctx).Error(err, "the API server refuses the result; it is written again with ever longer pauses, and nothing runs for the resource until it is taken")
	}
	return reconcile.Result{RequeueAfter: backoffAfter(a.verdict.refusals, r.Defaults.MaxBackoff)}, nil
}

// leave ends an attempt with an error. A CR that turned out to be gone comes once
// more, to be forgotten, or for a successor: no event may tell of its end.
func leave(err error) (reconcile.Result, error) {
	if errors.Is(err, errGone) {
		return reconcile.Result{RequeueAfter: firstBackoff}, nil
	}
	return reconcile.Result{}, ignoreGone(err)
}

// priority is the place that the queue gives a class.
func priority(class slots.Class) *int { return new(int(class)) }

// record writes the verdict to the API server.
func (r *Reconciler) record(ctx context.Context, a *attempt) error {
	finalized := a.verdict.finalizing && a.verdict.outcome.Verdict == jobevent.Succeeded
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

func (v *verdict) report() status.Report {
	if v.refused {
		return status.Refused(v.generation, v.outcome.Reason, v.outcome.Message)
	}
	report := status.Finished(v.generation, v.outcome, v.summary)
	// A role that asked to come again is not done, whatever manager is there then.
	if v.outcome.Verdict == jobevent.Succeeded && !v.finalizing && v.summary.Requeue == 0 {
		report = report.WithDigest(v.digest)
	}
	return report
}
