package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// pollInterval is the time between two evaluations of a run without news. It doubles up to
// maxPollInterval.
const (
	pollInterval    = time.Second
	maxPollInterval = 30 * time.Second
)

// jobRun is a run of this manager in a Job. The goroutine of serve handles its messages, so that events are
// emitted in their order, and none after the end.
type jobRun struct {
	uid        string
	id         string
	attempt    run.Attempt
	assignment wire.Assignment
	token      string
	emit       func(event []byte)

	batches chan batch
	results chan handed
	// changed gets a value when the Job or pod changes.
	changed chan struct{}
	over    chan struct{}

	claiming sync.Mutex
	mu       sync.Mutex
	claimed  types.UID
	// adopted is true if an earlier manager began the run.
	adopted bool
	// seen is true once the informers have seen the Job.
	seen bool

	// resumes is true for a run that goes on with a Job without an assignment for it, and unbegun once
	// the pod asks for one: then nothing of it has begun.
	resumes bool
	unbegun atomic.Bool

	// next is the number of the next event, 0 until an adopted run has given one. Only the goroutine of
	// serve changes it.
	next atomic.Int64

	// For the goroutine of serve alone: the last observed pod, and the last place in the status.
	pod      *corev1.Pod
	refused  string
	stalled  string
	waited   string
	lost     bool
	reported [2]string
	// stays is true if the pod has ended without a result, and its log may say why.
	stays bool
}

// newRun returns a run that has no Job yet. The access of the run is in the kubeconfig of the spec.
func (x *Runner) newRun(spec run.Spec, attempt run.Attempt, emit func(event []byte)) (*jobRun, error) {
	config, err := clientcmd.Load(spec.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the run: %w", err)
	}
	r := &jobRun{uid: spec.UID, id: spec.ID, attempt: attempt, assignment: wire.Assignment{Common: x.Common}, emit: emit}
	for _, c := range config.Contexts {
		r.assignment.Namespace = c.Namespace
		if user := config.AuthInfos[c.AuthInfo]; user != nil {
			r.token = user.Token
		}
	}
	spec.Kubeconfig = nil
	r.assignment.Spec = spec
	r.next.Store(1)
	r.open()
	return r, nil
}

func (r *jobRun) open() {
	r.batches, r.results, r.changed, r.over = make(chan batch), make(chan handed), make(chan struct{}, 1), make(chan struct{})
}

// predecessor returns the earlier run that blocks this one. It has the same access, and its events are
// ignored.
func (r *jobRun) predecessor() *jobRun {
	p := &jobRun{uid: r.uid, id: r.id, attempt: r.attempt, assignment: r.assignment, token: r.token, emit: func([]byte) {}, resumes: r.resumes}
	p.attempt.Located = func(place, _ string) { r.showProgress("", "until the resource's earlier run ends, in "+place) }
	p.open()
	return p
}

// setJob sets the Job of the run. An adopted one keeps its ID, and goes on from the next event of its
// agent.
func (r *jobRun) setJob(job *batchv1.Job) {
	r.claimed = types.UID(job.Annotations[template.ClaimAnnotation])
	if id := job.Annotations[template.RunAnnotation]; id != r.id || r.claimed != "" {
		r.assignment.Spec.ID, r.adopted = id, true
		r.next.Store(0)
	}
}

func (r *jobRun) claimedBy() types.UID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claimed
}

func (r *jobRun) setClaimed(pod types.UID) {
	r.mu.Lock()
	r.claimed = pod
	r.mu.Unlock()
	r.wake()
}

// wake makes serve evaluate the run.
func (r *jobRun) wake() {
	select {
	case r.changed <- struct{}{}:
	default: // It is awake already.
	}
}

// showProgress reports where the run executes and why it waits.
func (r *jobRun) showProgress(place, waitingFor string) {
	if now := [2]string{place, waitingFor}; now != r.reported && r.attempt.Located != nil {
		r.reported = now
		r.attempt.Located(place, waitingFor)
	}
}

// serve returns the result of the run. It is detached if ctx ends because the manager stops.
func (r *jobRun) serve(ctx context.Context, c *jobCluster, job *batchv1.Job) run.Result {
	log := log.FromContext(ctx).WithValues("job", job.Name, "run", r.assignment.Spec.ID)
	if r.adopted {
		log.Info("resuming a run that an earlier manager began in a Job")
	}
	pause := pollInterval
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	r.wake()
	for {
		select {
		case <-ctx.Done():
			return r.end(ctx, c, job)
		case b := <-r.batches:
			b.next <- r.take(b)
		case h := <-r.results:
			if r.accepts(h) {
				return remote(h.result)
			}
		case <-r.changed:
			pause = pollInterval
			timer.Reset(pause) // Not every effect of the change is visible to informers, such as a refused pod.
			if r.unbegun.Load() {
				return run.Result{Outcome: canceled("it had not begun"), Remote: true}
			}
			if result, over := r.evaluate(ctx, c, job); over {
				return result
			}
		case <-timer.C:
			r.ask(ctx, c, job)
			if result, over := r.evaluate(ctx, c, job); over {
				return result
			}
			timer.Reset(pause)
			pause = min(2*pause, maxPollInterval)
		}
	}
}

// ask asks the API server for facts that informers do not have, if the pod of a run is missing or does
// not start.
func (r *jobRun) ask(ctx context.Context, c *jobCluster, job *batchv1.Job) {
	switch {
	case r.claimedBy() != "":
	case r.pod == nil:
		r.refused = c.whyNoPod(ctx, job)
	case isStarting(r.pod):
		r.stalled = c.whyNotStarted(ctx, r.pod)
	}
	r.lost = r.pod == nil && c.hasLostItsPods(ctx, job)
}

func remote(r wire.Result) run.Result {
	r.Remote = true
	return r.Result
}

// evaluate returns the result if the run is over, and reports its progress otherwise.
func (r *jobRun) evaluate(ctx context.Context, c *jobCluster, job *batchv1.Job) (run.Result, bool) {
	v := r.snapshot(c, job)
	s := evaluate(v)
	if !s.over {
		if !isEnding(v) {
			r.waited = s.waitingFor
		}
		r.showProgress(s.place, s.waitingFor)
		return run.Result{}, false
	}
	if result, err := wire.DecodeTermination([]byte(s.message)); err == nil && result.RunID == r.assignment.Spec.ID && result.Outcome.Verdict != content.Canceled {
		if next := r.next.Load(); next > 0 && result.Events >= next {
			log.FromContext(ctx).Info("the pod of the run ended before it could send all events", "missing", result.Events+1-next)
		}
		return remote(result), true
	}
	r.stays = v.pod != nil && !v.gone
	return run.Result{Outcome: s.failure, Remote: true}, true
}

// snapshot returns the state of the run in Kubernetes. Until the informers have seen the Job, it is as
// it was created.
func (r *jobRun) snapshot(c *jobCluster, job *batchv1.Job) snapshot {
	v := snapshot{job: c.job(job.Name, job.UID), claimed: r.claimedBy() != "", refused: r.refused, stalled: r.stalled, waited: r.waited, lost: r.lost, now: time.Now()}
	if v.job != nil {
		r.seen = true
	} else if !r.seen {
		v.job = job
	}
	if pod := c.pod(job.UID, r.claimedBy()); pod != nil {
		r.pod = pod
	} else {
		v.gone = r.pod != nil
	}
	v.pod = r.pod
	return v
}

// end handles the end of ctx. If the run is not wanted any more, its Job is removed. Otherwise the
// manager stops, and leaves the Job to the next one.
func (r *jobRun) end(ctx context.Context, c *jobCluster, job *batchv1.Job) run.Result {
	result := run.Result{Outcome: canceled("the run goes on in its Job, for the next manager"), Remote: true, Detached: true}
	cause := context.Cause(ctx)
	if !errors.Is(cause, content.ErrUnwanted) {
		return result
	}
	switch err := r.remove(context.WithoutCancel(ctx), c, job); {
	case err == nil:
		result.Outcome, result.Detached = canceled("the run was ended: "+cause.Error()), false
	case !errors.Is(err, errStops):
		result.Outcome, result.Detached = *content.Refusal(content.ReasonRunnerCrashed, fmt.Errorf("the run can't be ended, although %w: %w", cause, err)), false
	}
	return result
}

// remove removes the Job and waits until its pod is gone. Until then it answers the agent, which would
// otherwise not end.
func (r *jobRun) remove(ctx context.Context, c *jobCluster, job *batchv1.Job) error {
	removed := make(chan error, 1)
	go func() { removed <- c.removeAndWait(ctx, job) }()
	for {
		select {
		case err := <-removed:
			return err
		case b := <-r.batches:
			b.next <- r.take(b)
		case h := <-r.results:
			h.answer <- nil
		}
	}
}
