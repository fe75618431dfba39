package jobs

import (
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a run that prints a lot", Label("long"), func() {
	It("has the right verdict and all its events, and takes no memory of the manager for them", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		o.Start(ctx, work.Kind)
		const kilobytes = 60 // More in one result is cut.
		cr := o.create(ctx, "loud", map[string]any{"seconds": 6.0, "quick": true, "kilobytes": float64(kilobytes)})
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		shown, err := counted(cr, lives)
		Expect(err).NotTo(HaveOccurred())
		text, err := o.Log()
		Expect(err).NotTo(HaveOccurred())
		tasks := map[string]bool{}
		for _, found := range regexp.MustCompile(`"task": "(task \d+)"`).FindAllStringSubmatch(text, -1) {
			tasks[found[1]] = true
		}
		Expect(tasks).To(HaveLen(shown + 1))
		AddReportEntry("printed, KiB", shown*kilobytes, ReportEntryVisibilityAlways)
		o.leavesNothing(ctx)
	})
})
