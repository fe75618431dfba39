package charts

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// former is the kind of a project as operator-sdk's Helm operator had it: its watches.yaml, rights
// and chart, nothing of which was changed.
var former = schema.GroupKind{Group: "former.example.com", Kind: "Web"}

// formerFile reads a file of the project.
func formerFile(name string, into any) {
	GinkgoHelper()
	text, err := os.ReadFile("testdata/former/" + name)
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, into)).To(Succeed())
}

var _ = Describe("a project of operator-sdk's Helm operator", Label("long"), func() {
	It("works as it is, with its rights, and shows what it showed", func(ctx context.Context) {
		definition, role, cr := &apiextensionsv1.CustomResourceDefinition{}, &rbacv1.ClusterRole{}, &unstructured.Unstructured{}
		formerFile("config/crd/bases/former.example.com_webs.yaml", definition)
		formerFile("config/rbac/role.yaml", role)
		formerFile("config/samples/former_v1alpha1_web.yaml", &cr.Object)
		ground.Define(ctx, definition)
		s := newSite(ctx, nil)
		Expect(os.CopyFS(s.Options.Project, os.DirFS("testdata/former"))).To(Succeed())
		s.Limit(ctx, role.Rules...)
		s.Start(ctx, former.Kind)
		cr.SetNamespace(s.Namespace)
		s.Create(ctx, cr)

		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(harness.ConditionOf(cr, "Initialized")).To(HaveField("Status", "True"))
		Expect(harness.ConditionOf(cr, "Deployed")).To(And(HaveField("Status", "True"), HaveField("Reason", "InstallSuccessful"), HaveField("Message", "Web web-sample is at port 80.\n")))
		Expect(harness.ConditionOf(cr, "Irreconcilable")).To(Equal(harness.Condition{}))
		Expect(cr.GetFinalizers()).To(ConsistOf("helm.sdk.operatorframework.io/uninstall-release"))
		released, _, _ := unstructured.NestedMap(cr.Object, "status", "deployedRelease")
		Expect(released).To(And(HaveKeyWithValue("name", "web-sample"), HaveKeyWithValue("manifest", And(ContainSubstring("kind: Deployment"), ContainSubstring("kind: Service")))))
		made := &appsv1.Deployment{}
		Expect(objectNamed(s, "web-sample", made)(ctx)).To(Succeed())
		Expect(made.Spec.Template.Spec.Containers[0].Image).To(Equal("web:v2"))
		Expect(made.OwnerReferences).To(ContainElement(HaveField("UID", cr.GetUID())))
		Eventually(ctx, notes(cr, "OverrideValuesInUse")).Should(ConsistOf(`Chart value "image.tag" overridden to "v2" by operator's watches.yaml`))

		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"service":{"port":"none"}}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Status", "True"), HaveField("Reason", "UpgradeError")))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"service":{"port":81}}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(And(HaveField("Reason", "UpgradeSuccessful"), HaveField("Message", "Web web-sample is at port 81.\n")))
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(Equal(harness.Condition{}))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "web-sample", cr)).Should(site.BeGone())
		Expect(objectNamed(s, "web-sample", made)(ctx)).To(site.BeGone())
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(ContainSubstring("Installed release"), ContainSubstring("Upgraded release"), ContainSubstring("Uninstalled release"), ContainSubstring("Removing finalizer"), Not(ContainSubstring("forbidden"))))
	})
})
