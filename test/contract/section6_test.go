package contract

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/escapes"
)

func triggerRows(w *deeds) {
	row("§6 period", "brings a CR back that nothing else triggers", func(ctx context.Context) {
		tick := w.custom("Tick", "tick", nil)
		w.Create(ctx, tick)
		Eventually(w.Ended(tick)).Should(BeNumerically(">=", 2))
		Expect(w.Log()).To(MatchRegexp(`run started.*/tick".*"reason": "period"`))
		Expect(k8s.Delete(ctx, tick)).To(Succeed())
		ground.Gone(ctx, tick)
	})
}

func requeueRows(w *deeds) {
	row("§6 requeue_after names", "the bare one and those of both collections", func(ctx context.Context) {
		var all []*unstructured.Unstructured
		for _, how := range []string{"bare", "older", "ours"} {
			all = append(all, w.deed(ctx, how, map[string]any{"how": how, "after": "1h30m"}))
		}
		for _, cr := range all {
			Eventually(pauses(w.Site, cr)).Should(Equal([]string{"1h30m0s"}), cr.GetName())
		}
	})
	row("§6 requeue_after", "the run goes on to its end, status is written, then the CR comes again", func(ctx context.Context) {
		again := w.deed(ctx, "again", map[string]any{"how": "bare", "after": "2s"})
		Eventually(w.Ended(again)).Should(BeNumerically(">=", 2))
		Expect(w.Log()).To(MatchRegexp(`(?s)/again".*"task": "Come again, by the bare name".*/again".*"task": "Change something else".*run succeeded.*/again"`))
		var successes int
		for _, cr := range w.seen.of("again") {
			if harness.ConditionOf(cr, "Running").Reason == "Successful" {
				successes++
			}
		}
		Expect(successes).To(BeNumerically(">=", 1))
		patch(ctx, again, `{"spec": {"how": "good"}}`)
	})
	row("§6 requeue_after in a failed run", "the back-off counts", func(ctx context.Context) {
		failing := w.deed(ctx, "fails", map[string]any{"how": "bare", "after": "1h", "fails": true})
		Eventually(pauses(w.Site, failing)).Should(ContainElement("1s"))
		Expect(pauses(w.Site, failing)()).NotTo(ContainElement("1h0m0s"))
		Expect(k8s.Delete(ctx, failing)).To(Succeed())
	})
	row("§6 requeue_after that does not parse", "is a failure that says so", func(ctx context.Context) {
		soon := w.deed(ctx, "soon", map[string]any{"how": "bare", "after": "soon"})
		Eventually(ctx, w.Condition(soon, "Failure")).Should(And(HaveField("Reason", "Failed"), HaveField("Message", ContainSubstring(`requeue_after: invalid period "soon": write a positive duration`))))
		Expect(k8s.Delete(ctx, soon)).To(Succeed())
	})
}

func failureRows(w *deeds) {
	row("§6 back-off, §2 --max-backoff", "from 1 s, doubled, up to --max-backoff; a new generation starts over", func(ctx context.Context) {
		var found []string
		Eventually(func() (int, error) {
			var err error
			found, err = pauses(w.Site, w.plain)()
			return len(found), err
		}).Should(BeNumerically(">=", 4))
		Expect(found[:4]).To(Equal([]string{"1s", "2s", "3s", "3s"}))
		patch(ctx, w.plain, `{"spec": {"new": "generation"}}`)
		Eventually(pauses(w.Site, w.plain)).Should(ContainElements("1s", "1s"))
		annotate(ctx, w.plain, steering+"paused", `"true"`) // It has shown what it is for, for now.
	})
	row("§6 rescued and ignored", "are no failures", func(ctx context.Context) {
		rescued := w.deed(ctx, "rescued", map[string]any{"how": "rescued"})
		Eventually(ctx, w.Condition(rescued, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Result", HaveKeyWithValue("failures", int64(0)))))
	})
}

func finalizerRows(w *deeds) {
	row("§6 finalizer", "is there before the first run begins", func() {
		for _, cr := range w.seen.of("good") {
			if harness.ConditionOf(cr, "Running").Reason != "" {
				Expect(cr.GetFinalizers()).To(Equal([]string{"deeds.example.com/finalizer"}))
			}
		}
	})
	row("§6 finalizer fails", "is reported, retried, and the CR stays until it succeeds", func(ctx context.Context) {
		staying := w.deed(ctx, "staying", map[string]any{"how": "good", "stay": true})
		Eventually(w.Ended(staying)).Should(Equal(1))
		Expect(k8s.Delete(ctx, staying)).To(Succeed())
		Eventually(ctx, w.Condition(staying, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", ContainSubstring("not yet"))))
		Eventually(w.Failed(staying)).Should(BeNumerically(">=", 2))
		Expect(pauses(w.Site, staying)()).To(ContainElement("1s"))
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(staying), staying)).To(Succeed())
		Expect(staying.GetFinalizers()).To(Equal([]string{"deeds.example.com/finalizer"}))
		patch(ctx, staying, `{"spec": {"stay": false}}`)
		ground.Gone(ctx, staying)
	})
	row("§6 displayed text", "of the spec neither ends a run nor keeps a finalizer from its end", func(ctx context.Context) {
		var texts []any
		for _, text := range escapes.Texts() {
			texts = append(texts, text)
		}
		shown := w.deed(ctx, "shown", map[string]any{"how": "good", "shown": texts})
		Eventually(ctx, w.Condition(shown, "Successful")).Should(HaveField("Status", "True"))
		Expect(k8s.Delete(ctx, shown)).To(Succeed())
		ground.Gone(ctx, shown)
		Expect(w.Failed(shown)()).To(BeZero())
	})
	row("§6 deleted during a run", "with a finalizer the run ends first; without one it is canceled", func(ctx context.Context) {
		waiting, loose := w.deed(ctx, "waiting", map[string]any{"how": "wait"}), w.custom("Loose", "loose", nil)
		w.Create(ctx, loose)
		for _, cr := range []*unstructured.Unstructured{waiting, loose} {
			Eventually(ctx, w.Condition(cr, "Running")).Should(HaveField("Reason", "Running"))
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
		}
		ground.Gone(ctx, loose)
		Eventually(w.Log).Should(MatchRegexp(`run canceled.*/loose"`))
		Expect(w.Condition(waiting, "Running")(ctx)).To(HaveField("Reason", "Running"))
		Expect(os.WriteFile(filepath.Join(w.Dir, "go"), nil, 0o600)).To(Succeed())
		ground.Gone(ctx, waiting)
		Expect(os.Remove(filepath.Join(w.Dir, "go"))).To(Succeed())
		Expect(w.Log()).To(MatchRegexp(`(?s)run succeeded.*/waiting".*run started.*/waiting".*"reason": "deleted"`))
	})
}
