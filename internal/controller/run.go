package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// prepare reads the CR's annotations and has its content prepared. If either is invalid, the
// CR is refused: nothing runs until it changes, and no slot is needed. A finalizer run is
// not refused for an invalid annotation. ctx ends when the manager stops.
func (r *Reconciler) prepare(ctx context.Context, a *attempt) {
	a.work, a.refusal = r.Content.Prepare(ctx, content.Request{
		Object: a.cr, Finalizing: a.finalizing(), Requested: a.requested(), Interrupted: status.ShowsRun(a.cr),
	})
	if err := a.invalid; err != nil && !a.finalizing() {
		if a.refusal != nil && a.refusal.Reason == content.ReasonInvalidAnnotation {
			err = errors.Join(err, errors.New(a.refusal.Message))
		}
		a.refusal = content.Refusal(content.ReasonInvalidAnnotation, err)
	}
	var err error
	if a.username, err = r.Watch.ServiceAccount.Username(a.cr, r.Defaults.ServiceAccount); err != nil {
		a.refusal = content.Refusal(content.ReasonInvalidSpec, err)
	}
	if a.refusal != nil { // It is a failure, and fit to be shown, whatever the content made it.
		a.refusal = content.Refusal(a.refusal.Reason, errors.New(a.refusal.Message))
	}
}

// run runs the content and concludes the attempt. runCtx ends when the run must end; ctx
// is that of the attempt, whose writes go on then.
func (r *Reconciler) run(ctx, runCtx context.Context, a *attempt) error {
	runCtx, cancel := context.WithCancelCause(runCtx)
	defer cancel(nil)
	end := func(cause *interruption) {
		if cause != errSuperseded || !a.finalizing() {
			cancel(cause)
		}
	}
	if !a.mailbox.listenInRun(a.readCtx, a.cr.GetUID(), end) {
		return nil
	}
	switch { // The run would be ended at once.
	case r.Attempts.Stopped():
		return errStopped
	case runCtx.Err() != nil:
		return context.Cause(runCtx)
	}
	if a.digest == "" {
		a.digest = r.digestWith(runCtx, a)
	}
	a.state.throttle.begin(a.trigger, r.Clock.Now(), r.Defaults.MaxBackoff) // To look costs requests, so that it takes a token as a run does.
	covered, dirty := false, a.mailbox.take()
	defer func() { // After a panic too: the look of a program's own content may panic.
		if !covered {
			a.mailbox.putBack(dirty)
		}
	}()
	var err error
	covered, err = r.runUnlessSettled(ctx, runCtx, a)
	return err
}

// runUnlessSettled runs the content, unless it finds everything as a run would leave it; covered is true after both.
// The run of content that looks first may repair only the differences that it has found: triggers that come after this call need another run.
func (r *Reconciler) runUnlessSettled(ctx, runCtx context.Context, a *attempt) (covered bool, err error) {
	if result, rests := a.rests(); rests && r.mayConclude(runCtx) {
		r.conclude(a, conclusion{Result: result, period: a.period, digest: a.digest})
		return true, nil
	}
	unlock, err := r.lock(runCtx, a)
	if err != nil {
		return false, err
	}
	defer unlock() // After the access has ended.
	grant, err := r.Access.Grant(a.cr, a.username, a.work.Labels())
	if err != nil {
		return false, fmt.Errorf("open the API to the run: %w", err)
	}
	defer grant.Revoke()
	at := newProgress(func(to Phase) { r.states.move(a.entry, to) })
	job := content.Job{Run: r.describe(a), Kubeconfig: grant.Kubeconfig, Working: func(task string) { at.begin(task, r.Clock.Now()) }, Located: at.placed, Denied: grant.Denied}
	if result, settled := a.work.Settled(runCtx, job); settled && r.mayConclude(runCtx) {
		r.conclude(a, conclusion{Result: result, period: a.period, digest: a.digest})
		return true, nil
	}
	if err := r.reportStart(ctx, a); err != nil {
		return false, err
	}
	a.beginRun()
	if !r.Watch.ContentKind().ChecksEachPeriod {
		a.mailbox.take() // It did not look, so it sees everything that came before now.
	}
	r.states.move(a.entry, PhaseRunning)
	runCtx, job.Run = r.trace(runCtx, job.Run)
	result := r.runShown(ctx, runCtx, a, job, at)
	r.warnOfCreated(ctx, a)
	a.readies.addOf(a.cr)
	return true, r.ended(runCtx, a, job.Run, result, grant.Readies.beyond(&a.readies))
}

// ended concludes the attempt of a run that has ended here, unless there is nothing to report of it.
func (r *Reconciler) ended(runCtx context.Context, a *attempt, run content.Run, result content.Result, wroteReady bool) error {
	if !r.leads() {
		return errFenced // The run was ended, and the next leader repeats it, or goes on with it.
	}
	if result.Detached {
		return errStopped
	}
	cause := causeOf(runCtx)
	if cause == errGone || cause == errAbandoned {
		return cause
	}
	c := conclusion{Result: result, period: a.period, digest: a.digest, ended: r.Clock.Now(), traceID: run.TraceID, wroteReady: wroteReady, written: a.work.ResultStored}
	c.canceled = result.Outcome.Verdict == content.Canceled && cause == errCanceled
	r.conclude(a, c)
	return nil
}

// lock takes the lock of the CR's run. Later writes to the status succeed only while the CR belongs
// to this manager.
func (r *Reconciler) lock(ctx context.Context, a *attempt) (unlock func(), err error) {
	if r.Locks == nil {
		return func() {}, nil
	}
	unlock, err = r.Locks.Lock(ctx, a.cr.GetUID())
	waits := errors.Is(err, ErrLocked)
	if waits && !a.state.locked {
		log.FromContext(ctx).Info("waiting for the resource's run in another shard to end", "reason", err.Error())
	}
	a.state.locked = waits
	return unlock, err
}

// runShown runs the content, and shows its current step in the status until it ends, also by a
// panic.
func (r *Reconciler) runShown(ctx, runCtx context.Context, a *attempt, job content.Job, at *progress) content.Result {
	defer r.showProgress(ctx, a, at)()
	return r.runObserved(runCtx, a.work, job)
}

// warnOfCreated logs the objects that a finalizer's run has created. Kubernetes deletes them with
// the CR, even if the run succeeded.
func (r *Reconciler) warnOfCreated(ctx context.Context, a *attempt) {
	if created := r.Writers.takeCreated(a.cr.GetUID()); created != nil && a.finalizing() {
		log.FromContext(ctx).Info("WARNING: objects that the finalizer's run created will be deleted with the resource, which owns them; to keep an object, annotate it with helm.sh/resource-policy: keep", "objects", created)
	}
}

// reportStart writes the beginning of a run to the status. If the CR is paused by now, it writes
// nothing and returns errPaused. So a status that shows a pause is one: no run begins any more
// that was decided before it. It returns errFenced if another manager may lead by then.
func (r *Reconciler) reportStart(ctx context.Context, a *attempt) error {
	report := status.Started(a.cr.GetGeneration(), a.seenBefore())
	if a.asks() {
		report = report.AskedFor()
	}
	halted, started := false, r.merge(report)
	err := r.changeInterim(ctx, a, func(current *unstructured.Unstructured) []status.Operation {
		if halted = paused(&r.Watch, current); halted {
			return nil
		}
		return started(current)
	})
	switch {
	case err == nil && halted:
		return errPaused
	case err == nil && !r.leads():
		return errFenced
	}
	return err
}

// beginRun marks the beginning of a run in the CR's state. If the run comes to no conclusion,
// last stays nil and content runs again.
func (a *attempt) beginRun() {
	a.setVersion()
	a.state.last = nil
}

// mayConclude reports whether the attempt may end by the result that the content gives without a run.
func (r *Reconciler) mayConclude(ctx context.Context) bool { return ctx.Err() == nil && r.leads() }

// rests reports whether the content knows without a look that nothing has changed. Where somebody
// asks, there is a look.
func (a *attempt) rests() (content.Result, bool) {
	if a.trigger != scheduled && a.trigger != bySelfOrChild {
		return content.Result{}, false
	}
	return a.work.UpToDate()
}

// describe returns the description of the attempt's run.
func (r *Reconciler) describe(a *attempt) content.Run {
	return content.Run{
		ID:         string(uuid.NewUUID()),
		Watch:      r.Watch.GVK,
		Object:     named(a.request),
		Generation: a.cr.GetGeneration(),
		Trigger:    a.cause(r.Clock.Now()),
		Finalizer:  a.finalizing(),
		Heading:    r.Watch.ContentKind().Heading,
	}
}

// named returns the CR's name as observers get it: "namespace/name", or "name".
func named(req reconcile.Request) string { return strings.TrimPrefix(req.String(), "/") }

// removeDirectory deletes the run directory of a CR that is gone. A failure is only
// logged: the sweeper tries again.
func (r *Reconciler) removeDirectory(ctx context.Context, uid string) {
	if err := r.Content.Remove(uid); err != nil {
		log.FromContext(ctx).Error(err, "could not remove the run directory", "uid", uid)
	}
}

var errPanicked = errors.New("internal error of the manager; its log has the stack")

// runObserved runs the work and tells the observers when it starts and ends. The message of a failure
// names the rights that the run lacked, that of a canceled run why it was ended. A panic is a failure: the status says so, and the usual
// pauses hold, where the queue would repeat the attempt within milliseconds.
func (r *Reconciler) runObserved(ctx context.Context, work content.Work, job content.Job) (result content.Result) {
	result.Outcome = *content.Refusal(content.ReasonRunnerCrashed, errPanicked)
	started := r.Clock.Now()
	for _, o := range r.Observers {
		o.RunStarted(job.Run)
	}
	defer func() {
		if cause := recover(); cause != nil {
			log.FromContext(ctx).Error(errPanicked, "the content panicked", "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
		}
		for _, o := range r.Observers {
			o.RunEnded(job.Run, result, cmp.Or(result.Account.Duration, r.Clock.Now().Sub(started)))
		}
	}()
	result = work.Run(ctx, job)
	result.Outcome = result.Outcome.Explained(job)
	if cause := context.Cause(ctx); cause != nil && result.Outcome.Verdict == content.Canceled {
		result.Outcome.Message = cause.Error()
	}
	return result
}

// trace begins the trace of a run, if an observer records traces. RunEnded ends it.
func (r *Reconciler) trace(ctx context.Context, run content.Run) (context.Context, content.Run) {
	for _, o := range r.Observers {
		var id string
		ctx, id = o.Trace(ctx, run) //nolint:fatcontext // One observer records traces; others return ctx.
		run.TraceID = cmp.Or(id, run.TraceID)
	}
	if run.TraceID != "" {
		ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("trace_id", run.TraceID))
	}
	return ctx, run
}

// forgetRuns makes the observers forget the runs of a CR that is gone.
func (r *Reconciler) forgetRuns(object string) {
	for _, o := range r.Observers {
		o.Forget(r.Watch.GVK, object)
	}
}

// progressPause is the time from a run's start to the first status that names its task,
// and the shortest time from there to the next.
const progressPause = 10 * time.Second

// placePause is the time until the status says where a run executes or which object it waits for.
// Both may be over by then.
const placePause = time.Second

// progress holds the current step of a run.
type progress struct {
	// moved gets a value when the run executes elsewhere, or waits for something else.
	moved chan struct{}
	// enter counts the CR in another phase.
	enter func(Phase)

	mu      sync.Mutex
	now     status.Progress
	changes int // of now
}

func newProgress(enter func(Phase)) *progress {
	return &progress{moved: make(chan struct{}, 1), enter: enter}
}

func (p *progress) begin(task string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setWaits("")
	p.now.Task, p.now.Since = task, now
	p.changes++
}

// placed is content.Job.Located.
func (p *progress) placed(place, waits string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if place != "" && place != p.now.Place || waits != "" && waits != p.now.Waits {
		select {
		case p.moved <- struct{}{}:
		default: // It is to be shown already.
		}
	}
	p.setWaits(waits)
	p.now.Place = place
	p.changes++
}

// setWaits sets the object or event that the run waits for until its content begins.
func (p *progress) setWaits(waits string) {
	switch {
	case waits != "" && p.now.Waits == "":
		p.enter(PhaseWaiting)
	case waits == "" && p.now.Waits != "":
		p.enter(PhaseRunning)
	}
	p.now.Waits = waits
}

func (p *progress) report(generation int64) (report status.Report, changes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return status.Working(generation, p.now), p.changes
}

// showProgress writes the current step of the run to the CR's status, until stop is called. stop
// waits for the last write. If that one reaches the API server after the result, it changes
// nothing, because its patch tests the resource version.
func (r *Reconciler) showProgress(ctx context.Context, a *attempt, p *progress) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressPause)
		defer ticker.Stop()
		shown := 0
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-p.moved:
				sleep(ctx, placePause)
			}
			report, changes := p.report(a.cr.GetGeneration())
			if changes == shown {
				continue
			}
			if err := r.writeStatus(ctx, a, r.merge(report), fewTries); err != nil {
				log.FromContext(ctx).V(1).Info("the running task could not be written to the status", "error", err.Error())
				continue // The next one may.
			}
			shown = changes
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// Once is one run that somebody asked for, whatever ran for the CR before.
type Once struct {
	CR *unstructured.Unstructured
	// Finalizing runs the content of the watch's finalizer, which must have one.
	Finalizing bool
	// ReportStatus writes the result to the CR's status.
	ReportStatus bool
}

// RunOnce prepares and executes the run as an attempt of Reconcile would. It decides
// nothing, waits for no slot and writes no finalizer. A CR that is refused gives the
// outcome that says why. It uses the Reconciler's Watch, Defaults, Content, Access
// and Clock, and for ReportStatus also Client, Reader and Attempts.
func (r *Reconciler) RunOnce(ctx context.Context, o Once) (content.Outcome, error) {
	a := newOnce(r, o)
	if r.prepare(ctx, a); a.refusal != nil {
		return *a.refusal, r.reportOnce(ctx, a, o, conclusion{refused: true, Result: content.Result{Outcome: *a.refusal}})
	}
	grant, err := r.Access.Grant(a.cr, a.username, a.work.Labels())
	if err != nil {
		return content.Outcome{}, fmt.Errorf("open the API to the run: %w", err)
	}
	defer grant.Revoke()
	a.readies.addOf(a.cr)
	result := r.runObserved(ctx, a.work, content.Job{Run: r.describe(a), Kubeconfig: grant.Kubeconfig, Working: func(string) {}, Denied: grant.Denied})
	return result.Outcome, r.reportOnce(ctx, a, o, conclusion{Result: result, ended: r.Clock.Now(), wroteReady: grant.Readies.beyond(&a.readies)})
}

func newOnce(r *Reconciler, o Once) *attempt {
	a := &attempt{request: reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.CR)}, entry: &entry{}, observation: r.observed(o.CR), decision: decision{step: run}}
	a.before = status.Last(o.CR)
	if o.Finalizing {
		a.step = finalize
	}
	return a
}

// reportOnce writes no digest: the manager runs the content once more, with its own
// settings. It writes no time of a retry, because nobody retries.
func (r *Reconciler) reportOnce(ctx context.Context, a *attempt, o Once, c conclusion) error {
	if !o.ReportStatus {
		return nil
	}
	r.conclude(a, c)
	a.conclusion.next = time.Time{}
	return r.writeResult(context.WithoutCancel(ctx), a)
}
