package hybrid

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// respectsOthers has CRs of the three kinds whose objects' names are taken, in each way in which they can be.
func respectsOthers(ctx context.Context) {
	GinkgoHelper()
	kinds := []schema.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"}}
	resource := func(version, kind string, spec map[string]any) *unstructured.Unstructured {
		cr := harness.Custom(schema.GroupKind{Group: "cache.my.domain", Kind: kind}, ground.Namespace(ctx), "lobby", spec)
		cr.SetAPIVersion("cache.my.domain/" + version)
		return cr
	}
	refusal := map[string]string{"Memcached": "Failure", "MemcachedClient": "Failure", "MemcachedBackup": "Ready"}
	changes := map[string]string{"Memcached": `{"replicaCount": 2}`, "MemcachedClient": `{"memcached": "b"}`, "MemcachedBackup": `{"size": 2}`}
	var all []*site.Stranger
	for cr, count := range map[*unstructured.Unstructured]int{
		resource("v1alpha1", "Memcached", map[string]any{"replicaCount": int64(1)}): 2,
		resource("v1alpha1", "MemcachedClient", map[string]any{"memcached": "a"}):   1,
		resource("v1", "MemcachedBackup", map[string]any{"size": int64(1)}):         1,
	} {
		ground.Create(ctx, cr)
		var own []*unstructured.Unstructured
		Eventually(ctx, func() []*unstructured.Unstructured {
			own = ground.Owned(ctx, cr, kinds...)
			return own
		}).Should(HaveLen(count), cr.GetKind())
		all = append(all, ground.Strangers(ctx, cr, own...)...)
	}
	refused := func(generation int64) func(*site.Stranger) types.GomegaMatcher {
		return func(s *site.Stranger) types.GomegaMatcher {
			condition := refusal[s.CR.GetKind()]
			status := map[string]string{"Failure": "True", "Ready": "False"}[condition]
			return site.Condition(condition, And(HaveField("Status", status), HaveField("Generation", generation),
				HaveField("Message", And(ContainSubstring(s.Object.GetKind()), ContainSubstring(s.Object.GetName())))))
		}
	}
	ground.Settle(ctx, all, refused(1))
	for _, s := range all {
		s.Change(ctx, changes[s.CR.GetKind()])
	}
	ground.Settle(ctx, all, refused(2))
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
}
