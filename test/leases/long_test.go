//go:build long

package leases

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("many lost leases", func() {
	It("leave nothing to former leaders", func(ctx context.Context) {
		newOperator(ctx).succession(ctx, slices.Repeat([]way{partition, partition, theft}, 34)...)
	})

	It("leave nothing to leaders that were stopped", func(ctx context.Context) {
		newOperator(ctx).succession(ctx, slices.Repeat([]way{freeze}, 20)...)
	})
})
