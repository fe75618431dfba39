package fire

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
)

// history holds every state of an object of one name that there ever was.
type history struct {
	mu     sync.Mutex
	states []*unstructured.Unstructured
}

// remember watches the bench's objects of a kind until the spec ends.
func (b *bench) remember(ctx context.Context, kind schema.GroupKind) *history {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.WithVersion("v1"))
	events, err := k8s.Watch(ctx, list, client.InNamespace(b.namespace))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(events.Stop)
	h := &history{}
	go func() {
		for event := range events.ResultChan() {
			state, ok := event.Object.(*unstructured.Unstructured)
			if ok && event.Type != watch.Deleted {
				h.mu.Lock()
				h.states = append(h.states, state)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

// of returns the states of one object.
func (h *history) of(cr *unstructured.Unstructured) []*unstructured.Unstructured {
	h.mu.Lock()
	defer h.mu.Unlock()
	var states []*unstructured.Unstructured
	for _, state := range h.states {
		if state.GetUID() == cr.GetUID() {
			states = append(states, state)
		}
	}
	return states
}

var _ = Describe("an object that is made anew under its name", func() {
	// The first object's run fails and the second's succeeds, so that every trace of
	// a failure in the second one is the first one's.
	DescribeTable("gets nothing of its predecessor", func(ctx context.Context, kind schema.GroupKind, what string, firstRuns int) {
		b := newBench(ctx)
		seen := b.remember(ctx, kind)
		second := b.custom(kind, "again", map[string]any{"hold": "second"})
		hung := make(chan error, 1)
		b.proxy.Add(apiproxy.Rule{Name: "hang", Match: on("again", what), Fault: apiproxy.Fault{Before: func(apiproxy.Request) {
			err := replace(ctx, b.custom(kind, "again", nil), second)
			if err == nil {
				err = restore(ctx, second)
			}
			hung <- err
		}}})
		first := b.create(ctx, kind, "again", map[string]any{"fail": "of the first"})
		Eventually(ctx, hung).Should(Receive(Succeed()))
		b.begun(ctx, second)
		b.open("second")
		expectSuccess(ctx, second, 1)
		b.expectRuns(second, 1, 1)
		b.expectRuns(first, 1, firstRuns)
		Eventually(func() int { return len(seen.of(second)) }).Should(BeNumerically(">=", 3))
		for _, state := range seen.of(second) {
			Expect(fmt.Sprint(state.Object["status"])).NotTo(ContainSubstring("of the first"))
		}
	},
		Entry("while the finalizer is added to the first one", flame, added, 0),
		Entry("while the first one's run is announced", spark, running, 0),
		Entry("while the first one's result is written", spark, result, 1),
	)

	It("ends the run of its predecessor, whose result is nobody's", func(ctx context.Context) {
		b := newBench(ctx)
		seen := b.remember(ctx, spark)
		first := b.create(ctx, spark, "again", map[string]any{"hold": "first", "fail": "of the first"})
		b.begun(ctx, first)
		second := b.custom(spark, "again", nil)
		Expect(replace(ctx, b.custom(spark, "again", nil), second)).To(Succeed())
		expectSuccess(ctx, second, 1)
		b.open("first")
		_, ended := b.runs(first, 1)
		Expect(ended).To(BeZero(), "the first one's run was ended")
		b.expectRuns(second, 1, 1)
		for _, state := range seen.of(second) {
			Expect(fmt.Sprint(state.Object["status"])).NotTo(ContainSubstring("of the first"))
		}
	})
})

// replace deletes the object of a name, waits for its end, and makes another.
func replace(ctx context.Context, old, fresh *unstructured.Unstructured) error {
	if err := k8s.Delete(ctx, old); err != nil {
		return err
	}
	for {
		err := k8s.Create(ctx, fresh)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// restore gives an object a status as from a backup, so that a patch that was
// meant for its predecessor would find its places in it.
func restore(ctx context.Context, cr *unstructured.Unstructured) error {
	var conditions []any
	for _, kind := range []string{"Running", "Successful"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "Unknown", "reason": "Restored", "message": ""})
	}
	cr.Object["status"] = map[string]any{"conditions": conditions}
	return k8s.Status().Update(ctx, cr)
}
