package executor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/jobs/template"
)

// requestTimeout bounds one request to the API server.
const requestTimeout = 10 * time.Second

// jobCluster has the API server's objects of runs in Jobs: the Jobs and pods with the label of runs
// in one namespace, followed by informers.
type jobCluster struct {
	client    kubernetes.Interface
	namespace string
	operator  string
	log       logr.Logger

	factory informers.SharedInformerFactory
	jobList batchlisters.JobLister
	podList corelisters.PodLister
	synced  []cache.InformerSynced
	// failed is the last error of listing or watching the Jobs and pods.
	failed atomic.Pointer[error]
	// stopped is closed when the manager begins to stop.
	stopped chan struct{}
}

// newCluster calls changed with the UID of each Job that changes, or whose pod does, also if that loses its Job.
func newCluster(client kubernetes.Interface, namespace, operator string, log logr.Logger, changed func(job types.UID)) (*jobCluster, error) {
	c := &jobCluster{client: client, namespace: namespace, operator: operator, log: log, stopped: make(chan struct{})}
	c.factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = template.RunLabel + "=true" }))
	c.jobList, c.podList = c.factory.Batch().V1().Jobs().Lister(), c.factory.Core().V1().Pods().Lister()
	for _, informer := range []cache.SharedIndexInformer{c.factory.Batch().V1().Jobs().Informer(), c.factory.Core().V1().Pods().Informer()} {
		added, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { changed(jobOf(object)) }, UpdateFunc: func(before, _ any) { changed(jobOf(before)) }, DeleteFunc: func(object any) { changed(jobOf(object)) },
		})
		if err := errors.Join(err, informer.SetWatchErrorHandlerWithContext(c.notFollowed)); err != nil {
			return nil, fmt.Errorf("follow the Jobs of runs: %w", err)
		}
		c.synced = append(c.synced, added.HasSynced)
	}
	return c, nil
}

func (c *jobCluster) notFollowed(ctx context.Context, r *cache.Reflector, err error) {
	c.failed.Store(&err)
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

// Check is a readiness check. It fails until the Jobs and pods of runs are known: until then each run waits,
// because an earlier manager may have begun it.
func (c *jobCluster) Check(*http.Request) error {
	if !slices.ContainsFunc(c.synced, func(synced cache.InformerSynced) bool { return !synced() }) {
		return nil
	}
	if err := c.failed.Load(); err != nil {
		return fmt.Errorf("no run begins before the Jobs and pods of the namespace %s are known: %w", c.namespace, *err)
	}
	return fmt.Errorf("the Jobs and pods of the namespace %s are not known yet", c.namespace)
}

// jobOf returns the UID of a Job, or of the Job that a pod belongs to.
func jobOf(object any) types.UID {
	if last, is := object.(cache.DeletedFinalStateUnknown); is {
		object = last.Obj
	}
	switch o := object.(type) {
	case *batchv1.Job:
		return o.UID
	case *corev1.Pod:
		if owner := metav1.GetControllerOf(o); owner != nil {
			return owner.UID
		}
	}
	return ""
}

// Start implements manager.Runnable.
func (c *jobCluster) Start(ctx context.Context) error {
	c.factory.StartWithContext(ctx)
	<-ctx.Done()
	close(c.stopped)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a manager that takes over knows the
// Jobs that run at once.
func (c *jobCluster) NeedLeaderElection() bool { return false }

func (c *jobCluster) waitUntilKnown(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.synced...)
}

func (c *jobCluster) jobs() batchclient.JobInterface { return c.client.BatchV1().Jobs(c.namespace) }

// job returns the Job with the UID from the cache; nil if it is gone.
func (c *jobCluster) job(name string, uid types.UID) *batchv1.Job {
	job, err := c.jobList.Jobs(c.namespace).Get(name)
	if err != nil || job.UID != uid {
		return nil
	}
	return job
}

// pod returns the pod of the Job that has claimed it, or else the newest; nil if there is none.
func (c *jobCluster) pod(job, claimed types.UID) *corev1.Pod {
	all, _ := c.podList.Pods(c.namespace).List(labels.Everything()) // A lister of an informer does not fail.
	all = slices.DeleteFunc(all, func(p *corev1.Pod) bool { return jobOf(p) != job || claimed != "" && p.UID != claimed })
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
}

// left returns the existing pods of the Job, and those of an earlier Job of that name that was deleted
// without its pods, as a plain DELETE does by default and kubectl delete --cascade=orphan.
func (c *jobCluster) left(name string, uid types.UID) []*corev1.Pod {
	all, _ := c.podList.Pods(c.namespace).List(labels.Everything()) // A lister of an informer does not fail.
	return slices.DeleteFunc(all, func(p *corev1.Pod) bool {
		job := jobOf(p)
		return job != uid && job != "" || job == "" && p.Labels[batchv1.JobNameLabel] != name
	})
}

// hasLostItsPods reports whether the Job has ended and all its pods are gone: a node may have gone with
// them while no manager was running. It asks the API server because the informer of pods may be
// behind that of Jobs.
func (c *jobCluster) hasLostItsPods(ctx context.Context, job *batchv1.Job) bool {
	seen := c.job(job.Name, job.UID)
	if seen == nil || !finished(seen) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: template.RunLabel + "=true"})
	return err == nil && !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return jobOf(&p) == job.UID })
}

// delete deletes the Job with that UID, and pods that have lost their Job. It is not an error if they
// are gone, or belong to another run by now.
func (c *jobCluster) delete(ctx context.Context, name string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := c.jobs().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: new(metav1.DeletePropagationForeground),
	})
	if apierrors.IsConflict(err) { // Another Job has the name by now, or the Job has changed.
		if there, lookErr := c.jobs().Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(lookErr) || lookErr == nil && there.UID != uid {
			err = nil
		}
	}
	errs := []error{client.IgnoreNotFound(err)}
	for _, pod := range c.left(name, uid) {
		if jobOf(pod) == "" && pod.DeletionTimestamp == nil {
			errs = append(errs, client.IgnoreNotFound(c.client.CoreV1().Pods(c.namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))))
		}
	}
	return errors.Join(errs...)
}

// errStops is the error of runs that the manager's stop ends.
var errStops = errors.New("the manager is stopping")

// removeAndWait deletes the Job, and returns when it and its pods are gone. ctx may end before.
func (c *jobCluster) removeAndWait(ctx context.Context, job *batchv1.Job) error {
	const pause = 200 * time.Millisecond
	deleted := false
	for {
		if !deleted {
			err := c.delete(ctx, job.Name, job.UID)
			if err != nil && !passes(err) {
				return fmt.Errorf("remove the Job of an earlier run: %w", err)
			}
			deleted = err == nil
		}
		if deleted && c.gone(ctx, job) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.stopped:
			return errStops
		case <-time.After(pause):
		}
	}
}

// gone reports whether the Job and its pods are gone. It asks the API server because the informers may
// be behind.
func (c *jobCluster) gone(ctx context.Context, job *batchv1.Job) bool {
	if c.job(job.Name, job.UID) != nil || len(c.left(job.Name, job.UID)) > 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	there, err := c.jobs().Get(ctx, job.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && there.UID != job.UID
}

// removeSoon deletes the Job, and retries in the background while the API server is away. The sweep
// finds Jobs that still remain.
func (c *jobCluster) removeSoon(name string, uid types.UID) {
	go func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-c.stopped:
				cancel()
			case <-ctx.Done():
			}
		}()
		err := wait.PollUntilContextTimeout(ctx, time.Second, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
			err := c.delete(ctx, name, uid)
			if err != nil && passes(err) {
				return false, nil
			}
			return true, err
		})
		if err != nil && ctx.Err() == nil {
			c.log.Error(err, "the Job of a run that has ended could not be removed", "job", name)
		}
	}()
}
