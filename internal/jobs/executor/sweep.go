package executor

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/ensign-operator/ensign/internal/jobs/template"
)

// keptFor is how long a Job that has ended, and that no run has, stays for an attempt that adopts it.
const keptFor = time.Hour

// UIDs returns the UIDs of the CRs whose runs have Jobs. It implements sweeper.Directories, as Sweep does.
func (x *Executor) UIDs() ([]string, error) {
	var uids []string
	for _, job := range x.own() {
		if uid, ok := template.UID(job.Name); ok {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// Sweep removes the Jobs of CRs that keep refuses, and those that ended long ago and that no run has:
// their result is written, but they could not be removed then.
func (x *Executor) Sweep(keep func(uid string) bool) (removed []string, err error) {
	now := time.Now()
	x.mu.Lock()
	if x.sweptFirst.IsZero() {
		x.sweptFirst = now
	}
	long := now.Sub(x.sweptFirst) >= keptFor // Otherwise an attempt that adopts it may be to come.
	x.mu.Unlock()
	var errs []error
	for _, job := range x.own() {
		uid, ok := template.UID(job.Name)
		if !ok || keep(uid) && !(long && x.isLeft(job, uid, now)) || job.DeletionTimestamp != nil {
			continue
		}
		if err := x.delete(context.Background(), job.Name, job.UID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, uid)
	}
	return removed, errors.Join(errs...)
}

// own returns the Jobs of this operator.
func (x *Executor) own() []*batchv1.Job {
	all, _ := x.jobList.Jobs(x.namespace).List(labels.SelectorFromSet(labels.Set{template.OperatorLabel: x.operator})) // A lister of an informer does not fail.
	return all
}

// isLeft reports whether the Job has ended long ago, and neither a run nor a result waits for it.
func (x *Executor) isLeft(job *batchv1.Job, uid string, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, waits := x.ended[uid]
	if waits || x.live[job.UID] != nil {
		return false
	}
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobFailed || c.Type == batchv1.JobComplete) && c.Status == "True" {
			return now.Sub(c.LastTransitionTime.Time) > keptFor
		}
	}
	return false
}
