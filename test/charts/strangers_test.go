package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var ofCharts = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Version: "v1", Kind: "Service"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

var _ = DescribeTable("objects of other owners stay as they are through the life of a CR of the example", func(ctx context.Context, example string, kind schema.GroupKind, spec map[string]any, objects int) {
	s := operator(ctx, example)
	s.Options.Namespace = "" // All namespaces.
	s.Start(ctx, kind.Kind)
	cr := harness.Custom(kind, s.Namespace, "lobby", spec)
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	own := ground.Owned(ctx, cr, ofCharts...)
	Expect(own).To(HaveLen(objects))
	all := ground.Strangers(ctx, cr, own...)

	By("runs that are refused, before and after a change of the spec")
	for generation := int64(1); generation <= 2; generation++ {
		for _, s := range all {
			condition := func(ctx context.Context) (harness.Condition, error) {
				now := &unstructured.Unstructured{}
				now.SetGroupVersionKind(s.CR.GroupVersionKind())
				err := k8s.Get(ctx, client.ObjectKeyFromObject(s.CR), now)
				return harness.ConditionOf(now, "Failure"), err
			}
			Eventually(ctx, condition).Should(And(HaveField("Status", "True"), HaveField("Generation", generation),
				HaveField("Message", And(ContainSubstring(s.Object.GetKind()), ContainSubstring(s.Object.GetName())))), s.Called)
			s.IsUnchanged(ctx)
			Expect(k8s.Patch(ctx, s.CR, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"replicaCount": 3}}`)))).To(Succeed())
		}
	}
	By("the end")
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
},
	Entry("hello", "hello", hello, map[string]any{"replicaCount": int64(1), "ingress": map[string]any{"enabled": true}}, 5),
	Entry("memcached", "memcached", memcached, map[string]any{"replicaCount": int64(1)}, 3),
)
