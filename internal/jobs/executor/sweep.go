package executor

import (
	"context"
	"errors"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/ensign-operator/ensign/internal/jobs/template"
)

// keptFor is how long an ended Job without a run stays for an attempt that may adopt it.
const keptFor = time.Hour

// UIDs returns the UIDs of the CRs whose runs have Jobs. It implements sweeper.Directories, as Sweep does.
// It waits until the Jobs are known: the first sweep must find those of CRs that were deleted while no
// manager was running.
func (x *Executor) UIDs() ([]string, error) {
	if !cache.WaitForCacheSync(x.stopped, x.synced...) {
		return nil, errStops
	}
	var uids []string
	for _, name := range x.names() {
		if uid, ok := template.UID(name); ok {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// names returns the names of Jobs of this operator, also of those that left a pod.
func (x *Executor) names() (names []string) {
	jobs, _ := x.jobList.Jobs(x.namespace).List(x.ours()) // A lister of an informer does not fail.
	for _, job := range jobs {
		names = append(names, job.Name)
	}
	pods, _ := x.podList.Pods(x.namespace).List(x.ours())
	for _, pod := range pods {
		if name := pod.Labels[batchv1.JobNameLabel]; jobOf(pod) == "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (x *Executor) ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{template.OperatorLabel: x.operator})
}

// Sweep removes the Jobs of CRs for which keep returns false, and Jobs that ended long ago and that no
// run has: their result was written, but they could not be removed.
func (x *Executor) Sweep(keep func(uid string) bool) (removed []string, err error) {
	now := time.Now()
	x.mu.Lock()
	if x.sweptFirst.IsZero() {
		x.sweptFirst = now
	}
	long := now.Sub(x.sweptFirst) >= keptFor // Otherwise an attempt may still adopt it.
	x.mu.Unlock()
	var errs []error
	for _, name := range x.names() {
		uid, ok := template.UID(name)
		job, err := x.jobList.Jobs(x.namespace).Get(name)
		if err != nil {
			job = &batchv1.Job{} // It is gone, and its pod is left.
		}
		if !ok || keep(uid) && !(long && x.isLeft(job, uid, now)) || job.DeletionTimestamp != nil {
			continue
		}
		if err := x.delete(context.Background(), name, job.UID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, uid)
	}
	return removed, errors.Join(errs...)
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
