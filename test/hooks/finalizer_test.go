package hooks

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

// keeper is a kind of content whose finalizer fails while it is told to.
type keeper struct {
	content.EngineDefaults

	fails     atomic.Bool
	finalized atomic.Int32
}

// Prepare implements content.Engine.
func (k *keeper) Prepare(_ context.Context, r content.Request) (content.Work, *content.Outcome) {
	return keeping{keeper: k, finalizing: r.Finalizing}, nil
}

type keeping struct {
	content.WorkDefaults

	keeper     *keeper
	finalizing bool
}

// Run implements content.Work. Its failure is one that nobody has made fit to be shown.
func (w keeping) Run(ctx context.Context, _ content.Job) content.Result {
	if w.finalizing {
		w.keeper.finalized.Add(1)
		if w.keeper.fails.Load() {
			return content.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: "Kept", Message: "\x1b[2J" + strings.Repeat("€", 100_000)}}
		}
	}
	return content.ResultOf(ctx, nil)
}

func isGone(cr *unstructured.Unstructured) func(context.Context) bool {
	return func(ctx context.Context) bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr))
	}
}

var _ = Describe("a program's own content and functions, where they fail", func() {
	It("keeps a CR until its finalizer succeeds, and shows a failure of any length", func(ctx context.Context) {
		o, engine := newOperator(ctx), &keeper{}
		o.start(func(m *ensign.Manager) {
			Expect(m.AddWatch(ensign.Custom{Kind: kind, Engine: engine, Finalizer: "hooks.ensign.io/finalizer"})).To(Succeed())
		})
		cr := o.note("a", "first")
		create(ctx, cr)
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))
		Expect(cr.GetFinalizers()).To(ConsistOf("hooks.ensign.io/finalizer"))
		Expect(engine.finalized.Load()).To(BeZero())

		engine.fails.Store(true)
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, condition(cr, "Failure")).Should(And(HavePrefix(`True/Kept: \x1b[2J€€`), HaveSuffix("… [cut]"), WithTransform(func(text string) int { return len(text) }, BeNumerically("<", 5<<10))))
		engine.fails.Store(false)
		Eventually(ctx, isGone(cr)).Should(BeTrue())
		Expect(engine.finalized.Load()).To(BeNumerically(">", 1))
	})

	It("goes on where a function panics that says whether a CR is paused", func(ctx context.Context) {
		o := newOperator(ctx)
		var panicked atomic.Int32
		o.start(func(m *ensign.Manager) {
			Expect(m.AddWatch(ensign.Custom{Kind: kind, Engine: &keeper{}}, ensign.Paused(func(cr *unstructured.Unstructured) bool {
				if cr.GetLabels()["puzzling"] == "yes" {
					panicked.Add(1)
					panic(errors.New("by accident"))
				}
				return false
			}))).To(Succeed())
		})
		cr, another := o.note("a", "first"), o.note("b", "first")
		cr.SetLabels(map[string]string{"puzzling": "yes"})
		create(ctx, cr)
		Eventually(panicked.Load).Should(BeNumerically(">", 1), "it is asked again")
		create(ctx, another)
		Eventually(ctx, condition(another, "Successful")).Should(HavePrefix("True/Successful"))
		Expect(condition(cr, "Successful")(ctx)).NotTo(ContainSubstring("Successful"), "nothing runs while nobody knows")
		merge(ctx, cr, `{"metadata": {"labels": {"puzzling": null}}}`)
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))
	})
})
