package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

func notes(cr *unstructured.Unstructured, reason string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (found []string, err error) {
		list := &corev1.EventList{}
		err = k8s.List(ctx, list, client.InNamespace(cr.GetNamespace()))
		for _, event := range list.Items {
			if event.InvolvedObject.UID == cr.GetUID() && event.Reason == reason {
				found = append(found, event.Message)
			}
		}
		return found, err
	}
}

var _ = Describe("the example memcached", Label("long"), Ordered, func() {
	var (
		s               *site.Site
		three, measured *unstructured.Unstructured
	)

	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "memcached")
		s.Limit(ctx, rules("memcached/rbac/role.yaml")...)
		s.Options.Env = append(s.Options.Env, "RELATED_IMAGE_EXPORTER=mirror.example.com/exporter:1,2")
		s.Start(ctx, memcached.Kind)
		for name, into := range map[string]**unstructured.Unstructured{"memcached/samples/memcached.yaml": &three, "memcached/samples/with-metrics.yaml": &measured} {
			sample := &unstructured.Unstructured{}
			read(name, &sample.Object)
			*into = harness.Custom(memcached, s.Namespace, sample.GetName(), sample.Object["spec"].(map[string]any))
			s.Create(ctx, *into)
		}
		for _, cr := range []*unstructured.Unstructured{three, measured} { // Each spec may be the only one that runs.
			Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		}
	})

	It("runs three servers that come up", func(ctx context.Context) {
		servers, service, budget := &appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}
		for _, object := range []client.Object{servers, service, budget} {
			Expect(objectNamed(s, three.GetName(), object)(ctx)).To(Succeed())
			Expect(object.GetOwnerReferences()).To(ConsistOf(And(HaveField("UID", three.GetUID()), HaveField("Kind", "memcached"))))
		}
		Expect(servers.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(servers.Spec.Template.Spec.Containers).To(HaveExactElements(And(HaveField("Image", "memcached:1.6-alpine"), HaveField("Args", ContainElement("--memory-limit=128")))))
		Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
		Eventually(ctx, func(ctx context.Context) (int32, error) {
			err := objectNamed(s, three.GetName(), servers)(ctx)
			return servers.Status.ReadyReplicas, err
		}).Should(BeEquivalentTo(3))
	})

	It("runs another beside them, with metrics", func(ctx context.Context) {
		servers := &appsv1.StatefulSet{}
		Expect(objectNamed(s, measured.GetName(), servers)(ctx)).To(Succeed())
		Expect(servers.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(servers.Spec.Template.Spec.Containers).To(HaveExactElements(HaveField("Name", "memcached"), HaveField("Image", "mirror.example.com/exporter:1,2")))
	})

	It("reports the values that override the CR's", func(ctx context.Context) {
		Eventually(ctx, notes(measured, "OverrideValuesInUse")).Should(ConsistOf(
			`Chart value "image" overridden to "memcached:1.6-alpine" by operator's watches.yaml`,
			`Chart value "metrics.image" overridden to "mirror.example.com/exporter:1,2" by operator's watches.yaml`))
	})

	It("scales by its spec, in one revision", func(ctx context.Context) {
		Expect(k8s.Patch(ctx, three, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicaCount":2}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(three, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		servers := &appsv1.StatefulSet{}
		Expect(objectNamed(s, three.GetName(), servers)(ctx)).To(Succeed())
		Expect(servers.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(statuses(s, three.GetName())(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "deployed"}))
	})

	It("removes one, and leaves the other alone", func(ctx context.Context) {
		other := &appsv1.StatefulSet{}
		Expect(objectNamed(s, measured.GetName(), other)(ctx)).To(Succeed())
		Expect(k8s.Delete(ctx, three)).To(Succeed())
		for _, object := range []client.Object{three.DeepCopy(), &appsv1.StatefulSet{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{}} {
			Eventually(ctx, objectNamed(s, three.GetName(), object)).Should(site.BeGone())
		}
		Eventually(ctx, statuses(s, three.GetName())).Should(BeEmpty())
		Expect(statuses(s, measured.GetName())(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		now := &appsv1.StatefulSet{}
		Expect(objectNamed(s, measured.GetName(), now)(ctx)).To(Succeed())
		Expect(now.UID).To(Equal(other.UID))
		Expect(now.Generation).To(Equal(other.Generation))
	})
})
