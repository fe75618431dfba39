package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
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
	refused := func(generation int64) func(*site.Stranger) types.GomegaMatcher {
		return func(s *site.Stranger) types.GomegaMatcher {
			return site.Condition("Failure", And(HaveField("Status", "True"), HaveField("Generation", generation),
				HaveField("Message", And(ContainSubstring(s.Object.GetKind()), ContainSubstring(s.Object.GetName())))))
		}
	}
	ground.Settle(ctx, all, refused(1))
	for _, s := range all {
		s.Change(ctx, `{"replicaCount": 3}`)
	}
	ground.Settle(ctx, all, refused(2))
	By("the end")
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
},
	Entry("hello", "hello", hello, map[string]any{"replicaCount": int64(1), "ingress": map[string]any{"enabled": true}}, 5),
	Entry("memcached", "memcached", memcached, map[string]any{"replicaCount": int64(1)}, 3),
)
