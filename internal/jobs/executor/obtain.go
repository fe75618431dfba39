package executor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/run"
)

// existingJob is the decision of a run about a Job that exists already.
type existingJob int

const (
	// adopt: it does the requested work, and its result has not been written.
	adopt existingJob = iota
	// waitFor: it does something else, and ends first. Its result is dropped.
	waitFor
	// remove: its result has been written, or is not wanted.
	remove
)

// forExisting decides what to do with an existing Job of the CR. runID is the ID of the new run: its Job exists
// already if its creation only seemed to fail.
//
// It adopts a Job that has ended only if the CR's status still shows its run: otherwise its result has
// been written, and a later run, such as a periodic one, must not report it again.
func (x *Runner) forExisting(job *batchv1.Job, attempt run.Attempt, runID string) existingJob {
	live := !finished(job)
	unreported := attempt.Interrupted || !x.ManageStatus && live
	switch {
	case job.DeletionTimestamp != nil || job.Labels[template.OperatorLabel] != x.Source.Operator:
		return remove
	case job.Annotations[template.RunAnnotation] == runID:
		return adopt
	case !unreported:
		return remove
	case job.Annotations[template.RequestAnnotation] == attempt.Request:
		return adopt
	case live && !attempt.Finalizing && job.Annotations[template.ClaimAnnotation] != "":
		return waitFor
	default:
		return remove
	}
}

// obtain returns the Job of the run: a new one, or one that is adopted. It returns an error if ctx
// ends first, or if the API server refuses the Job.
func (x *Runner) obtain(ctx context.Context, r *jobRun) (*batchv1.Job, error) {
	job, err := x.Source.Job(r.uid, x.annotations(r))
	if err != nil {
		return nil, err
	}
	for {
		if x.isThere(job.Name) { // It may use up the quota that a new one needs.
			if there, err := x.earlier(ctx, r); there != nil || err != nil {
				return there, err
			}
		}
		if len(x.left(job.Name, "")) > 0 {
			if err := x.clear(ctx, r, job); err != nil {
				return nil, err
			}
		}
		made, err := retryRequest(ctx, r, func() (*batchv1.Job, error) {
			made, err := x.jobs().Create(ctx, job, metav1.CreateOptions{})
			if isQuota(err) && x.isThere(job.Name) { // The watch has shown it since.
				err = apierrors.NewAlreadyExists(batchv1.Resource("jobs"), job.Name)
			}
			return made, err
		})
		if !apierrors.IsAlreadyExists(err) {
			return made, explain(err)
		}
		if there, err := x.earlier(ctx, r); there != nil || err != nil {
			return there, err
		}
	}
}

// isThere reports whether the watch has shown a Job.
func (x *Runner) isThere(name string) bool {
	_, err := x.jobList.Jobs(x.namespace).Get(name)
	return err == nil
}

// earlier returns an existing Job of the CR if the run goes on with it. Otherwise it returns nil once
// any other Job and its pod are gone. It returns an error if ctx ends first.
func (x *Runner) earlier(ctx context.Context, r *jobRun) (*batchv1.Job, error) {
	there, err := retryRequest(ctx, r, func() (*batchv1.Job, error) { return x.jobs().Get(ctx, template.Name(r.uid), metav1.GetOptions{}) })
	switch {
	case apierrors.IsNotFound(err) && !r.resumes:
		sleep(ctx, requestPause) // The name was taken a moment ago.
		return nil, nil          //nolint:nilnil // There is none.
	case apierrors.IsNotFound(err) && len(x.left(template.Name(r.uid), "")) == 0:
		return nil, nil //nolint:nilnil // There is none.
	case apierrors.IsNotFound(err):
		return nil, x.clear(ctx, r, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: template.Name(r.uid)}})
	case err != nil:
		return nil, explain(err)
	}
	switch existing := x.forExisting(there, r.attempt, r.id); {
	case existing == adopt && (!r.resumes || there.Annotations[template.ClaimAnnotation] != ""):
		return there, nil
	case existing == waitFor:
		log.FromContext(ctx).Info("waiting for the end of the resource's earlier run, which still executes in its Job", "job", there.Name)
		if result := x.follow(ctx, r.predecessor(), there); result.Detached {
			return nil, context.Cause(ctx)
		}
	}
	return nil, x.clear(ctx, r, there)
}

// clear removes the Job, and the pods of earlier ones of its name, and returns when none of them
// executes any more.
func (x *Runner) clear(ctx context.Context, r *jobRun, job *batchv1.Job) error {
	waits := "the Job of an earlier run is being removed"
	if left := x.left(job.Name, job.UID); len(left) > 0 {
		waits += fmt.Sprintf("; its pod %s on the node %s has not ended", left[0].Name, left[0].Spec.NodeName)
	}
	r.showProgress("", waits)
	return x.removeAndWait(ctx, job)
}

func explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the Job of the run can't be created: %w", err)
}

// outage is how long a run waits for an API server that does not answer.
const outage = time.Minute

// requestPause is the pause before a request is repeated, and quotaPause where a quota has to have room first.
const requestPause, quotaPause = time.Second, 5 * time.Second

// retryRequest repeats a request while the API server does not answer, or a quota is used up, and says so.
func retryRequest[T any](ctx context.Context, r *jobRun, request func() (T, error)) (T, error) {
	until := time.Now().Add(outage)
	for {
		answer, err := request()
		if err == nil || !isQuota(err) && (!passes(err) || time.Now().After(until)) || ctx.Err() != nil {
			return answer, err
		}
		r.showProgress("", err.Error())
		if isQuota(err) {
			sleep(ctx, quotaPause)
		} else {
			sleep(ctx, requestPause)
		}
	}
}

// passes reports whether an error may be temporary. A creation meets a conflict while other clients use
// up the same quota.
func passes(err error) bool {
	var answer apierrors.APIStatus
	return !errors.As(err, &answer) || apierrors.IsConflict(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}

// isQuota reports whether a ResourceQuota refuses an object until others have gone.
func isQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

func (x *Runner) annotations(r *jobRun) map[string]string {
	return map[string]string{
		template.RunAnnotation: r.id, template.RequestAnnotation: r.attempt.Request,
		template.ResourceAnnotation: r.assignment.Spec.CR, template.KindAnnotation: r.assignment.Spec.Watch,
		template.GenerationAnnotation: strconv.FormatInt(r.attempt.Generation, 10), template.FinalizerAnnotation: strconv.FormatBool(r.attempt.Finalizing),
	}
}
