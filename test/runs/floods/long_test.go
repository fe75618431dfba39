//go:build long

package floods

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("a run that prints far too much", Ordered, ContinueOnFailure, func() {
	var b *bench
	BeforeAll(func(ctx context.Context) { b = newBench(ctx, true, "--ansible-log-events=Nothing") })

	DescribeTable("has the right outcome and costs little", func(ctx context.Context, name string) {
		b.endure(ctx, name, "Successful", "")
	},
		Entry("a gigabyte of lines", "gigabyte"),
		Entry("a line of a gigabyte", "longest"),
		Entry("20 million lines", "tiniest"),
		Entry("20,000 failures that do not count", "events"),
	)
})

var _ = Describe("a run of Ansible that prints too much and succeeds", func() {
	It("costs little", func(ctx context.Context) {
		newBench(ctx, false, "--ansible-log-events=Everything").endure(ctx, "output", "Successful", "")
	})
})

var _ = Describe("50 runs at once", func() {
	It("cost little together", func(ctx context.Context) {
		b := newBench(ctx, true, "--max-concurrent-reconciles=50", "--max-concurrent-runs=50", "--ansible-log-events=Nothing")
		names := []string{"lines", "line", "display", "event", "failed", "listed", "members", "controls", "unended", "hosts"}
		var crs []*unstructured.Unstructured
		for n := range 50 {
			name := names[n%len(names)]
			crs = append(crs, b.create(ctx, fmt.Sprintf("%s-%d", name, n), name))
		}
		for _, cr := range crs {
			b.Outcome(ctx, cr)
		}
		grown := b.memory().Peak - b.before
		AddReportEntry("memory", fmt.Sprintf("MiB: %d", grown>>20))
		Expect(grown).To(BeNumerically("<=", maxGrowth), "bytes by which the manager grew")
	})
})
