package hooks

import (
	"context"
	"os"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/examples/manifests"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

// applies adds the watch whose content are the manifests, and counts its runs.
func applies(runs *atomic.Int32, opts ...ensign.WatchOption) func(*ensign.Manager) {
	return func(m *ensign.Manager) {
		GinkgoHelper()
		engine, err := manifests.New(os.DirFS("testdata/manifests"), m.GetRESTMapper())
		Expect(err).NotTo(HaveOccurred())
		count := ensign.PreHook(func(context.Context, *unstructured.Unstructured, map[string]any) error {
			runs.Add(1)
			return nil
		})
		Expect(m.AddWatch(ensign.Custom{Kind: kind, Engine: engine}, append(opts, count)...)).To(Succeed())
	}
}

var _ = Describe("a kind of content that a program brings", func() {
	It("applies its manifests, reports failures, does not run after a restart, and goes with the CR", func(ctx context.Context) {
		o, runs := newOperator(ctx), &atomic.Int32{}
		o.start(applies(runs, ensign.CodeVersion("1")))
		cr := o.note("a", "first")
		create(ctx, cr)
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))
		made := o.configMap("a", nil)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(made), made)).To(Succeed())
		Expect(made.Data).To(HaveKeyWithValue("text", "first"))
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))

		By("a change of the CR, and one of its child")
		merge(ctx, cr, `{"spec": {"text": "second"}}`)
		Eventually(ctx, o.data("a", "text")).Should(Equal("second"))
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))
		merge(ctx, made, `{"data": {"text": "drifted"}}`)
		Eventually(ctx, o.data("a", "text")).Should(Equal("second"))

		By("a spec that the manifests cannot work with, and one that the API server refuses")
		merge(ctx, cr, `{"spec": {"text": null}}`)
		Eventually(ctx, condition(cr, "Failure")).Should(Equal("True/InvalidSpec: spec.text is missing"))
		merge(ctx, cr, `{"spec": {"text": 7}}`)
		Eventually(ctx, condition(cr, "Failure")).Should(And(HavePrefix("True/Failed: ConfigMap a: "), ContainSubstring("7")))
		merge(ctx, cr, `{"spec": {"text": "third"}}`)
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))

		By("a restart")
		o.stop()
		before := runs.Load()
		o.start(applies(runs, ensign.CodeVersion("1")))
		another := o.note("b", "another")
		create(ctx, another)
		Eventually(ctx, condition(another, "Successful")).Should(HavePrefix("True/Successful"))
		merge(ctx, cr, `{"metadata": {"labels": {"a": "look"}}}`)
		Expect(runs.Load()-before).To(BeEquivalentTo(1), "only the new resource runs")

		By("the deletion")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(made), made))
		}).Should(BeTrue())
	})
})

var _ = Describe("the additions of a program to a watch", func() {
	It("runs a CR again when a source names it, and holds the runs of one that is paused", func(ctx context.Context) {
		o, runs := newOperator(ctx), &atomic.Int32{}
		settings := o.configMap("settings", map[string]string{"text": "first"})
		create(ctx, settings)
		paused := ensign.Paused(func(cr *unstructured.Unstructured) bool { return cr.GetLabels()["frozen"] == "yes" })
		add := func(m *ensign.Manager) {
			read := ensign.TranslateValues(func(ctx context.Context, _ *unstructured.Unstructured, _ map[string]any) (map[string]any, error) {
				now := &corev1.ConfigMap{}
				err := m.GetClient().Get(ctx, client.ObjectKeyFromObject(settings), now)
				return map[string]any{"text": now.Data["text"]}, err
			})
			all := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, changed *corev1.ConfigMap) []reconcile.Request {
				if changed.Name != settings.Name {
					return nil
				}
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.namespace, Name: "a"}}}
			})
			applies(runs, ensign.CodeVersion("1"), paused, read, ensign.Watches(source.Kind(m.GetCache(), &corev1.ConfigMap{}, all)))(m)
		}
		o.start(add)
		cr := o.note("a", "")
		create(ctx, cr)
		Eventually(ctx, o.data("a", "text")).Should(Equal("first"))
		Eventually(ctx, condition(cr, "Successful")).Should(HavePrefix("True/Successful"))

		By("a change of the source")
		merge(ctx, settings, `{"data": {"text": "second"}}`)
		Eventually(ctx, o.data("a", "text")).Should(Equal("second"))
		Eventually(ctx, condition(cr, "Running")).Should(HavePrefix("True/Successful"))

		By("a restart, at which the source reports existing objects")
		before := runs.Load()
		o.start(add)
		another := o.note("b", "")
		create(ctx, another)
		Eventually(ctx, condition(another, "Successful")).Should(HavePrefix("True/Successful"))
		Expect(runs.Load()-before).To(BeEquivalentTo(1), "only the new resource runs")

		By("a change of an object that a function reads, while no manager runs")
		o.stop()
		merge(ctx, settings, `{"data": {"text": "changed meanwhile"}}`)
		o.start(add)
		Eventually(ctx, o.data("a", "text")).Should(Equal("changed meanwhile"))
		Eventually(ctx, condition(cr, "Running")).Should(HavePrefix("True/Successful"))

		By("a pause by a label")
		merge(ctx, cr, `{"metadata": {"labels": {"frozen": "yes"}}}`)
		merge(ctx, settings, `{"data": {"text": "third"}}`)
		Eventually(ctx, condition(cr, "Running")).Should(HavePrefix("False/Paused"))
		Expect(o.data("a", "text")(ctx)).To(Equal("changed meanwhile"))
		merge(ctx, cr, `{"metadata": {"labels": {"frozen": null}}}`)
		Eventually(ctx, o.data("a", "text")).Should(Equal("third"))
	})
})
