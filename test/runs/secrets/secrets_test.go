package secrets

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a manager with much to hide", Ordered, func() {
	var (
		b     *bench
		found places
	)
	BeforeAll(func(ctx context.Context) {
		b = newBench(ctx, "--ansible-verbosity=2", "--ansible-log-events=Everything", "--max-backoff=1h")
		well := b.create(ctx, "well", "secretdata")
		control := b.create(ctx, "control", "nolog")
		Expect(b.ends(ctx, well)).To(Equal("Successful"))
		Expect(b.ends(ctx, control)).To(Equal("Failed"))
		found = places{}
		b.observe(ctx, found)
		Expect(b.Stop()).To(Succeed())
		b.files(found, b.Options.Home)
	})

	It("shows and leaves nothing of it", func() {
		expectNoLeaks(found, b.canaries)
	})

	It("shows what may be seen, where the search finds it", func() {
		shown := func(where string) []string { return b.canaries.in(found[where]) }
		Expect(shown("the log")).To(ContainElements("shown_name", "shown_ok", "shown_failure", "shown_configmap"))
		Expect(shown("the CR control")).To(ConsistOf("shown_failure"))
		Expect(found).To(ContainElement(WithTransform(b.canaries.in, ConsistOf("shown_failure"))))
		Expect(string(found["the metrics"])).To(ContainSubstring(`Kind=Keeper`))
		Expect(string(found["command lines"])).To(And(ContainSubstring("--json"), ContainSubstring("--role=keeper")))
	})
})
