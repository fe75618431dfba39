//go:build long

package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a release whose manager and attempt are killed anywhere", func() {
	It("converges, whatever write it was", func(ctx context.Context) {
		l := newKillLab(ctx)
		points := 0
		for _, phase := range phases {
			for n := 1; n <= l.writes[phase]; n++ {
				for _, after := range []bool{false, true} {
					l.kill(ctx, phase, n, after)
					points++
				}
			}
		}
		Expect(points).To(BeNumerically(">=", 50))
	})
})
