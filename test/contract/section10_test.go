package contract

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// toolPlay uses the modules of the collection that it is told to. PREFIX is how their
// names begin, COLLECTIONS where bare ones are searched. Of its tasks k8s_status alone
// says that it has changed something.
//
//go:embed testdata/tool.yml
var toolPlay string

func tool(kind string) schema.GroupKind {
	return schema.GroupKind{Group: "tool.example.com", Kind: kind}
}

// conditionFields are a condition as it stands, all of it.
func conditionFields(cr *unstructured.Unstructured, kind string) map[string]any {
	GinkgoHelper()
	list, _, err := unstructured.NestedSlice(cr.Object, "status", "conditions")
	Expect(err).NotTo(HaveOccurred())
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

var _ = Describe("modules for content", Ordered, ContinueOnFailure, func() {
	var s *site.Site
	names := map[string]struct{ prefix, collections string }{
		"Plain": {"ensign.operator.", "[]"}, "Older": {"operator_sdk.util.", "[]"}, "Bare": {"", "[operator_sdk.util]"},
	}
	given := func() map[string]any {
		return map[string]any{
			"status":     map[string]any{"nodes": []any{"a", "b"}, "more": map[string]any{"x": int64(1)}},
			"conditions": []any{map[string]any{"type": "Polite", "status": true, "reason": "SaidPlease", "message": "once"}},
		}
	}
	create := func(ctx context.Context, kind, name string, spec map[string]any) *unstructured.Unstructured {
		GinkgoHelper()
		cr := harness.Custom(tool(kind), s.Namespace, name, spec)
		s.Create(ctx, cr)
		return cr
	}
	// after waits for the end of so many runs, and gives the CR as it stands then, and
	// how many tasks of the last one have changed something.
	after := func(ctx context.Context, runs int, cr *unstructured.Unstructured) (*unstructured.Unstructured, any) {
		GinkgoHelper()
		Eventually(s.Ended(cr)).Should(Equal(runs))
		Eventually(ctx, s.Condition(cr, "Running")).Should(HaveField("Reason", "Successful"))
		current := cr.DeepCopy()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), current)).To(Succeed())
		return current, harness.ConditionOf(current, "Successful").Result["changed"]
	}
	writes := func(ctx context.Context, cr *unstructured.Unstructured, writes map[string]any) {
		GinkgoHelper()
		before := cr.DeepCopy()
		Expect(unstructured.SetNestedMap(cr.Object, writes, "spec", "writes")).To(Succeed())
		Expect(k8s.Patch(ctx, cr, client.MergeFrom(before))).To(Succeed())
	}

	BeforeAll(func(ctx context.Context) {
		files := map[string]string{"watches.yaml": ""}
		for kind, way := range names {
			ground.Define(ctx, harness.Definition(tool(kind)))
			files[kind+".yml"] = strings.NewReplacer("PREFIX", way.prefix, "COLLECTIONS", way.collections, "KIND", kind).Replace(toolPlay)
			files["watches.yaml"] += "- {group: tool.example.com, version: v1, kind: " + kind + ", playbook: " + kind + ".yml}\n"
		}
		s = ground.Site(ctx, files)
		s.Options.Args = append(s.Options.Args, "--user-metrics-open=false")
		s.Start(ctx, "Plain", "Older", "Bare")
	})

	DescribeTable("each of them works", func(ctx context.Context, kind string, further ...any) {
		name := strings.ToLower(kind)
		cr := create(ctx, kind, name, map[string]any{"uses": append([]any{"status", "event", "metric"}, further...), "again": "1h", "writes": given()})
		current, changed := after(ctx, 1, cr)

		By("k8s_status: the status has the role's fields beside the operator's")
		Expect(changed).To(Equal(int64(1)))
		Expect(current.Object["status"]).To(And(
			HaveKeyWithValue("nodes", Equal([]any{"a", "b"})), HaveKeyWithValue("more", Equal(map[string]any{"x": int64(1)})), HaveKey("observedGeneration")))
		Expect(conditionFields(current, "Polite")).To(And(HaveLen(6), HaveKeyWithValue("observedGeneration", int64(1)), HaveKeyWithValue("status", "True"), HaveKeyWithValue("reason", "SaidPlease"),
			HaveKeyWithValue("message", "once"), HaveKeyWithValue("lastTransitionTime", MatchRegexp(`^\d{4}-.*Z$`))))
		for _, own := range []string{"Running", "Failure"} {
			Expect(conditionFields(current, own)).To(HaveKeyWithValue("reason", "Successful"))
		}

		By("k8s_event: an Event that kubectl describe finds by the UID")
		told := read(ctx, s.Namespace, name+"-told", &corev1.Event{})
		Expect(told.InvolvedObject).To(And(HaveField("UID", cr.GetUID()), HaveField("Kind", kind), HaveField("Name", name)))
		Expect(told).To(And(HaveField("Reason", "StatusWritten"), HaveField("Message", "It is "+name), HaveField("Type", "Warning"),
			HaveField("ReportingController", "tools"), HaveField("Source.Component", "tools"), HaveField("Count", int32(1))))

		By("osdk_metric: posted metrics are shown, although posts need the token of a run")
		metrics, err := s.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).To(And(MatchRegexp(`(?m)^`+kind+`_runs_total 1$`), ContainSubstring("# HELP "+kind+"_runs_total Runs of "+kind+".")))
		if len(further) > 0 {
			for _, line := range []string{`_level 3`, `_seconds_bucket\{le="0.5"\} 2`, `_seconds_sum 0.3`, `_seconds_count 2`, `_bytes_sum 12`, `_bytes_count 2`} {
				Expect(metrics).To(MatchRegexp(`(?m)^` + kind + line + `$`))
			}
		}

		By("requeue_after: the manager has read its value")
		Expect(s.Log()).To(MatchRegexp(`run succeeded.*"cr": "` + regexp.QuoteMeta(s.Namespace) + "/" + name + `".*"requeueAfter": "1h0m0s"`))
	},
		entry("§10 osdk_metric", "as ensign.operator", "Plain", "metrics"),
		entry("§10 operator_sdk.util, §6 requeue_after names", "as operator_sdk.util", "Older"),
	)

	row("§10 requeue_after", "brings the CR back after that time", func(ctx context.Context) {
		cr := create(ctx, "Plain", "again", map[string]any{"uses": []any{}, "again": "1s"})
		Eventually(s.Runs(cr)).Should(BeNumerically(">=", 3))
		Expect(s.Failed(cr)()).To(BeZero())
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		ground.Gone(ctx, cr)
	})

	row("§10 k8s_event, §10 operator_sdk.util", "by its bare name; with appendTimestamp false it is counted", func(ctx context.Context) {
		cr := create(ctx, "Bare", "counted", map[string]any{"uses": []any{"event"}})
		after(ctx, 1, cr)
		first := read(ctx, s.Namespace, "counted-told", &corev1.Event{}).LastTimestamp
		Eventually(time.Now).Should(BeTemporally(">=", first.Add(time.Second)), "the times of Events are whole seconds")
		annotate(ctx, cr, steering+"reconcile-requested-at", `"now"`)
		after(ctx, 2, cr)
		told := read(ctx, s.Namespace, "counted-told", &corev1.Event{})
		Expect(told.Count).To(Equal(int32(2)))
		Expect(told.LastTimestamp.Time).To(BeTemporally(">", told.FirstTimestamp.Time))
	})

	row("§10 k8s_status", "writes what has changed and nothing else", func(ctx context.Context) {
		cr := create(ctx, "Older", "status", map[string]any{"uses": []any{"status"}, "writes": given()})
		first, _ := after(ctx, 1, cr)
		since := conditionFields(first, "Polite")["lastTransitionTime"]

		By("the same again: nothing")
		annotate(ctx, cr, steering+"reconcile-requested-at", `"now"`)
		_, changed := after(ctx, 2, cr)
		Expect(changed).To(Equal(int64(0)))

		By("who was slower than somebody else is told so by the API server, and tries again: see the module's own tests")
		slow := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"resourceVersion": %q}, "status": {"nodes": null}}`, first.GetResourceVersion()))
		Expect(apierrors.IsConflict(k8s.Status().Patch(ctx, first.DeepCopy(), slow))).To(BeTrue())

		By("another message and fewer items: the time stays, and so do the items")
		less := map[string]any{
			"status":     map[string]any{"nodes": []any{"b"}, "more": map[string]any{"y": int64(2)}},
			"conditions": []any{map[string]any{"type": "Polite", "status": "True", "message": "twice"}},
		}
		writes(ctx, cr, less)
		current, changed := after(ctx, 3, cr)
		Expect(changed).To(Equal(int64(1)))
		Expect(conditionFields(current, "Polite")).To(Equal(map[string]any{"type": "Polite", "status": "True", "message": "twice", "lastTransitionTime": since, "observedGeneration": current.GetGeneration()}))
		Expect(current.Object["status"]).To(And(HaveKeyWithValue("nodes", Equal([]any{"a", "b"})), HaveKeyWithValue("more", HaveLen(2))))

		By("replace_lists and another status of the condition: fewer items, another time")
		moment, err := time.Parse(time.RFC3339, fmt.Sprint(since))
		Expect(err).NotTo(HaveOccurred())
		Eventually(time.Now).Should(BeTemporally(">=", moment.Add(time.Second)), "the times of conditions are whole seconds")
		less["replaceLists"] = true
		less["conditions"] = []any{map[string]any{"type": "Polite", "status": "False"}}
		writes(ctx, cr, less)
		current, _ = after(ctx, 4, cr)
		Expect(current.Object["status"]).To(HaveKeyWithValue("nodes", Equal([]any{"b"})))
		Expect(fmt.Sprint(conditionFields(current, "Polite")["lastTransitionTime"]) > fmt.Sprint(since)).To(BeTrue(), "the time of the transition has not moved")

		By("replace: nothing else, until the operator writes its own")
		writes(ctx, cr, map[string]any{"status": map[string]any{"only": "this"}, "conditions": nil, "replace": true, "replaceLists": nil})
		current, _ = after(ctx, 5, cr)
		Expect(current.Object["status"]).To(And(HaveKeyWithValue("only", "this"), Not(HaveKey("nodes")), Not(HaveKey("more"))))
		Expect(conditionFields(current, "Polite")).To(BeNil())
		Expect(harness.ConditionOf(current, "Successful").Status).To(Equal("True"))
	})
})
