//go:build long

package charts

import (
	"context"
	"flag"
	"math/rand/v2"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/plan"
)

var chosen = flag.String("plans", "", "a regular expression: only plans of faults with such a name are performed, such as upgrade/36/403")

// livesOf puts the chosen plans for the requests of the phases together: a CR goes through one of each phase.
func livesOf(requests map[string][]apiproxy.Request, faults func(apiproxy.Request) []plan.Fault) (lives []life, points int) {
	GinkgoHelper()
	wanted, err := regexp.Compile(*chosen)
	Expect(err).NotTo(HaveOccurred())
	plans := map[string][]faultPlan{}
	for _, phase := range phases {
		for n, r := range requests[phase] {
			GinkgoWriter.Printf("%-9s %2d %s %s\n", phase, n+1, r.Verb, r.Path)
			for _, fault := range faults(r) {
				if p := (faultPlan{phase: phase, request: n + 1, fault: fault}); wanted.MatchString(p.String()) {
					plans[phase] = append(plans[phase], p)
				}
			}
		}
	}
	for n := range max(len(plans["install"]), len(plans["upgrade"]), len(plans["uninstall"])) {
		var one life
		for _, phase := range phases {
			if n < len(plans[phase]) {
				one = append(one, plans[phase][n])
			}
		}
		lives = append(lives, one)
		points += len(one)
	}
	return lives, points
}

// requestFaults are the faults that can meet a request once. One that changes nothing has no conflict, and the
// cluster is the same before it and after it.
func requestFaults(r apiproxy.Request) []plan.Fault {
	faults := []plan.Fault{plan.Lost, plan.Forbidden, plan.Internal, plan.Timeout, plan.CrashBefore}
	if changes(r) {
		faults = append(faults, plan.Conflict, plan.Reset, plan.CrashAfter, killRun)
	}
	return faults
}

var _ = Describe("a release under all faults", func() {
	It("converges as without one, whatever write it was", func(ctx context.Context) {
		lives, points := livesOf(newFaultLab(ctx, false).record(ctx), func(apiproxy.Request) []plan.Fault { return writeFaults })
		Expect(*chosen != "" || points >= 500).To(BeTrue(), "%d points", points)
		performAll(ctx, 6, false, lives)
	}, NodeTimeout(90*time.Minute))

	It("converges as without one, whatever request it was", func(ctx context.Context) {
		lives, points := livesOf(newFaultLab(ctx, true).record(ctx), requestFaults)
		Expect(*chosen != "" || points >= 1000).To(BeTrue(), "%d points", points)
		performAll(ctx, 8, true, lives)
	}, NodeTimeout(90*time.Minute))

	It("converges as without one after a hundred kills at random moments", func(ctx context.Context) {
		const longest = 1500 * time.Millisecond // About as long as an action takes.
		r := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		var lives []life
		for kills := 0; kills < 100; kills += len(phases) {
			var one life
			for _, phase := range phases {
				fault := []plan.Fault{plan.CrashBefore, killRun}[r.IntN(2)]
				one = append(one, faultPlan{phase: phase, fault: fault, after: time.Duration(r.Int64N(int64(longest)))})
			}
			lives = append(lives, one)
		}
		performAll(ctx, 4, true, lives)
	}, NodeTimeout(30*time.Minute))
})
