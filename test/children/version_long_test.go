//go:build long

package children

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The garbage collector needs half a minute to learn of a version.
var _ = Describe("a child of a CR of two versions", func() {
	It("gets the version by which its CR is known, with each way of writing", func(ctx context.Context) {
		r := newRun(ctx, box, ground.Namespace(ctx), "cr")
		here := &place{r, r.owner.Namespace, "reference"}
		older := &place{runOf(here.cr, "v1beta1"), here.namespace, "reference"}
		for name, write := range map[string]func(context.Context, *place, string, int){
			"applied": applyAs("a"), "put": put, "patched": patching(merging, without),
		} {
			apply(ctx, older, name)
			older.isMarked(ctx, name)
			write(ctx, here, name, 1)
			here.isMarked(ctx, name)
			write(ctx, older, name, 2) // As after a step back to an earlier watches.yaml.
			older.isMarked(ctx, name)
			write(ctx, here, name, 3)
			here.isMarked(ctx, name)
		}
		Expect(k8s.Delete(ctx, here.cr)).To(Succeed())
		for _, name := range []string{"applied", "put", "patched"} {
			Eventually(func() bool { _, err := here.find(ctx, name); return err != nil }).Should(BeTrue(), name)
		}
	})
})
