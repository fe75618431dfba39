//go:build long

package charts

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("helm upgrade --wait of a chart with a CR that fails", func() {
	// The harness starts managers with --max-backoff=10s.
	It("ends early when the failure has stayed the same until the longest pause", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": `{{ fail "it never succeeds" }}`}, "").Start(ctx, hello.Kind)
		began := time.Now()
		output, err := umbrella(s)(ctx, `{}`)
		Expect(err).To(HaveOccurred())
		Expect(output).To(And(ContainSubstring("Hello/"+s.Namespace+"/within not ready. status: Failed"), ContainSubstring("it never succeeds")))
		Expect(time.Since(began)).To(BeNumerically("<", time.Minute))
		stalled, err := s.Condition(harness.Custom(hello, s.Namespace, "within", nil), "Stalled")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(stalled.Status).To(Equal("True"))
	})
})
