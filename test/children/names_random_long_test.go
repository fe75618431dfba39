//go:build long

package children

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("many random values in the place of a name", func() {
	It("reach by kubectl and helm nothing but what was meant", func(ctx context.Context) {
		for seed := range uint64(4) {
			tryNames(ctx, seed+2, 25)
		}
	})
})
