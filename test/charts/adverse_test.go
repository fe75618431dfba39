package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// adverse is a chart that does harm as the CR's spec wants it.
var adverse = map[string]string{
	"a.yaml":       configMap("a", "{}", "a: b"),
	"loop.yaml":    `{{ if eq .Values.does "loop" }}{{ range 2000000000 }}{{ end }}{{ end }}`,
	"hang.yaml":    `{{ if eq .Values.does "hang" }}{{ range 2000000000 }}{{ range 2000000000 }}{{ end }}{{ end }}{{ end }}`,
	"list.yaml":    `{{ if eq .Values.does "list" }}{{ range until 2000000000 }}{{ end }}{{ end }}`,
	"recurse.yaml": `{{ define "again" }}{{ include "again" . }}{{ end }}{{ if eq .Values.does "recurse" }}{{ include "again" . }}{{ end }}`,
	"big.yaml": `{{ if eq .Values.does "big" }}` + configMap("big-1", "{}", "a: {{ randAlphaNum 700000 }}") + "---\n" +
		configMap("big-2", "{}", "a: {{ randAlphaNum 700000 }}") + `{{ end }}`,
	"hook.yaml":  `{{ if eq .Values.does "hook" }}` + configMap("NO-NAME", `{"helm.sh/hook": pre-delete}`, "a: b") + `{{ end }}`,
	"quota.yaml": `{{ if eq .Values.does "quota" }}` + "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: 80}]}\n" + `{{ end }}`,
}

// harmed serves two kinds by one chart. A timeout only ends the runs of greetings, for templates
// that take longer than any timeout: what else a CR comes to must not depend on the machine's speed.
const harmed = `
- {group: demo.example.com, version: v1, kind: Hello, chart: chart}
- {group: demo.example.com, version: v1, kind: Greeting, chart: chart, timeout: 6s}
`

var _ = Describe("a chart that does harm", Label("long"), Ordered, ContinueOnFailure, func() {
	var s *site.Site

	BeforeAll(func(ctx context.Context) {
		s = charted(ctx, adverse, "")
		s.Write(map[string]string{"watches.yaml": harmed})
		s.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "services"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"services": resource.MustParse("0")}},
		})
		s.Start(ctx, hello.Kind, greeting.Kind)
	})

	create := func(ctx context.Context, kind schema.GroupKind, name, does string) *unstructured.Unstructured {
		GinkgoHelper()
		cr := harness.Custom(kind, s.Namespace, name, map[string]any{"does": does})
		s.Create(ctx, cr)
		return cr
	}
	// next shows that another CR is as well as ever, while the first one is not.
	next := func(ctx context.Context, after string) {
		GinkgoHelper()
		cr := create(ctx, hello, "after-"+after, "nothing")
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(objectNamed(s, cr.GetName()+"-a", &corev1.ConfigMap{})(ctx)).To(Succeed())
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, cr.GetName(), cr)).Should(site.BeGone())
	}

	DescribeTable("has a clear status, and the next CR is not affected", func(ctx context.Context, kind schema.GroupKind, does, reason, message string) {
		cr := create(ctx, kind, does, does)
		Expect(s.Outcome(ctx, cr)).To(And(HaveField("Reason", reason), HaveField("Message", MatchRegexp(message))))
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(And(HaveField("Status", "True"), HaveField("Reason", "InstallError"), HaveField("Message", MatchRegexp(message))))
		Expect(objectNamed(s, does+"-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())
		next(ctx, does)
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, does, cr)).Should(site.BeGone())
	},
		Entry("a template of 2,000,000,000 loops", greeting, "loop", "Timeout", "the run took longer than its timeout"),
		Entry("a list of 2,000,000,000 numbers", hello, "list", "RunnerCrashed", "fatal error: (runtime: )?out of memory"),
		Entry("a template that includes itself", hello, "recurse", "Failed", "again"),
		Entry("a manifest of more than 1 MiB", hello, "big", "Failed", `the record of the release has 1\.\d+ MiB, and a Secret holds 1 MiB`),
		slowHarms,
	)

	It("waits for a quota, and says so", func(ctx context.Context) {
		cr := create(ctx, hello, "quota", "quota")
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(ContainSubstring("exceeded quota: services"), ContainSubstring("limited: services=0"))))
		next(ctx, "quota")
		Expect(k8s.Patch(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "services"}},
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"hard":{"services":"1"}}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Status", "True"))
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(Equal(harness.Condition{}))
		Expect(objectNamed(s, "quota", &corev1.Service{})(ctx)).To(Succeed())
	})

	It("stays where its pre-delete hook fails, until its hooks are switched off", func(ctx context.Context) {
		cr := create(ctx, hello, "hook", "hook")
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UninstallError"), HaveField("Message", ContainSubstring("hook-NO-NAME"))))
		Expect(objectNamed(s, "hook-a", &corev1.ConfigMap{})(ctx)).To(Succeed())
		next(ctx, "hook")
		Expect(objectNamed(s, "hook", cr)(ctx)).To(Succeed())
		Expect(cr.GetFinalizers()).To(ConsistOf("helm.sdk.operatorframework.io/uninstall-release"))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/uninstall-disable-hooks":"true"}}}`)))).To(Succeed())
		Eventually(ctx, objectNamed(s, "hook", cr)).Should(site.BeGone())
		Eventually(ctx, statuses(s, "hook")).Should(BeEmpty())
	})
})
