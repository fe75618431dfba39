//go:build long

package leases

import (
	"context"
	"os"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// number is what the environment says, or the default.
func number(variable string, otherwise int) int {
	GinkgoHelper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	Expect(err).NotTo(HaveOccurred())
	return n
}

var _ = Describe("many lost leases", func() {
	It("leave nothing to former leaders", func(ctx context.Context) {
		var ways []way
		for i := range number("LEASES_LOSSES", 100) {
			ways = append(ways, []way{partition, partition, theft}[i%3])
		}
		newOperator(ctx).succession(ctx, ways...)
	})

	It("leave nothing to leaders that were stopped", func(ctx context.Context) {
		var ways []way
		for range number("LEASES_FREEZES", 20) {
			ways = append(ways, freeze)
		}
		newOperator(ctx).succession(ctx, ways...)
	})
})
