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

// killRun kills chart-exec, if it executes, and lets the manager go on.
const killRun plan.Fault = "kill-run"

// faultPlan is a fault at the n-th request of a phase that matters, counted from 1, or so long after the begin of
// the phase. Faults that last meet the repetitions of a write too.
type faultPlan struct {
	phase   string
	request int
	fault   plan.Fault
	after   time.Duration
}

// String is the name of the plan.
func (p faultPlan) String() string {
	if p.request == 0 {
		return fmt.Sprintf("%s/%s/%s", p.phase, p.after, p.fault)
	}
	return fmt.Sprintf("%s/%d/%s", p.phase, p.request, p.fault)
}

// life is that of one CR: a fault or none in each phase, in the order of the phases.
type life []faultPlan

func (l life) in(phase string) (faultPlan, bool) {
	for _, p := range l {
		if p.phase == phase {
			return p, true
		}
	}
	return faultPlan{}, false
}

// performAll performs the plans of the lives, so many lives at once, and tells how it went.
func performAll(ctx context.Context, parallel int, every bool, lives []life) {
	GinkgoHelper()
	began, plans, next := time.Now(), 0, make(chan life, len(lives))
	for _, one := range lives {
		next <- one
		plans += len(one)
	}
	close(next)
	var labs []*faultLab
	for range min(parallel, len(lives)) {
		labs = append(labs, newFaultLab(ctx, every))
	}
	var working sync.WaitGroup
	for _, lab := range labs {
		working.Go(func() {
			if every {
				lab.live(ctx, nil) // The first CR has more requests than others.
			}
			for one := range next {
				lab.live(ctx, one)
			}
		})
	}
	working.Wait()
	converged, killed := 0, 0
	for _, lab := range labs {
		converged += lab.converged
		killed += int(lab.killed.Load())
	}
	AddReportEntry("fault plans", fmt.Sprintf("%d of %d plans of charts converged, and %d processes of chart-exec alone were killed; %.0f s", converged, plans, killed, time.Since(began).Seconds()), ReportEntryVisibilityAlways)
	Expect(converged).To(Equal(plans))
	for _, lab := range labs {
		Eventually(ctx, lab.left).Should(BeEmpty())
	}
}

var _ = Describe("a release under faults", Label("long"), func() {
	It("converges as without one under the fixed plans", func(ctx context.Context) {
		performAll(ctx, 4, false, []life{
			{{phase: "install", request: 4, fault: plan.CrashBefore}, {phase: "upgrade", request: 4, fault: plan.Lost}, {phase: "uninstall", request: 4, fault: plan.Away}},
			{{phase: "install", request: 6, fault: plan.Forbidden}, {phase: "upgrade", request: 6, fault: plan.CrashAfter}, {phase: "uninstall", request: 2, fault: plan.Unavailable}},
			{{phase: "install", request: 2, fault: plan.Throttled}, {phase: "upgrade", request: 5, fault: plan.Reset}, {phase: "uninstall", request: 6, fault: plan.CrashAfter}},
			{{phase: "install", request: 7, fault: plan.Timeout}, {phase: "upgrade", request: 3, fault: plan.Conflict}, {phase: "uninstall", request: 3, fault: plan.Internal}},
			{{phase: "upgrade", request: 15, fault: plan.Forbidden}}, // Helm cannot mark the former revision as superseded.
		})
	})
})
