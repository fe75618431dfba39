package charts

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

// phases are what the user of a release does, one after the other.
var phases = []string{"install", "upgrade", "uninstall"}

// writeFaults are the faults that can meet a write of a release.
var writeFaults = []plan.Fault{
	plan.CrashBefore, plan.CrashAfter, plan.Conflict, plan.Throttled, plan.Internal, plan.Unavailable,
	plan.Forbidden, plan.Timeout, plan.Reset, plan.Lost, plan.Away,
}

// faultPlan is a fault at the n-th write of a phase, counted from 1. Faults that last meet its
// repetitions too.
type faultPlan struct {
	phase string
	write int
	fault plan.Fault
}

// String is the name of the plan.
func (p faultPlan) String() string { return fmt.Sprintf("%s/%d/%s", p.phase, p.write, p.fault) }

// life is that of one CR: a fault or none in each phase, in the order of the phases.
type life []faultPlan

// in returns the plan of a phase.
func (l life) in(phase string) (faultPlan, bool) {
	for _, p := range l {
		if p.phase == phase {
			return p, true
		}
	}
	return faultPlan{}, false
}

// performAll performs the plans of the lives, so many lives at once, and tells how it went.
func performAll(ctx context.Context, parallel int, lives []life) {
	GinkgoHelper()
	began, plans, next := time.Now(), 0, make(chan life, len(lives))
	for _, one := range lives {
		next <- one
		plans += len(one)
	}
	close(next)
	var labs []*faultLab
	for range min(parallel, len(lives)) {
		labs = append(labs, newFaultLab(ctx))
	}
	var working sync.WaitGroup
	for _, lab := range labs {
		working.Go(func() {
			for one := range next {
				lab.live(ctx, one)
			}
		})
	}
	working.Wait()
	converged := 0
	for _, lab := range labs {
		converged += lab.converged
	}
	AddReportEntry("fault plans", fmt.Sprintf("%d of %d plans of charts converged; %.0f s", converged, plans, time.Since(began).Seconds()), ReportEntryVisibilityAlways)
	Expect(converged).To(Equal(plans))
	for _, lab := range labs {
		Eventually(ctx, lab.left).Should(BeEmpty())
	}
}

var _ = Describe("a release under faults", func() {
	It("converges as without one under the fixed plans", func(ctx context.Context) {
		performAll(ctx, 4, []life{
			{{"install", 4, plan.CrashBefore}, {"upgrade", 4, plan.Lost}, {"uninstall", 4, plan.Away}},
			{{"install", 6, plan.Forbidden}, {"upgrade", 6, plan.CrashAfter}, {"uninstall", 2, plan.Unavailable}},
			{{"install", 2, plan.Throttled}, {"upgrade", 5, plan.Reset}, {"uninstall", 6, plan.CrashAfter}},
			{{"install", 7, plan.Timeout}, {"upgrade", 3, plan.Conflict}, {"uninstall", 3, plan.Internal}},
		})
	})
})
