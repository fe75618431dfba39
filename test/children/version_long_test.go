//go:build long

package children

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The garbage collector needs half a minute to learn of a version.
var _ = Describe("a child of a CR of two versions", func() {
	It("keeps the version by which its CR was known when it was made", func(ctx context.Context) {
		r := newRun(ctx, box, ground.Namespace(ctx), "cr")
		here := &place{r, r.owner.Namespace, "reference"}
		older := &place{runOf(here.cr, "v1beta1"), here.namespace, "reference"}
		apply(ctx, older, "c")
		older.isMarked(ctx, "c")
		for change := 1; change <= 2; change++ {
			applyAs("a")(ctx, here, "c", change)
			older.isMarked(ctx, "c")
			put(ctx, here, "c", change)
			older.isMarked(ctx, "c")
			patching(merging, without)(ctx, here, "c", change)
			older.isMarked(ctx, "c")
		}
		Expect(k8s.Delete(ctx, here.cr)).To(Succeed())
		Eventually(func() bool { _, err := here.find(ctx, "c"); return err != nil }).Should(BeTrue())
	})
})
