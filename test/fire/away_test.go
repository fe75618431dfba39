package fire

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
)

// soonAfter is how long the report of a result may take once the API server
// answers again: the longest pause between two tries is 5 s.
const soonAfter = 20 * time.Second

var _ = Describe("an API server that is away", func() {
	DescribeTable("gets the results of what ended meanwhile when it is back", absence,
		Entry("out of reach", 4*time.Second, func(b *bench) func() { return b.proxy.Away() }),
		Entry("unable to answer", 8*time.Second, func(b *bench) func() {
			return b.proxy.Add(apiproxy.Rule{Name: "unable", Match: func(apiproxy.Request) bool { return true }, Times: apiproxy.Always, Fault: apiproxy.Refuse(503)})
		}),
	)
})

// absence lets a run end while the API server is away for so long. Its result is
// kept, and reported without another run; what changed meanwhile runs then.
func absence(ctx context.Context, length time.Duration, leave func(*bench) (back func())) {
	GinkgoHelper()
	b := newBench(ctx)
	kept := b.create(ctx, flame, "kept", map[string]any{"hold": "kept"})
	changed := b.create(ctx, flame, "changed", map[string]any{"hold": "changed"})
	failing := b.create(ctx, spark, "failing", map[string]any{"hold": "failing", "fail": "while nobody listened"})
	idle := b.create(ctx, flame, "idle", nil)
	expectSuccess(ctx, idle, 1)
	for _, cr := range []string{"kept", "changed", "failing"} {
		_, err := b.proxy.Wait(ctx, func(r apiproxy.Request) bool { return on(cr, running)(r) && r.Applied() })
		Expect(err).NotTo(HaveOccurred())
	}

	By("taking the API server away")
	back := leave(b)
	began := time.Now()
	defer back()
	for _, gate := range []string{"kept", "changed", "failing"} {
		b.open(gate)
	}
	b.finished(ctx, kept, 1)
	b.finished(ctx, changed, 1)
	b.finished(ctx, failing, 1)
	Expect(k8s.Patch(ctx, changed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hold":"always"}}`)))).To(Succeed())
	late := b.create(ctx, flame, "late", nil)
	Consistently(ctx, b.Ended(), length-time.Since(began), time.Second).ShouldNot(BeClosed(), "the manager goes on")

	By("letting it come back")
	back()
	returned := time.Now()
	for _, cr := range []string{"kept", "failing"} {
		r, err := b.proxy.Wait(ctx, func(r apiproxy.Request) bool { return on(cr, result)(r) && r.Applied() })
		Expect(err).NotTo(HaveOccurred())
		after := r.Arrived.Sub(returned)
		AddReportEntry(cr, fmt.Sprintf("reported %s after the API server was back", after.Round(time.Millisecond)))
		Expect(after).To(BeNumerically("<", soonAfter))
	}
	expectSuccess(ctx, kept, 1)
	expectSuccess(ctx, changed, 2)
	expectSuccess(ctx, late, 1)
	b.expectRuns(kept, 1, 1)
	b.expectRuns(changed, 1, 1)
	b.expectRuns(changed, 2, 1)
	b.expectRuns(late, 1, 1)
	b.expectRuns(idle, 1, 1)
}
