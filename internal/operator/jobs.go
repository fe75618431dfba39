package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/sweeper"
	jobs "github.com/ensign-operator/ensign/internal/jobs/backend"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/leadership"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
)

// inJobsOf returns the executor of the runs of the watch, whose agents get the settings; nil if the runs do not
// execute in Jobs.
func (c *components) inJobsOf(w watches.Watch, settings agentSettings) (run.Executor, error) {
	if w.Job == nil {
		return nil, nil //nolint:nilnil // There is none.
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("encode the settings of agents: %w", err)
	}
	if c.jobs == nil {
		if c.jobs, err = c.runInJobs(); err != nil {
			return nil, err
		}
	}
	return c.jobs.Runner(w, wire.Common{UserMetrics: isAnsible(w) && c.userMetrics != nil, Settings: encoded}), nil
}

// defaultMaxConcurrentJobs is the default limit of concurrent runs in Jobs. They take only the
// manager's memory for their events.
const defaultMaxConcurrentJobs = 50

// runInJobs makes and adds the parts that runs in Jobs need. The kinds of content are connected.
func (c *components) runInJobs() (*jobs.Backend, error) {
	namespace := leadership.Namespace(c.election)
	if namespace == "" {
		return nil, leadership.ElectionError("LeaderElectionNamespace", "", "outside of a pod, executor: job needs a namespace for the Jobs")
	}
	made, err := jobs.New(jobs.Host{
		Client: c.client, HTTPClient: c.GetHTTPClient(), Fence: c.lease.Fence,
		Namespace: namespace, Operator: leadership.ShardLease(cmp.Or(c.election.LeaderElectionID, "ensign"), c.shard), Record: c.recordName("jobs"),
		Pod: ownPod(c.options), Executable: c.options.Executable, BindAddress: c.options.JobBindAddress, Address: c.options.JobAddress,
		API: c.proxy, Metrics: c.userMetrics, Log: c.options.Logger.WithName("jobs"),
	})
	if err != nil {
		return nil, err
	}
	c.leftovers.add(made.Executor)
	c.probes.Readyz.Checks["jobs"] = made.Executor.Check
	if err := errors.Join(c.addServer(made.Server()), c.Add(made.Executor)); err != nil {
		return nil, fmt.Errorf("add what runs in Jobs need: %w", err)
	}
	return made, nil
}

// ownPod returns the name of this manager's pod; "" outside of a cluster.
func ownPod(o config.Options) string {
	name := o.Env["POD_NAME"]
	if name == "" && leadership.InPod() {
		name, _ = os.Hostname() // It is the pod's name, unless the pod says otherwise.
	}
	return name
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
func inJobs(list []Watch, want bool) []Watch {
	return slices.DeleteFunc(slices.Clone(list), func(w Watch) bool { return (w.Job != nil) != want })
}
