//go:build long

package children

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// modules writes with the modules that roles use, in each way that they know, each time
// that it runs.
//
//go:embed testdata/modules.yml
var modules string

var _ = Describe("a role with kubernetes.core", func() {
	It("makes children that belong to their CR, and stay so when it runs again", func(ctx context.Context) {
		s := ground.Site(ctx, map[string]string{
			"content.yml":  modules,
			"watches.yaml": "- {group: children.ensign.io, version: v1, kind: Box, playbook: content.yml, watchDependentResources: false}\n",
		})
		here, there := s.Namespace, ground.Namespace(ctx)
		before := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "there-before"}}
		Expect(k8s.Create(ctx, before)).To(Succeed())
		s.Start(ctx, "Box")
		cr := harness.Custom(box, here, "cr", map[string]any{"round": int64(1), "elsewhere": there})
		Eventually(func() error { return k8s.Create(ctx, cr) }).Should(Succeed())
		p := &place{run: runOf(cr, "v1"), namespace: here, marked: "reference"}
		for round := int64(1); round <= 2; round++ {
			succeeds(ctx, cr, round)
			check := func(object client.Object, reference bool) {
				GinkgoHelper()
				key := client.ObjectKeyFromObject(object)
				Expect(k8s.Get(ctx, key, object)).To(Succeed())
				references, annotated := p.ours(asUnstructured(object))
				Expect(references).To(HaveLen(map[bool]int{true: 1}[reference]), "%s, round %d", key, round)
				Expect(annotated).To(Equal(!reference), "%s, round %d", key, round)
			}
			for _, name := range []string{"patched", "merged", "strategic", "replaced", "applied", "serverside", "first", "listed"} {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name}}
				check(object, true)
				Expect(object.Data).To(HaveKeyWithValue("round", fmt.Sprintf("r%d", round)), "%s", name)
			}
			check(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: there, Name: "second"}}, false)
			check(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: there}}, false)
			workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "workload"}}
			check(workload, true)
			Expect(*workload.Spec.Replicas).To(BeNumerically("==", round))
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(before), before)).To(Succeed())
			Expect(before.OwnerReferences).To(BeEmpty())
			Expect(generated(ctx, here)).To(HaveEach(HaveLen(1)))
			if round == 1 {
				patch := []byte(`{"spec":{"round":2}}`)
				Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
			}
		}
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(func(g Gomega) {
			all := &corev1.ConfigMapList{}
			g.Expect(k8s.List(ctx, all, client.InNamespace(here))).To(Succeed())
			var names []string
			for i := range all.Items {
				names = append(names, all.Items[i].Name)
			}
			g.Expect(names).To(ConsistOf("there-before", "kube-root-ca.crt"))
		}).WithContext(ctx).Should(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: there, Name: "second"}, &corev1.ConfigMap{})).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKey{Name: there}, &rbacv1.ClusterRole{})).To(Succeed())
	})
})

// succeeds waits for the success of that generation.
func succeeds(ctx context.Context, cr *unstructured.Unstructured, generation int64) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
		condition := harness.ConditionOf(cr, "Successful")
		if failed := harness.ConditionOf(cr, "Failure"); failed.Status == "True" && failed.Reason == "Failed" {
			StopTrying(failed.Message).Now()
		}
		g.Expect(condition.Status).To(Equal("True"))
		g.Expect(condition.Generation).To(Equal(generation))
	}).WithContext(ctx).Should(Succeed())
}

func generated(ctx context.Context, namespace string) [][]metav1.OwnerReference {
	GinkgoHelper()
	all := &corev1.ConfigMapList{}
	Expect(k8s.List(ctx, all, client.InNamespace(namespace))).To(Succeed())
	var references [][]metav1.OwnerReference
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, "generated-") {
			references = append(references, all.Items[i].OwnerReferences)
		}
	}
	return references
}

func asUnstructured(object client.Object) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{}}
	child.SetAnnotations(object.GetAnnotations())
	child.SetOwnerReferences(object.GetOwnerReferences())
	return child
}
