//go:build long

package faults

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

var _ = Describe("a manager under all faults", func() {
	It("converges to the same end under every plan", func(ctx context.Context) {
		expectAllGood(ctx, plan.All())
	}, NodeTimeout(28*time.Minute))
})
