package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// deployment is a template of one whose pods become ready.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 2
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: a, image: none}]}
`

// definition returns a CRD of the group, as a chart has it, that says what it is for.
func definition(group, says string) string {
	GinkgoHelper()
	crd := harness.Definition(schema.GroupKind{Group: group, Kind: "Thing"})
	crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	crd.Annotations = map[string]string{"says": says}
	text, err := json.Marshal(crd)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("a watch with a chart", func() {
	It("waits for objects to be ready and to be gone", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": deployment}, "  wait: true\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "awaited", nil)
		cr.SetAnnotations(map[string]string{"helm.sdk.operatorframework.io/uninstall-wait": "true"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		made := &appsv1.Deployment{}
		Expect(objectNamed(s, "awaited", made)(ctx)).To(Succeed())
		Expect(made.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "awaited", cr)).Should(site.BeGone())
		Expect(objectNamed(s, "awaited", made)(ctx)).To(site.BeGone())
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(ContainSubstring("Uninstall wait"), ContainSubstring("Waiting until all resources are deleted"), ContainSubstring("Removing finalizer")))
	})

	It("hides the values that go over the CR's if it is asked to", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.key | quote }}")}, "  overrideValues: {key: $SOME_KEY}\n")
		s.Options.Env = append(s.Options.Env, "SOME_KEY=not for everyone")
		s.Options.Args = append(s.Options.Args, "--suppress-override-values")
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "hidden", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Eventually(ctx, notes(cr, "OverrideValuesInUse")).Should(HaveExactElements(`Chart value "key" overridden to "****" by operator's watches.yaml`))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "hidden-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"a": "not for everyone"}))
	})

	It("evaluates the templates of values that go over the CR's, with the manager's environment", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.key | quote }}")}, "  overrideValues: {key: '{{ env \"SOME_KEY\" | upper }}'}\n")
		s.Options.Env = append(s.Options.Env, "SOME_KEY=loud")
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "evaluated", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "evaluated-a", object)(ctx)).To(Succeed())
		Expect(object.Data).To(Equal(map[string]string{"a": "LOUD"}))
	})

	It("keeps so many revisions", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | quote }}")}, "  maxHistory: 2\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "long-lived", map[string]any{"a": "0"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		for i := range 3 {
			Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"a":"%d"}}`, i+1)))).To(Succeed())
			Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())))
		}
		Expect(statuses(s, "long-lived")(ctx)).To(Equal(map[string]string{"3": "superseded", "4": "deployed"}))
	})

	It("takes loose objects over if it may", func(ctx context.Context) {
		templates := map[string]string{"a.yaml": configMap("a", "{}", "a: b")}
		for _, adopt := range []bool{false, true} {
			s := charted(ctx, templates, fmt.Sprintf("  adopt: %v\n", adopt))
			s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "found-a"}, Data: map[string]string{"a": "c"}})
			s.Start(ctx, hello.Kind)
			cr := harness.Custom(hello, s.Namespace, "found", nil)
			s.Create(ctx, cr)
			object := &corev1.ConfigMap{}
			if adopt {
				Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
				Expect(objectNamed(s, "found-a", object)(ctx)).To(Succeed())
				Expect(object.Data).To(Equal(map[string]string{"a": "b"}))
			} else {
				Expect(s.Outcome(ctx, cr)).To(HaveField("Message", ContainSubstring(`"found-a"`)))
				Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(HaveField("Reason", "InstallError"))
				Expect(objectNamed(s, "found-a", object)(ctx)).To(Succeed())
				Expect(object.Data).To(Equal(map[string]string{"a": "c"}))
			}
		}
	})

	It("creates, replaces or skips the definitions of its chart", func(ctx context.Context) {
		for mode, want := range map[string][]string{"create": {"first", "first"}, "replace": {"first", "second"}, "skip": {"", ""}} {
			group := mode + ".example.com"
			s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | quote }}")}, "  crds: "+mode+"\n")
			says := func() string {
				crd := &apiextensionsv1.CustomResourceDefinition{}
				err := k8s.Get(ctx, client.ObjectKey{Name: "things." + group}, crd)
				Expect(client.IgnoreNotFound(err)).To(Succeed())
				return crd.Annotations["says"]
			}
			s.Write(map[string]string{"chart/crds/things.json": definition(group, "first")})
			s.Start(ctx, hello.Kind)
			cr := harness.Custom(hello, s.Namespace, strings.Split(group, ".")[0], map[string]any{"a": "b"})
			s.Create(ctx, cr)
			Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"), mode)
			Expect(says()).To(Equal(want[0]), mode)
			s.Write(map[string]string{"chart/crds/things.json": definition(group, "second")})
			Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"a":"c"}}`)))).To(Succeed())
			Eventually(ctx, s.Condition(cr, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", cr.GetGeneration())), mode)
			Expect(says()).To(Equal(want[1]), mode)
		}
	})
})
