package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Executor has the runs in Jobs of a manager that have not ended. New makes it, and it must be started.
type Executor struct {
	*jobCluster

	mu sync.Mutex
	// live has the runs by the UIDs of their Jobs, and ended the Jobs of ended runs whose results may
	// not be written yet, by the UIDs of the CRs.
	live  map[types.UID]*jobRun
	ended map[string]types.UID
	// concluded has the Jobs whose results are written, by the UIDs of the CRs. They are removed soon,
	// or with the next run if their pods ended without a result, so that people can read the logs.
	concluded map[string]types.UID
	// sweptFirst is when the first sweep was.
	sweptFirst time.Time
}

// New returns an executor for the Jobs of one operator. The label distinguishes them from those of
// other operators in the namespace.
func New(client kubernetes.Interface, namespace, operator string, log logr.Logger) (*Executor, error) {
	x := &Executor{live: map[types.UID]*jobRun{}, ended: map[string]types.UID{}, concluded: map[string]types.UID{}}
	var err error
	x.jobCluster, err = newCluster(client, namespace, operator, log, x.changed)
	return x, err
}

// changed tells a run that its Job or pod has changed.
func (x *Executor) changed(job types.UID) {
	if r := x.liveRun(job); r != nil {
		r.wake()
	}
}

func (x *Executor) liveRun(job types.UID) *jobRun {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live[job]
}

// Live implements serve.Registry.
func (x *Executor) Live(job types.UID, runID string) (serve.Live, bool) {
	r := x.liveRun(job)
	return r, r != nil && r.assignment.Spec.ID == runID
}

// Claim implements serve.Registry. It writes the pod's UID to the Job for the next manager.
func (x *Executor) Claim(ctx context.Context, job types.NamespacedName, jobUID, podUID types.UID) (wire.Assignment, error) {
	r := x.liveRun(jobUID)
	if r == nil || job.Namespace != x.namespace {
		return wire.Assignment{}, serve.ErrUnknown
	}
	r.claiming.Lock()
	defer r.claiming.Unlock()
	if r.claimedBy() == "" {
		owner, err := x.writeClaim(ctx, job.Name, jobUID, podUID)
		if err != nil {
			return wire.Assignment{}, err
		}
		r.setClaimed(owner)
	}
	switch {
	case r.claimedBy() != podUID:
		return wire.Assignment{}, serve.ErrTaken
	case r.resumes: // The agent never got the assignment of an earlier manager.
		r.unbegun.Store(true)
		r.wake()
		return wire.Assignment{}, serve.ErrUnknown
	}
	return r.assignment, nil
}

// writeClaim writes the UID of the pod to the Job unless one is there, and returns the UID in the
// Job.
func (x *Executor) writeClaim(ctx context.Context, name string, jobUID, podUID types.UID) (owner types.UID, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		job, err := x.jobs().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && (job.UID != jobUID || job.DeletionTimestamp != nil) {
			return serve.ErrUnknown
		}
		if err != nil {
			return err
		}
		if owner = types.UID(job.Annotations[template.ClaimAnnotation]); owner != "" {
			return nil
		}
		patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:%q}}}`, job.ResourceVersion, template.ClaimAnnotation, podUID)
		owner = podUID
		_, err = x.jobs().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	return owner, err
}

// Remove removes the remains of the runs of a CR that is gone.
func (x *Executor) Remove(uid string) {
	x.mu.Lock()
	delete(x.ended, uid)
	delete(x.concluded, uid)
	x.mu.Unlock()
	name, of := template.Name(uid), types.UID("")
	if job, err := x.jobList.Jobs(x.namespace).Get(name); err == nil {
		of = job.UID
	}
	if of != "" || len(x.left(name, "")) > 0 {
		x.removeSoon(name, of)
	}
}

// Runner executes the runs of one watch. It is a run.Executor.
type Runner struct {
	*Executor

	Source template.Source
	// ManageStatus is the watch's.
	ManageStatus bool
	// Common is the common part of all assignments.
	Common wire.Common
}

var _ run.Executor = &Runner{}

// Remove implements run.Executor.
func (x *Runner) Remove(uid string) error {
	x.Executor.Remove(uid)
	return nil
}

// IsResumable implements run.Executor.
func (x *Runner) IsResumable(ctx context.Context, uid string, attempt run.Attempt) bool {
	if !x.waitUntilKnown(ctx) {
		return false
	}
	job, err := x.jobList.Jobs(x.namespace).Get(template.Name(uid))
	return err == nil && x.forExisting(job, attempt, "") != remove
}

// ResultStored implements run.Executor.
func (x *Runner) ResultStored(uid string) {
	x.mu.Lock()
	job, has := x.ended[uid]
	delete(x.ended, uid)
	if has {
		x.concluded[uid] = job
	}
	x.mu.Unlock()
	if has {
		x.removeSoon(template.Name(uid), job)
	}
}

// Terminate implements run.Executor.
func (x *Runner) Terminate(ctx context.Context, uid string) error {
	if !x.waitUntilKnown(ctx) {
		return context.Cause(ctx)
	}
	job, err := x.jobList.Jobs(x.namespace).Get(template.Name(uid))
	if err != nil { // There is none, but its pods may be left.
		job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: template.Name(uid), Labels: map[string]string{template.OperatorLabel: x.operator}}}
	}
	if job.Labels[template.OperatorLabel] != x.operator || err != nil && len(x.left(job.Name, "")) == 0 {
		return nil
	}
	log.FromContext(ctx).Info("removing the Job of an earlier manager, because the resource must not run now", "job", job.Name)
	return x.removeAndWait(ctx, job)
}

// Run implements run.Executor.
func (x *Runner) Run(ctx context.Context, spec run.Spec, attempt run.Attempt, emit func(event []byte)) run.Result {
	began, result := time.Now(), run.Result{Remote: true}
	if r, err := x.newRun(spec, attempt, emit); err != nil {
		result.Outcome = *content.Refusal(content.ReasonRunnerCrashed, err)
	} else if job, err := x.obtain(ctx, r); err != nil {
		result.Outcome, result.Detached = x.notBegun(ctx, err)
	} else {
		result = x.follow(ctx, r, job)
		if r.adopted {
			began = job.CreationTimestamp.Time
		}
	}
	result.Started, result.Ended = began, time.Now()
	return result
}

// HasEarlier implements run.Executor.
func (x *Runner) HasEarlier(ctx context.Context, uid string, attempt run.Attempt) bool {
	x.waitUntilKnown(ctx)
	name := template.Name(uid)
	job, err := x.jobList.Jobs(x.namespace).Get(name)
	if err != nil {
		return len(x.left(name, "")) > 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return attempt.Interrupted || !finished(job) && x.concluded[uid] != job.UID
}

// Resume implements run.Executor. If it returns nil, there is no Job and no pod of the CR. It has no
// assignment: it ends a run that has not begun.
func (x *Runner) Resume(ctx context.Context, spec run.Spec, attempt run.Attempt, emit func(event []byte)) *run.Result {
	result := run.Result{Remote: true}
	r, err := x.newRun(spec, attempt, emit)
	if err == nil {
		r.resumes = true
		var job *batchv1.Job
		if job, err = x.earlier(ctx, r); job != nil {
			result = x.follow(ctx, r, job)
			result.Started, result.Ended = job.CreationTimestamp.Time, time.Now()
			if !r.unbegun.Load() {
				return &result
			}
			err = x.removeAndWait(ctx, job)
		}
	}
	if err == nil {
		return nil
	}
	result.Outcome, result.Detached = x.notBegun(ctx, err)
	return &result
}

// notBegun returns the outcome of a run that has no Job.
func (x *Runner) notBegun(ctx context.Context, err error) (outcome content.Outcome, detached bool) {
	if ctx.Err() != nil || errors.Is(err, errStops) {
		return canceled("the run was ended before it began"), !errors.Is(context.Cause(ctx), content.ErrUnwanted)
	}
	return *content.Refusal(content.ReasonRunnerCrashed, err), false
}

func canceled(message string) content.Outcome {
	return content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: message}
}

// follow serves the run in the Job until its end, or until ctx ends.
func (x *Runner) follow(ctx context.Context, r *jobRun, job *batchv1.Job) run.Result {
	r.setJob(job)
	x.mu.Lock()
	x.live[job.UID] = r
	x.mu.Unlock()
	defer func() {
		x.mu.Lock()
		delete(x.live, job.UID)
		if r.stays {
			x.concluded[r.uid] = job.UID
		} else {
			x.ended[r.uid] = job.UID
		}
		x.mu.Unlock()
		close(r.over)
	}()
	return r.serve(ctx, x.jobCluster, job)
}
