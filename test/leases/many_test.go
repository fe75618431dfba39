//go:build long

package leases

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/trivial"
)

// many is how many CRs three shards have, and moved how many of them change their shard.
const many, moved = 5000, 500

// selectorsOfThree are those of three shards, by the value of the label "shard".
var selectorsOfThree = map[string]string{"": "!shard", "1": "shard=1", "2": "shard=2"}

// numbered returns the name of a CR.
func numbered(i int) string { return fmt.Sprintf("cr-%05d", i) }

// shardOf returns the label of a CR: "" is none.
func shardOf(i int) string { return []string{"", "1", "2"}[i%3] }

// writersOfStatus returns, by the name of a CR, who has written its status since then.
func writersOfStatus(log audit.Log, namespace string) map[string]sets.Set[string] {
	GinkgoHelper()
	requests, err := log.Events(`"namespace":"` + namespace + `"`)
	Expect(err).NotTo(HaveOccurred())
	writers := map[string]sets.Set[string]{}
	for _, r := range requests {
		if r.ImpersonatedUser == nil || r.ObjectRef.Subresource != "status" || r.ResponseStatus.Code >= 300 {
			continue
		}
		if writers[r.ObjectRef.Name] == nil {
			writers[r.ObjectRef.Name] = sets.New[string]()
		}
		writers[r.ObjectRef.Name].Insert(r.ImpersonatedUser.Username)
	}
	return writers
}

var _ = Describe("5,000 resources in three shards", func() {
	It("are each one shard's, and none is nobody's", func(ctx context.Context) {
		o := newOperator(ctx)
		Expect(ground.Client.DeleteAllOf(ctx, harness.Custom(kind, o.Namespace, "", nil), client.InNamespace(o.Namespace))).To(Succeed())
		var err error
		o.Options, err = trivial.As(o.Options)
		Expect(err).NotTo(HaveOccurred())
		names := map[string]string{} // of the managers, by the label
		for label, selector := range selectorsOfThree {
			names[label] = o.start("--watch-label-selector=" + selector).name
		}
		each := func(n int, f func(i int) error) {
			GinkgoHelper()
			group := errgroup.Group{}
			group.SetLimit(8)
			for i := range n {
				group.Go(func() error { return f(i) })
			}
			Expect(group.Wait()).To(Succeed())
		}
		each(many, func(i int) error {
			cr := harness.Custom(kind, o.Namespace, numbered(i), map[string]any{})
			if label := shardOf(i); label != "" {
				cr.SetLabels(map[string]string{"shard": label})
			}
			return ground.Client.Create(ctx, cr)
		})
		o.allSucceed(ctx, many)
		writers := writersOfStatus(audit.Log{Path: auditLog}, o.Namespace)
		Expect(writers).To(HaveLen(many), "the union is complete")
		for i := range many {
			Expect(writers[numbered(i)].UnsortedList()).To(ConsistOf(names[shardOf(i)]), "%s has the label %q", numbered(i), shardOf(i))
		}
		By("moving some of them to the next shard, with a change that makes each run there")
		since, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		each(moved, func(i int) error {
			next := shardOf(i + 1)
			label := fmt.Sprintf("%q", next)
			if next == "" {
				label = "null"
			}
			patch := fmt.Appendf(nil, `{"metadata": {"labels": {"shard": %s}}, "spec": {"moved": true}}`, label)
			return ground.Client.Patch(ctx, harness.Custom(kind, o.Namespace, numbered(i), nil), client.RawPatch(types.MergePatchType, patch))
		})
		o.allSucceed(ctx, many)
		writers = writersOfStatus(since, o.Namespace)
		Expect(writers).To(HaveLen(moved))
		for i := range moved {
			Expect(writers[numbered(i)].UnsortedList()).To(ConsistOf(names[shardOf(i+1)]), "%s was moved to %q", numbered(i), shardOf(i+1))
		}
		Expect((&shards{operator: o}).locks(ctx)).To(BeEmpty(), "no lock is left")
	})
})

// allSucceed waits until so many CRs say that a run for them as they are has succeeded.
func (o *operator) allSucceed(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (done int, err error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.WithVersion("v1"))
		if err := ground.Client.List(ctx, list, client.InNamespace(o.Namespace)); err != nil {
			return 0, err
		}
		for i := range list.Items {
			observed, _, _ := unstructured.NestedInt64(list.Items[i].Object, "status", "observedGeneration")
			if observed == list.Items[i].GetGeneration() && harness.ConditionOf(&list.Items[i], "Running").Reason == "Successful" {
				done++
			}
		}
		return done, nil
	}).WithPolling(2 * time.Second).Should(Equal(n))
}
