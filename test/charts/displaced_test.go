package charts

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// served is a Service and a Deployment whose lists have names beside their keys.
var served = map[string]string{
	"service.yaml": `apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}-web", annotations: {a: "{{ .Values.a }}"}}
spec:
  ports: [{name: http, port: 80}, {name: metrics, port: 90}]
`,
	"deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers: [{name: one, image: "one:1", ports: [{name: http, containerPort: 80}], resources: {limits: {memory: 200Mi}}}]
`,
}

var _ = Describe("fields of another client in the place of the chart's, so that the API server refuses both", Label("long"), func() {
	change := func(ctx context.Context, s *site.Site, object client.Object, name string, kind types.PatchType, patch string) {
		GinkgoHelper()
		Expect(objectNamed(s, name, object)(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, object, client.RawPatch(kind, []byte(patch)), client.FieldOwner("somebody"))).To(Succeed())
	}
	const added = `{"spec":{"ports":[{"name":"extra","port":7000}]}}`
	// move changes the number of the chart's port, beside which there is one of somebody.
	move := func(ctx context.Context, s *site.Site, name string) {
		GinkgoHelper()
		service := &corev1.Service{}
		change(ctx, s, service, name, types.StrategicMergePatchType, added)
		for i := range service.Spec.Ports {
			if service.Spec.Ports[i].Name == "http" {
				service.Spec.Ports[i].Port = 9999
			}
		}
		Expect(k8s.Update(ctx, service, client.FieldOwner("somebody"))).To(Succeed())
	}
	ports := func(s *site.Site, name string) func(context.Context) (map[string]int32, error) {
		return func(ctx context.Context) (map[string]int32, error) {
			service := &corev1.Service{}
			err := objectNamed(s, name, service)(ctx)
			found := map[string]int32{}
			for _, port := range service.Spec.Ports {
				found[port.Name] = port.Port
			}
			return found, err
		}
	}
	asItWas := map[string]int32{"http": 80, "metrics": 90, "extra": 7000}

	It("goes, and nothing else", func(ctx context.Context) {
		s := charted(ctx, served, "")
		s.Write(map[string]string{"chart/values.yaml": "a: b\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "way", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "services", "deployments.apps")

		move(ctx, s, "way-web")
		Eventually(ctx, ports(s, "way-web")).Should(Equal(asItWas))
		Eventually(ctx, notes(cr, "Repaired")).Should(ContainElement(MatchRegexp(`Service [^ ]*/way-web \(.*/spec/ports/\d`)))

		By("leaving additions to a pod, and removing requests above the chart's limits and another port of the same name")
		deployment := &appsv1.Deployment{}
		change(ctx, s, deployment, "way-web", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[
			{"name":"sidecar","image":"s:1","ports":[{"name":"side","containerPort":99}],"resources":{"requests":{"memory":"1Mi"},"limits":{"memory":"1Mi"}}},
			{"name":"one","resources":{"requests":{"cpu":"1m","memory":"500Mi"},"limits":{"memory":"1000Mi"}},
			 "ports":[{"$patch":"replace"},{"name":"http","containerPort":81}]}]}}}}`)
		Eventually(ctx, func(ctx context.Context) (map[string]corev1.Container, error) {
			err := objectNamed(s, "way-web", deployment)(ctx)
			found := map[string]corev1.Container{}
			for _, container := range deployment.Spec.Template.Spec.Containers {
				found[container.Name] = container
			}
			return found, err
		}).Should(And(
			HaveKeyWithValue("one", And(
				HaveField("Ports", ConsistOf(HaveField("ContainerPort", BeEquivalentTo(80)))),
				HaveField("Resources.Requests", And(HaveKey(corev1.ResourceCPU), Not(HaveKey(corev1.ResourceMemory)))),
				HaveField("Resources.Limits", HaveKeyWithValue(corev1.ResourceMemory, BeComparableTo(resource.MustParse("200Mi")))))),
			HaveKeyWithValue("sidecar", HaveField("Ports", ConsistOf(HaveField("ContainerPort", BeEquivalentTo(99)))))))
		Eventually(ctx, notes(cr, "Repaired")).Should(ContainElement(ContainSubstring("/spec/template/spec/containers/name=one/resources/requests/memory")))

		By("resting after that")
		answered(ctx, s, cr, "after the repairs")
		Expect(s.Condition(cr, "Compared")(ctx)).To(Equal(harness.Condition{}))
		before := deployment.Generation
		answered(ctx, s, cr, "at rest")
		Expect(objectNamed(s, "way-web", deployment)(ctx)).To(Succeed())
		Expect(deployment.Generation).To(Equal(before))
		Expect(statuses(s, "way")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
	})

	It("is named where drift is left, and goes with an upgrade", func(ctx context.Context) {
		s := charted(ctx, served, "  drift: warn\n")
		s.Write(map[string]string{"chart/values.yaml": "a: b\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "way", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		move(ctx, s, "way-web")
		answered(ctx, s, cr, "after the change")
		Eventually(ctx, notes(cr, "Drifted")).Should(ContainElement(MatchRegexp(`Service [^ ]*/way-web \(.*/spec/ports/\d`)))
		Expect(ports(s, "way-web")(ctx)).To(HaveKeyWithValue("http", BeEquivalentTo(9999)))
		Expect(s.Condition(cr, "Compared")(ctx)).To(Equal(harness.Condition{}))

		Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":"c"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Expect(ports(s, "way-web")(ctx)).To(Equal(asItWas))
		Expect(statuses(s, "way")(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
	})
})

var _ = Describe("a default of the API server that does not go with the chart's value", Label("long"), func() {
	It("goes, and comes back with the value that has it", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"deployment.yaml": strings.Replace(served["deployment.yaml"], "spec:\n", "spec:\n  {{- with .Values.strategy }}\n  strategy: {type: {{ . }}}\n  {{- end }}\n", 1)}, "")
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "way", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		strategy := func(ctx context.Context) (appsv1.DeploymentStrategy, error) {
			deployment := &appsv1.Deployment{}
			err := objectNamed(s, "way-web", deployment)(ctx)
			return deployment.Spec.Strategy, err
		}
		for _, kind := range []string{"Recreate", "RollingUpdate", "Recreate"} {
			Expect(k8s.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"strategy":"`+kind+`"}}`)))).To(Succeed())
			Eventually(ctx, strategy).Should(HaveField("Type", BeEquivalentTo(kind)))
			Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
			Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(Equal(harness.Condition{}))
		}
	})
})
