//go:build long

package children

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("drift at length", func() {
	// The role finds what the garbage collector is about to take.
	It("is repaired for a CR that comes while its predecessor's children go", func(ctx context.Context) {
		p := newOperator(ctx, watching(""), harness.Options{}).start(ctx)
		child := p.configMap("child")
		cr := p.custom("again", making(child))
		Expect(k8s.Create(ctx, cr.DeepCopy())).To(Succeed())
		p.Settles(cr, 1)
		before, err := field(child, "metadata", "uid")(ctx)
		Expect(err).NotTo(HaveOccurred())
		patch(ctx, child, `{"metadata": {"finalizers": ["children.ensign.io/slow"]}}`)
		p.Settles(cr, 2)
		Expect(k8s.Delete(ctx, cr.DeepCopy())).To(Succeed())
		Eventually(ctx, field(child, "metadata", "deletionTimestamp")).ShouldNot(BeEmpty())
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 3)
		Expect(field(child, "metadata", "uid")(ctx)).To(Equal(before))
		patch(ctx, child, `{"metadata": {"finalizers": null}}`)
		p.Settles(cr, 4)
		Expect(field(child, "metadata", "uid")(ctx)).NotTo(Or(BeEmpty(), Equal(before)))
	})

	It("of a shared child is repaired for both, and of a kind that goes, harms no other, and begins again with the kind", func(ctx context.Context) {
		thing := schema.GroupKind{Group: "children.ensign.io", Kind: "Thing"}
		Expect(k8s.Create(ctx, harness.Definition(thing))).To(Succeed())
		p := newOperator(ctx, watching(""), harness.Options{}).start(ctx)
		shared := p.configMap("shared")
		custom := p.object("children.ensign.io/v1", "Thing", "custom", map[string]any{"spec": map[string]any{"a": "1"}})
		one, two := p.custom("one", making(shared)), p.custom("two", making(custom))
		Eventually(func() error { return k8s.Create(ctx, one.DeepCopy()) }).Should(Succeed())
		Eventually(func() error { return k8s.Create(ctx, two.DeepCopy()) }).Should(Succeed())
		p.Settles(one, 1)
		p.Settles(two, 1)
		p.Watched(ctx, "configmaps", "things.children.ensign.io")
		By("taking a kind of children away")
		Expect(k8s.Delete(ctx, harness.Definition(thing))).To(Succeed())
		Eventually(p.Runs(two)).Should(BeNumerically(">=", 2))
		By("giving it back")
		Expect(k8s.Create(ctx, harness.Definition(thing))).To(Succeed())
		Eventually(ctx, field(custom, "metadata", "uid")).ShouldNot(BeEmpty())
		p.Watched(ctx, "things.children.ensign.io")
		remove(ctx, custom)
		Eventually(ctx, field(custom, "metadata", "uid")).ShouldNot(BeEmpty())
		By("sharing a child, whose drift is that of both")
		Expect(k8s.Delete(ctx, two)).To(Succeed())
		three := p.custom("three", map[string]any{})
		Expect(k8s.Create(ctx, three)).To(Succeed())
		p.Settles(three, 1)
		reference := metav1.OwnerReference{APIVersion: "children.ensign.io/v1", Kind: "Box", Name: "three", UID: three.GetUID()}
		owned := &unstructured.Unstructured{Object: map[string]any{}}
		owned.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		Expect(k8s.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: "shared"}, owned)).To(Succeed())
		owned.SetOwnerReferences(append(owned.GetOwnerReferences(), reference))
		Expect(k8s.Update(ctx, owned)).To(Succeed())
		before, after := p.Calms(one), p.Calms(three)
		remove(ctx, shared)
		p.Settles(one, before+1)
		p.Settles(three, after+1)
	})

	It("is the leader's to repair", func(ctx context.Context) {
		p := newOperator(ctx, watching(""), harness.Options{Args: []string{"--leader-elect", "--leader-election-id=drift"}}).start(ctx)
		child := p.configMap("child")
		cr := p.custom("led", making(child))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		copied := *p.Site
		standby := &operator{&copied}
		standby.Options.Home = filepath.Join(p.Dir, "standby")
		var err error
		standby.Manager, err = harness.Start(standby.Options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(standby.Stop()).To(Succeed()) })
		Eventually(standby.Log).Should(ContainSubstring("ttempting to acquire leader lease"))
		remove(ctx, child)
		p.Settles(cr, 2)
		Expect(standby.Log()).NotTo(Or(ContainSubstring("watching a kind of children"), ContainSubstring("run started")))
		By("ending the leader")
		Expect(p.Stop()).To(Succeed())
		Expect(standby.Ready(ctx, "Box")).To(Succeed())
		standby.Watched(ctx, "configmaps")
		Consistently(standby.Runs(cr), site.Calm).Should(BeZero())
		remove(ctx, child)
		standby.Settles(cr, 1)
	})
})
