//go:build long

package jobs

import (
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/ensign-operator/ensign/test/faults/fault"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

var _ = Describe("a run in a Job, while the API server is away", func() {
	It("is one run, whose result is neither lost nor invented, whichever write meets that", func(ctx SpecContext) {
		o := newFaulty(ctx)
		for _, point := range points() {
			o.judge(ctx, o.begin(ctx, plan.Plan{Operation: plan.Create, Point: point, Fault: plan.Away}, func() {
				time.AfterFunc(fault.Window(plan.Away), o.proxy.Away())
			}))
		}
		o.leavesNothing(ctx)
	})
})
