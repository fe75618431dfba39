package leadership

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/pkg/options"
)

// A shard is the part of the CRs of all watches that a manager has: those with certain labels. To
// it there are no others, so that a CR that gets another shard's labels is as good as deleted
// here, and as good as new there. That its run has ended here before one begins there is for
// runlock.go.

// ParseShard returns the selector of the options; nil without one. A shard needs a lease, by which
// others know whether its manager is still there.
func ParseShard(o ctrl.Options, e options.Options) (labels.Selector, error) {
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

// ShardLease returns the name of the lease of a shard: all managers of an operator have the base in
// common, and those with the same selector the whole.
func ShardLease(base string, shard labels.Selector) string {
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

// Reader returns the reader for live reads of CRs: all those that r reads, or those of the shard.
func Reader(r client.Reader, shard labels.Selector) client.Reader {
	if shard == nil {
		return r
	}
	return shardReader{r, shard}
}

// Member is a manager beside the others of its operator: those with other CRs.
type Member struct {
	// Config reaches the API server behind the fence.
	Config *rest.Config
	Lease  Lease
	// Base is the name of the lease of a manager of all CRs, and Namespace that of all leases.
	Base, Namespace string
	// LockPrefix begins the names of the locks of runs.
	LockPrefix string
	// Shard selects the CRs that are this manager's; nil: all.
	Shard labels.Selector
	// Kinds are the watched ones, and Namespaces those that are watched; nil: all.
	Kinds      []schema.GroupVersionKind
	Namespaces []string
	// Reader reads the CRs of all shards.
	Reader client.Reader
	// ReportUnmatched is called with the number of CRs of a kind that no shard selects.
	ReportUnmatched func(kind schema.GroupVersionKind, unmatched int)
	Log             logr.Logger
}

// AddTo adds to a shard's manager the count of the CRs that no shard selects, and returns the locks of
// runs, which keep two managers from running content for a CR that moves between them. A manager of all CRs looks for the locks
// of shards. Without leader election there are no shards, and no locks.
func (m Member) AddTo(to manager.Manager) (controller.RunLocks, error) {
	if m.Lease.lock == nil {
		return nil, nil //nolint:nilnil // There are no locks.
	}
	clients, err := coordination.NewForConfig(m.Config)
	if err != nil {
		return nil, fmt.Errorf("prepare the shard: %w", err)
	}
	leases, own := clients.Leases(m.Namespace), ShardLease(m.Base, m.Shard)
	locks := &runLocks{
		leases: leases, prefix: m.LockPrefix, base: m.Base, lease: own, identity: m.Lease.lock.Identity(),
		fence: m.Lease.Fence, clock: clock.RealClock{}, seen: map[string]observedLease{},
	}
	if m.Shard == nil {
		return &shardsRuns{locks: locks}, nil
	}
	err = to.Add(&unmatchedCounter{
		leases: leases, base: m.Base, lease: own, shard: m.Shard, reader: m.Reader, kinds: m.Kinds, namespaces: m.Namespaces, report: m.ReportUnmatched, log: m.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("add the count of resources that no shard selects: %w", err)
	}
	return locks, nil
}
