//go:build long

package fire

import (
	"context"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("an API server that is away for long", func() {
	It("gets the results of what ended meanwhile after a minute", func(ctx context.Context) {
		absence(ctx, time.Minute, func(b *bench) func() { return b.proxy.Away() })
	}, SpecTimeout(2*patience))

	It("gets them after it took every request and answered none", func(ctx context.Context) {
		absence(ctx, 40*time.Second, func(b *bench) func() {
			thawed := make(chan struct{})
			remove := b.proxy.Add(apiproxy.Rule{
				Name: "frozen", Match: func(apiproxy.Request) bool { return true }, Times: apiproxy.Always,
				Fault: apiproxy.Fault{Before: func(apiproxy.Request) { <-thawed }},
			})
			return sync.OnceFunc(func() { remove(); close(thawed) })
		})
	}, SpecTimeout(2*patience))
})

var _ = Describe("a write that nobody answers", func() {
	It("is made again, and does no harm when it arrives at last", func(ctx context.Context) {
		b := newBench(ctx)
		arrive := make(chan struct{})
		late := map[string]chan error{}
		var all []*unstructured.Unstructured
		for _, write := range []string{added, running, result} {
			arrived := make(chan error, 1)
			late[write] = arrived
			b.proxy.Add(apiproxy.Rule{Name: write, Match: on(write, write), Fault: apiproxy.Fault{Before: func(r apiproxy.Request) {
				<-arrive
				arrived <- b.patch(context.WithoutCancel(ctx), r)
			}}})
			all = append(all, b.create(ctx, flame, write, nil))
		}
		for _, cr := range all {
			expectSuccess(ctx, cr, 1)
			b.expectRuns(cr, 1, 1)
		}
		close(arrive)
		for _, cr := range all {
			var err error
			Eventually(ctx, late[cr.GetName()]).Should(Receive(&err))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "a late write of %s is refused: %v", cr.GetName(), err)
			expectSuccess(ctx, cr, 1)
			Expect(harness.ConditionOf(cr, "Running").Reason).To(Equal("Successful"))
		}
	}, SpecTimeout(2*patience))
})

// patch sends a write of the manager once more, past the proxy.
func (b *bench) patch(ctx context.Context, r apiproxy.Request) error {
	cr, patch := b.custom(flame, r.Name, nil), client.RawPatch(types.JSONPatchType, r.Body)
	if r.Subresource == "status" {
		return k8s.Status().Patch(ctx, cr, patch)
	}
	return k8s.Patch(ctx, cr, patch)
}

var _ = Describe("a rival that never pauses", func() {
	It("delays a result and does not prevent it", func(ctx context.Context) { fight(ctx, time.Second/200, 20) }, SpecTimeout(3*patience))
})
