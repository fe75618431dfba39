//go:build long

package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

var _ = Describe("a manager under load", func() {
	It("takes up a thousand resources at once, and leaves them alone after a restart", func(ctx context.Context) {
		const resources = 1000
		found, err := newLab(ctx, "").Load(ctx, resources)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("load", fmt.Sprintf("%d resources with two slots took %.1f s; at most %d writes and %d Events for one",
			resources, found.Took.Seconds(), found.Writes, found.Events), ReportEntryVisibilityAlways)
		Expect(found.Runs).To(Equal(resources))
		Expect(found.Writes).To(Equal(3), "the finalizer, Running, and the result")
		Expect(found.Events).To(Equal(1))
		Expect(found.RunsAfter).To(BeZero(), "a restart runs nothing that has not changed")
		Expect(found.WritesAfter).To(BeZero())
		Expect(os.RemoveAll(filepath.Dir(found.Log))).To(Succeed(), "nobody needs to look at it")
	}, NodeTimeout(20*time.Minute))
})

var _ = Describe("a manager with the real Ansible under faults", func() {
	It("converges to the same end under a sample of the plans", func(ctx context.Context) {
		lab := newLab(ctx, filepath.Join(root, ".venv"))
		expectAllGood(ctx, campaign.Campaign{Perform: lab.Run, Parallel: 2}, plan.Real())
	}, NodeTimeout(20*time.Minute))
})

var _ = Describe("a manager under all faults", func() {
	It("converges to the same end under every third plan", func(ctx context.Context) {
		var chosen []plan.Plan
		for i, p := range plan.All() {
			if i%3 == 0 {
				chosen = append(chosen, p)
			}
		}
		expectAllGood(ctx, campaign.Campaign{Perform: newLab(ctx, "").Run, Parallel: parallel}, chosen)
	}, NodeTimeout(25*time.Minute))
})
