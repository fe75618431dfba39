package fire

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
)

// faults are the ways in which a write goes wrong, by name.
func faults() map[string]apiproxy.Fault {
	return map[string]apiproxy.Fault{
		"conflict":    apiproxy.Refuse(409),
		"throttled":   apiproxy.Throttle(time.Second),
		"error":       apiproxy.Refuse(500),
		"unavailable": apiproxy.Refuse(503),
		"expired":     apiproxy.Expire(time.Second),
		"reset":       apiproxy.Reset(),
		"answer-lost": apiproxy.LoseAnswer(),
	}
}

var _ = Describe("a write that goes wrong", func() {
	It("is made again, whatever it was, and nothing runs again for it", func(ctx context.Context) {
		b := newBench(ctx)
		var all []*unstructured.Unstructured
		for fault, what := range faults() {
			for _, write := range []string{added, running, result, removed} {
				name := fault + "-" + write
				b.proxy.Add(apiproxy.Rule{Name: name, Match: on(name, write), Times: 2, Fault: what})
				all = append(all, b.create(ctx, flame, name, nil))
			}
		}
		for _, cr := range all {
			expectSuccess(ctx, cr, 1)
			b.expectRuns(cr, 1, 1)
			b.expectApplied(ctx, cr, map[string]int{added: 1, running: 1, result: 1})
		}

		By("deleting them")
		for _, cr := range all {
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
		}
		for _, cr := range all {
			Eventually(ctx, func(ctx context.Context) bool {
				return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr.DeepCopy()))
			}).Should(BeTrue(), "%s goes", cr.GetName())
			Expect(b.finalizerRuns(cr)).To(Equal(1), cr.GetName())
			Expect(b.met(cr.GetName())).To(BeTrue(), "the fault of %s met a write", cr.GetName())
		}
	}, SpecTimeout(2*patience))
})

var _ = Describe("a run that takes long", func() {
	It("shows the task that it is at, and a short one does not", func(ctx context.Context) {
		b := newBench(ctx)
		long := b.create(ctx, spark, "long", map[string]any{"hold": "the-task"})
		short := b.create(ctx, spark, "short", nil)
		expectSuccess(ctx, short, 1)
		Eventually(ctx, func(ctx context.Context) (harness.Condition, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(long), long)
			return harness.ConditionOf(long, "Running"), err
		}).Should(And(HaveField("Status", "True"), HaveField("Message", MatchRegexp(`^Running reconciliation: task "burn" since 20.*Z$`))))
		b.open("the-task")
		expectSuccess(ctx, long, 1)
		Expect(harness.ConditionOf(long, "Running").Message).To(Equal("Awaiting next reconciliation"))
		b.expectApplied(ctx, long, map[string]int{running: 2, result: 1})
		b.expectApplied(ctx, short, map[string]int{running: 1, result: 1})
	})
})

// expectApplied waits for the writes to an object: that one was accepted can be seen in
// the object before it is in the journal.
func (b *bench) expectApplied(ctx context.Context, cr *unstructured.Unstructured, want map[string]int) {
	GinkgoHelper()
	Eventually(ctx, func() map[string]int { return b.applied(cr) }).Should(Equal(want), cr.GetName())
}

// applied counts the writes to an object that the API server accepted.
func (b *bench) applied(cr *unstructured.Unstructured) map[string]int {
	counts := map[string]int{}
	for _, r := range b.proxy.Journal() {
		if r.Name == cr.GetName() && r.Applied() && write(r) != "" {
			counts[write(r)]++
		}
	}
	return counts
}

func (b *bench) finalizerRuns(cr *unstructured.Unstructured) int {
	GinkgoHelper()
	journal, err := readJournal(b.journalFile())
	Expect(err).NotTo(HaveOccurred())
	count := 0
	for _, entry := range journal {
		if entry.UID == string(cr.GetUID()) && entry.Finalizing && !entry.Ended {
			count++
		}
	}
	return count
}

// met reports whether the rule of the name has acted.
func (b *bench) met(rule string) bool {
	for _, r := range b.proxy.Journal() {
		if r.Rule == rule {
			return true
		}
	}
	return false
}
