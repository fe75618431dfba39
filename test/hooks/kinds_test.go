package hooks

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

// hooks are the same for each kind of content.
type hooks struct {
	// before counts the calls of the PreHook.
	before atomic.Int32
	// unreported counts the calls of the PostHook that fail.
	unreported atomic.Int32
	// last is the outcome that the PostHook was given last.
	last atomic.Value
}

// options have a function of each kind. The text of a CR says what they do.
func (h *hooks) options() []ensign.WatchOption {
	text := func(cr *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(cr.Object, "spec", "text")
		return text
	}
	return []ensign.WatchOption{
		ensign.CodeVersion("1"),
		ensign.TranslateValues(func(_ context.Context, cr *unstructured.Unstructured, values map[string]any) (map[string]any, error) {
			switch text(cr) {
			case "refused":
				return nil, ensign.InvalidSpec(errors.New("spec.text is refused"))
			case "untranslated":
				return nil, errors.New("no words for it")
			}
			values["text"] = "{{ 6*7 }} " + text(cr)
			return values, nil
		}),
		ensign.PreHook(func(_ context.Context, cr *unstructured.Unstructured, values map[string]any) error {
			h.before.Add(1)
			switch text(cr) {
			case "stopped":
				return fmt.Errorf("not with %v", values["text"])
			case "panicking":
				panic("by accident")
			}
			return nil
		}),
		ensign.PostHook(func(_ context.Context, cr *unstructured.Unstructured, outcome content.Outcome) error {
			h.last.Store(outcome)
			if text(cr) == "unreported" {
				h.unreported.Add(1)
				return errors.New("it was not reported")
			}
			return nil
		}),
		ensign.Annotation("example.com/level", func(level string) (map[string]any, error) {
			if level != "high" && level != "low" {
				return nil, errors.New("write high or low")
			}
			return map[string]any{"level": level}, nil
		}),
	}
}

var _ = Describe("functions around runs", func() {
	for what, watch := range map[string]ensign.Watch{
		"a role":  ensign.Role{Kind: kind, Role: "note", AnsibleSettings: ensign.AnsibleSettings{Finalizer: &ensign.Finalizer{Name: "hooks.ensign.io/finalizer"}}},
		"a chart": ensign.Chart{Kind: kind, Chart: "chart"},
	} {
		It("are those of "+what, func(ctx context.Context) {
			o, h := newOperator(ctx), &hooks{}
			o.start(func(m *ensign.Manager) { Expect(m.AddWatch(watch, h.options()...)).To(Succeed()) })
			cr := o.note("a", "first")
			create(ctx, cr)
			Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))
			Expect(o.data("a", "text")(ctx)).To(Equal("{{ 6*7 }} first"), "what a function makes of a CR is not evaluated")
			Expect(h.last.Load()).To(HaveField("Verdict", content.Succeeded))

			for text, failure := range map[string]string{
				"refused":      "True/InvalidSpec: spec.text is refused",
				"untranslated": "True/Failed: no words for it",
				"stopped":      "True/Failed: not with {{ 6*7 }} stopped",
				"panicking":    "True/Failed: panic in the function of PreHook: by accident",
				"unreported":   "True/Failed: it was not reported",
			} {
				By("a CR that is " + text)
				merge(ctx, cr, `{"spec": {"text": "`+text+`"}}`)
				Eventually(ctx, condition(cr, "Failure")).Should(Equal(failure))
				if text != "unreported" {
					Expect(o.data("a", "text")(ctx)).NotTo(ContainSubstring(text), "nothing runs")
					continue
				}
				Eventually(h.unreported.Load).Should(BeNumerically(">", 1), "the next attempt finds nothing to do, and calls it again")
				Expect(condition(cr, "Failure")(ctx)).To(Equal(failure))
			}

			By("an annotation")
			merge(ctx, cr, `{"spec": {"text": "second"}, "metadata": {"annotations": {"example.com/level": "middle"}}}`)
			Eventually(ctx, condition(cr, "Failure")).Should(Equal("True/InvalidAnnotation: annotation example.com/level: write high or low"))
			merge(ctx, cr, `{"metadata": {"annotations": {"example.com/level": "high"}}}`)
			Eventually(ctx, o.data("a", "level")).Should(Equal("high"))
			Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))

			By("a restart with the same version of the functions, and one with other values")
			before := h.before.Load()
			o.start(func(m *ensign.Manager) { Expect(m.AddWatch(watch, h.options()...)).To(Succeed()) })
			another := o.note("b", "first")
			create(ctx, another)
			Eventually(ctx, condition(another, "Successful")).Should(HavePrefix("True/Successful"))
			Expect(h.before.Load()-before).To(BeEquivalentTo(1), "only the new resource runs")
			o.start(func(m *ensign.Manager) {
				Expect(m.AddWatch(watch, append(h.options(), ensign.OverrideValues(map[string]any{"level": "fixed"}))...)).To(Succeed())
			})
			Eventually(ctx, o.data("a", "level")).Should(Equal("fixed"), "it is stronger than the annotation, and runs what has run")
			Eventually(ctx, o.data("b", "level")).Should(Equal("fixed"))

			By("a deletion, which a refusal does not hold up")
			merge(ctx, cr, `{"spec": {"text": "refused"}, "metadata": {"annotations": {"example.com/level": "middle"}}}`)
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error { _, err := condition(cr, "Failure")(ctx); return err }).Should(MatchError(ContainSubstring("not found")))
		})
	}
})
