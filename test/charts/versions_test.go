package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a release with an object in a version of its API that goes", Label("long"), func() {
	It("is upgraded to the version that stays, and loses the fields that the chart drops", func(ctx context.Context) {
		kind := schema.GroupKind{Group: "aging.example.com", Kind: "Aged"}
		crd := harness.Definition(kind)
		old := *crd.Spec.Versions[0].DeepCopy()
		old.Name, old.Storage = "v1alpha1", false
		crd.Spec.Versions = append(crd.Spec.Versions, old)
		ground.Define(ctx, crd)
		s := charted(ctx, map[string]string{
			"aged.yaml": "apiVersion: aging.example.com/{{ .Values.api }}\nkind: Aged\nmetadata: {name: '{{ .Release.Name }}-aged'}\nspec: {v: '{{ .Values.v }}'{{ if eq .Values.api \"v1alpha1\" }}, dropped: yes{{ end }}}\n",
		}, "")
		s.Write(map[string]string{"chart/values.yaml": "api: v1alpha1\nv: one\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "old", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))

		live := &apiextensionsv1.CustomResourceDefinition{}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(crd), live)).To(Succeed())
		live.Spec.Versions = live.Spec.Versions[:1]
		Expect(k8s.Update(ctx, live)).To(Succeed())
		gone := &unstructured.Unstructured{}
		gone.SetGroupVersionKind(kind.WithVersion("v1alpha1"))
		Eventually(ctx, objectNamed(s, "old-aged", gone)).ShouldNot(Succeed(), "the version is served no more")

		change(ctx, cr, `{"spec":{"api":"v1","v":"two"}}`)
		succeeded(ctx, s, cr)
		aged := harness.Custom(kind, s.Namespace, "", nil)
		Expect(objectNamed(s, "old-aged", aged)(ctx)).To(Succeed())
		Expect(aged.Object["spec"]).To(Equal(map[string]any{"v": "two"}))
		Expect(statuses(s, "old")(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
	})
})
