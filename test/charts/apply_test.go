package charts

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// twice is a template that lets users override a variable by a second entry.
const twice = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - name: main
        image: none
        env:
        - {name: LEVEL, value: info}
        {{- range .Values.extraEnv }}
        - {name: {{ .name }}, value: {{ .value | quote }}}
        {{- end }}
        {{- if .Values.legacy }}
      - name: legacy
        image: none
        {{- end }}
`

// change merges a patch into the CR.
func change(ctx context.Context, cr *unstructured.Unstructured, patch string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// succeeded waits until the CR's last change has succeeded.
func succeeded(ctx context.Context, s *site.Site, cr *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
}

var _ = Describe("a chart in which a variable stands twice", func() {
	level := func(value string) map[string]any {
		return map[string]any{"extraEnv": []any{map[string]any{"name": "LEVEL", "value": value}}}
	}
	// values reads the variables of the first container.
	values := func(s *site.Site, name string) func(context.Context) ([]string, error) {
		return func(ctx context.Context) (all []string, err error) {
			found := &appsv1.Deployment{}
			err = objectNamed(s, name, found)(ctx)
			if err == nil {
				for _, one := range found.Spec.Template.Spec.Containers[0].Env {
					all = append(all, one.Name+"="+one.Value)
				}
			}
			return all, err
		}
	}

	It("is patched, as server-side apply refuses it, and applied again without the second entry", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b"), "deployment.yaml": twice}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "refused", level("debug"))
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(values(s, "refused")(ctx)).To(Equal([]string{"LEVEL=info", "LEVEL=debug"}))
		Eventually(ctx, notes(cr, "AppliedByPatch")).Should(ConsistOf(And(ContainSubstring("Deployment "+s.Namespace+"/refused"), ContainSubstring(`.spec.template.spec.containers[name="main"].env`))))

		By("values without the second entry")
		change(ctx, cr, `{"spec":{"extraEnv":[]}}`)
		succeeded(ctx, s, cr)
		Expect(values(s, "refused")(ctx)).To(Equal([]string{"LEVEL=info"}))
		made := &appsv1.Deployment{}
		Expect(objectNamed(s, "refused", made)(ctx)).To(Succeed())
		Expect(managers(made)).NotTo(ContainElement(HavePrefix("helm-patch/")))

		By("an upgrade that brings it")
		change(ctx, cr, `{"spec":{"extraEnv":[{"name":"LEVEL","value":"debug"}]}}`)
		succeeded(ctx, s, cr)
		Expect(values(s, "refused")(ctx)).To(Equal([]string{"LEVEL=info", "LEVEL=debug"}))

		By("the switch, for the release that is there")
		Expect(s.Manager.Stop()).To(Succeed())
		s.Write(map[string]string{"watches.yaml": "- group: demo.example.com\n  version: v1\n  kind: Hello\n  chart: chart\n  apply: client\n"})
		s.Start(ctx, hello.Kind)
		succeeded(ctx, s, cr)
		Expect(values(s, "refused")(ctx)).To(Equal([]string{"LEVEL=info", "LEVEL=debug"}))
	})

	It("is applied by the client, changed, compared, repaired, and moved to the server", func(ctx context.Context) {
		templates := map[string]string{"deployment.yaml": twice}
		s := charted(ctx, templates, "  apply: client\n  reconcilePeriod: 500ms\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "taken", level("debug"))
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(values(s, "taken")(ctx)).To(Equal([]string{"LEVEL=info", "LEVEL=debug"}))

		By("a change of the second entry")
		change(ctx, cr, `{"spec":{"legacy":true,"extraEnv":[{"name":"LEVEL","value":"trace"}]}}`)
		succeeded(ctx, s, cr)
		Expect(values(s, "taken")(ctx)).To(Equal([]string{"LEVEL=info", "LEVEL=trace"}))

		By("a change by somebody else")
		s.Watched(ctx, "deployments.apps")
		Expect(k8s.Patch(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "taken"}}, client.RawPatch("application/json-patch+json", []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/env/1/value","value":"x"}]`)))).To(Succeed())
		Eventually(ctx, values(s, "taken")).Should(Equal([]string{"LEVEL=info", "LEVEL=trace"}))
		Expect(statuses(s, "taken")(ctx)).To(HaveLen(2), "a repair makes no revision")

		By("no second entry any more")
		change(ctx, cr, `{"spec":{"extraEnv":[]}}`)
		succeeded(ctx, s, cr)
		Expect(values(s, "taken")(ctx)).To(Equal([]string{"LEVEL=info"}))
		generation := func(ctx context.Context) (int64, error) {
			found := &appsv1.Deployment{}
			err := objectNamed(s, "taken", found)(ctx)
			return found.Generation, err
		}
		before, err := generation(ctx)
		Expect(err).NotTo(HaveOccurred())
		Consistently(ctx, generation, site.Calm).Should(Equal(before), "nothing is repaired that has not drifted")

		By("server-side apply, which then removes fields that the chart drops")
		Expect(s.Manager.Stop()).To(Succeed())
		s.Write(map[string]string{"watches.yaml": "- {group: demo.example.com, version: v1, kind: Hello, chart: chart}\n"})
		s.Start(ctx, hello.Kind)
		change(ctx, cr, `{"spec":{"legacy":false}}`)
		succeeded(ctx, s, cr)
		found := &appsv1.Deployment{}
		Expect(objectNamed(s, "taken", found)(ctx)).To(Succeed())
		Expect(found.Spec.Template.Spec.Containers).To(HaveLen(1))
	})

	DescribeTable("is taken over with adopt", func(ctx context.Context, apply string, found func(context.Context, *site.Site)) {
		s := charted(ctx, map[string]string{"deployment.yaml": twice}, "  adopt: true\n"+apply)
		found(ctx, s)
		before := &appsv1.Deployment{}
		Expect(objectNamed(s, "adopted", before)(ctx)).To(Succeed())
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "adopted", map[string]any{})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		after := &appsv1.Deployment{}
		Expect(objectNamed(s, "adopted", after)(ctx)).To(Succeed())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		Expect(after.Spec.Template.Spec.Containers).To(HaveLen(1))
		Expect(values(s, "adopted")(ctx)).To(Equal([]string{"LEVEL=info"}))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "adopted", cr)).Should(site.BeGone())
		Expect(objectNamed(s, "adopted", after)(ctx)).To(site.BeGone())
	},
		Entry("by the client from a release of the helm command, without the fields that the chart drops", "  apply: client\n", released),
		Entry("by the server from a release of the helm command, without the fields that the chart drops", "", released),
		Entry("by the client from nobody", "  apply: client\n", loose),
		Entry("by the server from nobody", "", loose),
	)
})

// released is a release of the chart twice by the helm command, which applies by the client as Helm 3 does.
func released(_ context.Context, s *site.Site) {
	GinkgoHelper()
	helm(s, "install", "adopted", filepath.Join(s.Options.Project, "chart"), "--server-side=false", "--set", "legacy=true,extraEnv[0].name=OTHER,extraEnv[0].value=trace")
}

// loose is an object of the chart twice that belongs to no release.
func loose(ctx context.Context, s *site.Site) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	text, _, _ := strings.Cut(strings.NewReplacer("{{ .Release.Name }}", "adopted").Replace(twice), "        {{-")
	Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
	object.SetNamespace(s.Namespace)
	Expect(k8s.Create(ctx, object, client.FieldOwner("kubectl-create"))).To(Succeed())
}
