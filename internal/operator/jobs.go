package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/engine"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	"github.com/ensign-operator/ensign/internal/jobs/executor"
	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/options"
)

// jobRuns is the common part of the watches with executor: job.
type jobRuns struct {
	executor *executor.Executor
	source   template.Source // without the part of the watch
}

// inJobsOf returns the executor of the runs of the watch, whose assignments have that in common.
func (c *components) inJobsOf(w watches.Watch, assignment wire.Assignment) (_ *executor.Runner, err error) {
	if c.jobs == nil {
		if c.jobs, err = c.runInJobs(); err != nil {
			return nil, err
		}
	}
	source := c.jobs.source
	source.Watch, source.Timeout = *w.Job, w.Timeout
	return &executor.Runner{Executor: c.jobs.executor, Source: source, ManageStatus: w.ManageStatus, Assignment: assignment}, nil
}

// jobRunner executes runs in Jobs. A manager that ran them itself before has left files.
type jobRunner struct {
	*executor.Runner

	local engine.Runner
}

// Remove implements engine.Runner.
func (r jobRunner) Remove(uid string) error {
	return errors.Join(r.Runner.Remove(uid), r.local.Remove(uid))
}

// defaultMaxConcurrentJobs is the default limit of concurrent runs in Jobs. They take only the
// manager's memory for their events.
const defaultMaxConcurrentJobs = 50

// runInJobs makes and adds the parts that runs in Jobs need: the informer of Jobs, and the server
// of their agents. The kinds of content are connected.
func (c *components) runInJobs() (*jobRuns, error) {
	namespace := leadership.Namespace(c.election)
	if namespace == "" {
		return nil, leadership.ElectionError("LeaderElectionNamespace", "", "outside of a pod, executor: job needs a namespace for the Jobs")
	}
	kube, err := kubernetes.NewForConfig(c.client)
	if err != nil {
		return nil, fmt.Errorf("prepare runs in Jobs: %w", err)
	}
	direct, err := client.New(c.client, client.Options{Scheme: scheme.Scheme, HTTPClient: c.GetHTTPClient()}) // A program's scheme may have its own kinds alone.
	if err != nil {
		return nil, fmt.Errorf("prepare runs in Jobs: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	known, err := identity.Load(ctx, direct, types.NamespacedName{Namespace: namespace, Name: c.recordName("jobs")}, nil)
	if err != nil {
		return nil, err
	}
	log := c.options.Logger.WithName("jobs")
	j := &jobRuns{
		source: template.Source{
			Own: ownPod(ctx, c.options, kube, namespace), Executable: c.options.Executable, Namespace: namespace, Operator: labelValue(leadership.ShardLease(cmp.Or(c.election.LeaderElectionID, "ensign"), c.shard)),
			ServiceAccount: "default", Key: known.PublicKey(),
		},
	}
	if j.executor, err = executor.New(kube, namespace, j.source.Operator, log); err != nil {
		return nil, err
	}
	o := serve.Options{
		Identity: known, Registry: j.executor, Fence: c.lease.Fence, Reviewer: serve.KubeReviewer{Client: direct, Namespace: namespace, Label: template.RunLabel},
		API: c.proxy, Metrics: c.userMetrics, Address: cmp.Or(c.options.JobBindAddress, fmt.Sprintf(":%d", wire.DefaultPort)), Logger: log,
	}
	server, err := serve.New(o)
	if err != nil {
		return nil, &options.Error{Field: "JobBindAddress", Value: c.options.JobBindAddress, Err: err}
	}
	_, port, _ := net.SplitHostPort(server.Address())
	j.source.Address = cmp.Or(c.options.JobAddress, net.JoinHostPort(c.recordName("jobs")+"."+namespace+".svc", port))
	c.leftovers.add(j.executor)
	c.probes.readyz.checks["jobs"] = j.executor.Check
	if err := errors.Join(c.addServer(server.Server()), c.Add(j.executor)); err != nil {
		return nil, fmt.Errorf("add what runs in Jobs need: %w", err)
	}
	return j, nil
}

// ownPod returns the pod of this manager; nil outside of a cluster.
func ownPod(ctx context.Context, o config.Options, kube kubernetes.Interface, namespace string) *corev1.Pod {
	name := o.Env["POD_NAME"]
	if name == "" && leadership.InPod() {
		name, _ = os.Hostname() // It is the pod's name, unless the pod says otherwise.
	}
	if name == "" {
		return nil
	}
	pod, err := kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		o.Logger.Error(err, "could not read the operator's own pod, the template for pods of runs; set POD_NAME if its name is not the host's", "pod", name)
		return nil
	}
	return pod
}

// labelValue returns the name as the value of a label, which may be shorter than a name.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:10])
}

// leftovers are all places where runs leave something.
type leftovers struct{ places []sweeper.Directories }

func (l *leftovers) add(place sweeper.Directories) { l.places = append(l.places, place) }

// UIDs implements sweeper.Directories.
func (l *leftovers) UIDs() (uids []string, err error) {
	for _, place := range l.places {
		some, failed := place.UIDs()
		uids, err = append(uids, some...), errors.Join(err, failed)
	}
	return uids, err
}

// Sweep implements sweeper.Directories.
func (l *leftovers) Sweep(keep func(uid string) bool) (removed []string, err error) {
	for _, place := range l.places {
		some, failed := place.Sweep(keep)
		removed, err = append(removed, some...), errors.Join(err, failed)
	}
	return removed, err
}

// slotsOf returns the slots that runs of the watch take: those in Jobs have slots of their own.
func (c *components) slotsOf(w watches.Watch) *slots.Slots {
	if w.Job != nil {
		return c.jobSlots
	}
	return c.slots
}

// Waiting implements metrics.Leader.
func (c *components) Waiting(watch schema.GroupVersionKind) int {
	return c.slots.Waiting(watch) + c.jobSlots.Waiting(watch)
}

func newJobSlots(o config.Options, list []Watch) *slots.Slots {
	return slots.New(cmp.Or(o.MaxConcurrentJobs, defaultMaxConcurrentJobs), kindsOf(inJobs(list, true))...)
}

// inJobs returns the watches whose runs execute in Jobs, or those whose runs do not.
func inJobs(list []Watch, jobs bool) []Watch {
	return slices.DeleteFunc(slices.Clone(list), func(w Watch) bool { return (w.Job != nil) != jobs })
}
