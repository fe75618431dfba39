package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/pkg/options"
)

// A shard is the part of the CRs of all watches that a manager has: those with certain labels. To
// it there are no others, so that a CR that gets another shard's labels is as good as deleted
// here, and as good as new there. That its run has ended here before one begins there is for
// runlock.go.

// parseShard returns the selector of the options; nil without one. A shard needs a lease, by which
// others know whether its manager is still there.
func parseShard(o ctrl.Options, e options.Options) (labels.Selector, error) {
	if e.WatchLabelSelector == "" {
		return nil, nil //nolint:nilnil // There is no selector.
	}
	selector, err := labels.Parse(e.WatchLabelSelector)
	if err == nil && !o.LeaderElection {
		err = errors.New("needs leader election (--leader-elect, in Go ctrl.Options.LeaderElection): by its lease, the managers of other resources know whether this one is still running")
	}
	if err != nil {
		return nil, &options.Error{Field: "WatchLabelSelector", Value: e.WatchLabelSelector, Err: err}
	}
	return selector, nil
}

// shardLease returns the name of the lease of a shard: all managers of an operator have the base in
// common, and those with the same selector the whole.
func shardLease(base string, shard labels.Selector) string {
	if shard == nil {
		return base
	}
	sum := sha256.Sum256([]byte(shard.String()))
	return base + "-shard-" + hex.EncodeToString(sum[:5])
}

// shardReader reads the CRs of a shard as if there were no others.
type shardReader struct {
	client.Reader

	shard labels.Selector
}

// Get implements client.Reader.
func (s shardReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if err := s.Reader.Get(ctx, key, object, o...); err != nil {
		return err
	}
	if !s.shard.Matches(labels.Set(object.GetLabels())) {
		kind := object.GetObjectKind().GroupVersionKind().GroupKind()
		err := apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: controller.CauseNotSelected}}
		return err
	}
	return nil
}

// List implements client.Reader.
func (s shardReader) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	if err := s.Reader.List(ctx, list, append(o, client.MatchingLabelsSelector{Selector: s.shard})...); err != nil {
		return fmt.Errorf("list the resources with the labels %s: %w", s.shard, err)
	}
	return nil
}

// reader returns the reader for live reads of CRs.
func (c *components) reader() client.Reader {
	if c.shard == nil {
		return c.writer
	}
	return shardReader{c.writer, c.shard}
}

// addShard makes and adds the parts that a shard needs beside the other managers of its operator:
// the locks of runs, and the count of the CRs that no shard selects. A manager of all CRs looks for
// the locks of shards. Without leader election there are no shards beside it.
func (c *components) addShard() error {
	if !c.election.LeaderElection {
		return nil
	}
	clients, err := coordination.NewForConfig(c.client)
	if err != nil {
		return fmt.Errorf("prepare the shard: %w", err)
	}
	leases, base := clients.Leases(c.ownNamespace()), c.election.LeaderElectionID
	locks := &runLocks{
		leases: leases, prefix: c.recordName("run-"), base: base, lease: shardLease(base, c.shard), identity: c.lease.lock.Identity(),
		fence: c.lease.fence, clock: clock.RealClock{}, seen: map[string]observedLease{},
	}
	if c.shard == nil {
		c.locks = &shardsRuns{locks: locks}
		return nil
	}
	c.locks = locks
	err = c.Add(&unmatchedCounter{
		leases: leases, base: base, lease: shardLease(base, c.shard), shard: c.shard, reader: c.writer, kinds: kindsOf(c.list), namespaces: c.namespaces,
		report: c.counters.SetUnselected, log: c.options.Logger.WithName("shards"),
	})
	if err != nil {
		return fmt.Errorf("add the count of resources that no shard selects: %w", err)
	}
	return nil
}
