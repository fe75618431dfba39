package leadership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// shardLabel and selectorAnnotation are at the lease of a shard. shardLabel has the prefix of
	// the leases of all shards of an operator; selectorAnnotation has the shard's selector.
	shardLabel         = "ensign.io/shard-of"
	selectorAnnotation = "ensign.io/watch-label-selector"
	countInterval      = time.Minute
	countPage          = 500
	// leaseTimeout is far more than a lease lasts, so that the clocks of machines may differ.
	leaseTimeout = 5 * time.Minute
)

// unmatchedCounter counts, while this manager leads, the CRs that no shard selects. One shard does it for
// all: that with the oldest of the leases that have a holder. A CR that nobody has is in nobody's
// log, so that only a count of all of them shows it.
type unmatchedCounter struct {
	leases      coordination.LeaseInterface
	base, lease string
	shard       labels.Selector
	reader      client.Reader
	kinds       []schema.GroupVersionKind
	namespaces  []string
	report      func(kind schema.GroupVersionKind, unmatched int)
	log         logr.Logger
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *unmatchedCounter) NeedLeaderElection() bool { return true }

// Start counts after each interval, until ctx ends.
func (c *unmatchedCounter) Start(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := c.count(ctx); err != nil && ctx.Err() == nil {
			c.log.Error(err, "could not count the resources that no shard selects")
		}
	}, countInterval, 0.2, true)
	return nil
}

// count says what this shard selects, and counts if it is the first.
func (c *unmatchedCounter) count(ctx context.Context) error {
	all, err := c.leases.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{shardLabel: c.base}.String()})
	if err != nil {
		return fmt.Errorf("list the leases of the shards: %w", err)
	}
	leases := all.Items
	if !slices.ContainsFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == c.lease }) {
		own, err := c.saySelector(ctx)
		if err != nil {
			return err
		}
		leases = append(leases, *own)
	}
	shards, first := c.alive(leases)
	for _, kind := range c.kinds {
		unmatched := 0
		if first {
			if unmatched, err = c.unmatched(ctx, kind, shards); err != nil {
				return err
			}
		}
		c.report(kind, unmatched)
	}
	return nil
}

// saySelector writes the shard's selector to its own lease.
func (c *unmatchedCounter) saySelector(ctx context.Context) (*coordinationv1.Lease, error) {
	says, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels": map[string]string{shardLabel: c.base}, "annotations": map[string]string{selectorAnnotation: c.shard.String()},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the shard's selector: %w", err)
	}
	own, err := c.leases.Patch(ctx, c.lease, types.MergePatchType, says, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the shard's selector to the lease: %w", err)
	}
	return own, nil
}

// alive returns the selectors of the shards whose leases have a holder that still renews them, and
// whether this one is the first of them.
func (c *unmatchedCounter) alive(leases []coordinationv1.Lease) (shards []labels.Selector, first bool) {
	slices.SortFunc(leases, func(a, b coordinationv1.Lease) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, lease := range leases {
		selector, err := labels.Parse(lease.Annotations[selectorAnnotation])
		renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{})
		if err != nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" || time.Since(renewed.Time) > leaseTimeout {
			continue
		}
		first = first || len(shards) == 0 && lease.Name == c.lease
		shards = append(shards, selector)
	}
	return shards, first
}

// unmatched counts the CRs of a kind that none of the shards selects.
func (c *unmatchedCounter) unmatched(ctx context.Context, kind schema.GroupVersionKind, shards []labels.Selector) (n int, err error) {
	namespaces := c.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		page := &metav1.PartialObjectMetadataList{}
		for more := true; more; more = page.Continue != "" {
			page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := c.reader.List(ctx, page, client.InNamespace(namespace), client.Limit(countPage), client.Continue(page.Continue)); err != nil {
				return 0, fmt.Errorf("list %s: %w", kind, err)
			}
			for i := range page.Items {
				if !slices.ContainsFunc(shards, func(s labels.Selector) bool { return s.Matches(labels.Set(page.Items[i].Labels)) }) {
					n++
				}
			}
		}
	}
	return n, nil
}
