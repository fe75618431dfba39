package charts

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
)

const chartLabel = "helm.sdk.operatorframework.io/chart"

// shared are templates whose labels, selectors and annotations are one map of the text.
var shared = map[string]string{
	"deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: &labels {app: {{ .Release.Name }}}
spec:
  selector: {matchLabels: *labels}
  template:
    metadata: {labels: *labels}
    spec:
      containers: [{name: main, image: none, env: [{name: VALUE, value: {{ .Values.value | default "a" | quote }}}]}]
`,
	"service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  labels: &labels {app: {{ .Release.Name }}}
  annotations: *labels
spec:
  selector: *labels
  ports: [{port: 80}]
`,
	"list.yaml": `apiVersion: v1
kind: ConfigMapList
items:
{{- range $i := until 2 }}
  - metadata: {name: {{ $.Release.Name }}-{{ $i }}}
    data: {a: b}
{{- end }}
`,
}

var _ = Describe("the text of a chart", func() {
	It("is the author's text, although its objects are labelled", func(ctx context.Context) {
		s := charted(ctx, shared, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "shared", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		own := map[string]string{"app": "shared"}
		deployment, service := &appsv1.Deployment{}, &corev1.Service{}
		read := func(version string) {
			GinkgoHelper()
			labels := map[string]string{"app": "shared", chartLabel: "plain-" + version, "app.kubernetes.io/managed-by": "Helm"}
			Expect(objectNamed(s, "shared", deployment)(ctx)).To(Succeed())
			Expect(deployment.Labels).To(Equal(labels))
			Expect(deployment.Spec.Selector.MatchLabels).To(Equal(own))
			Expect(deployment.Spec.Template.Labels).To(Equal(own))
			Expect(objectNamed(s, "shared", service)(ctx)).To(Succeed())
			Expect(service.Labels).To(Equal(labels))
			Expect(service.Spec.Selector).To(Equal(own))
			Expect(service.Annotations).To(HaveKeyWithValue("app", "shared"))
		}
		read("1.0.0")
		Eventually(ctx, func(ctx context.Context) (int, error) {
			pods := &corev1.PodList{}
			err := k8s.List(ctx, pods, client.InNamespace(s.Namespace), client.MatchingLabels(service.Spec.Selector))
			return len(pods.Items), err
		}).Should(Equal(1), "the Service selects the Deployment's pod")
		records := &corev1.SecretList{}
		Expect(k8s.List(ctx, records, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm"})).To(Succeed())
		Expect(records.Items).To(HaveEach(HaveField("Labels", Not(HaveKey(chartLabel)))))

		By("another version of the chart")
		s.Write(map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: plain\nversion: 2.0.0\n"})
		ask(ctx, cr, "2")
		Eventually(ctx, statuses(s, "shared")).Should(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		read("2.0.0")

		By("an upgrade by patches of the client")
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sdk.operatorframework.io/upgrade-force":"true"}},"spec":{"value":"b"}}`)))).To(Succeed())
		Eventually(ctx, statuses(s, "shared")).Should(HaveKeyWithValue("3", "deployed"))
		read("2.0.0")

		By("a change and a removal of the label, and a change of a list's item")
		s.Watched(ctx, "services", "configmaps")
		item := &corev1.ConfigMap{}
		Expect(objectNamed(s, "shared-1", item)(ctx)).To(Succeed())
		Expect(item.Labels).To(HaveKeyWithValue(chartLabel, "plain-2.0.0"))
		for _, label := range []string{`null`, `"other"`} {
			Expect(k8s.Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+chartLabel+`":`+label+`}}}`)))).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				err := objectNamed(s, "shared", service)(ctx)
				return service.Labels, err
			}).Should(HaveKeyWithValue(chartLabel, "plain-2.0.0"))
		}
		Expect(k8s.Patch(ctx, item, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"c"}}`)))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
			err := objectNamed(s, "shared-1", item)(ctx)
			return item.Data, err
		}).Should(Equal(map[string]string{"a": "b"}))
		read("2.0.0")
	})

	It("makes one revision, however many subcharts it has", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "  reconcilePeriod: 200ms\n  watchDependentResources: false\n")
		for _, name := range []string{"one", "two", "three", "four"} {
			s.Write(map[string]string{
				"chart/charts/" + name + "/Chart.yaml":                "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
				"chart/charts/" + name + "/charts/below/Chart.yaml":   "apiVersion: v2\nname: below\nversion: 1.0.0\n",
				"chart/charts/" + name + "/charts/beside/Chart.yaml":  "apiVersion: v2\nname: beside\nversion: 1.0.0\n",
				"chart/charts/" + name + "/charts/beside/values.yaml": fmt.Sprintf("of: %s\n", name),
			})
		}
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "umbrella", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		log, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		periods := func() (int, error) { return log.DryRuns(s.Namespace) }
		Eventually(ctx, periods).Should(BeNumerically(">=", 20), "each period compares the one object")
		Expect(statuses(s, "umbrella")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})
})
