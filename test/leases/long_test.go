//go:build long

package leases

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

var _ = Describe("many lost leases", func() {
	It("leave nothing to former leaders", func(ctx context.Context) {
		newOperator(ctx).succession(ctx, slices.Repeat([]way{partition, partition, theft}, 34)...)
	})

	It("leave nothing to leaders that were stopped", func(ctx context.Context) {
		newOperator(ctx).succession(ctx, slices.Repeat([]way{freeze}, 20)...)
	})
})

var _ = Describe("a resource that moves 200 times between shards", func() {
	It("has one run at most", func(ctx context.Context) {
		s := newShards(ctx)
		s.leads(ctx, s.replicas[0])
		for i := range 200 {
			s.move(ctx, func(from, to int) {
				switch i % 20 {
				case 7:
					s.kill(from)
				case 17:
					s.kill(to)
				}
			})
		}
		s.judge(ctx)
	})
})

var _ = Describe("a resource that moves from one shard to another, while managers are killed at the locks of runs", func() {
	It("has one run at most", func(ctx context.Context) {
		s := faulty(ctx, plan.Lost, plan.Internal)
		for range 5 {
			for _, verb := range []string{"create", "delete"} {
				s.dies(ctx, plan.CrashBefore, verb)
				s.dies(ctx, plan.CrashAfter, verb)
			}
		}
		s.judge(ctx)
	})
})
