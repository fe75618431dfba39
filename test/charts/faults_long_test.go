//go:build long

package charts

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a release under all faults", func() {
	It("converges as without one, whatever write it was", func(ctx context.Context) {
		writes := newFaultLab(ctx).count(ctx)
		var lives []life
		points := 0
		for n := 1; n <= slices.Max([]int{writes["install"], writes["upgrade"], writes["uninstall"]}); n++ {
			for _, fault := range writeFaults {
				var one life
				for _, phase := range phases {
					if n <= writes[phase] {
						one = append(one, faultPlan{phase, n, fault})
					}
				}
				lives = append(lives, one)
				points += len(one)
			}
		}
		Expect(points).To(BeNumerically(">=", 200), "%v", writes)
		performAll(ctx, 6, lives)
	}, NodeTimeout(45*time.Minute))
})
