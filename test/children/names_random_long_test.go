//go:build long

package children

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
)

var _ = Describe("many random values in the place of a name", func() {
	It("reach only the named objects by kubectl and helm", func(ctx context.Context) {
		for seed := range uint64(4) {
			tryNames(ctx, seed+2, 25)
		}
	})
})
