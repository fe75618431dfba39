package mysqlcluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var ofClusters = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
}

// like returns an object that a cluster has, as somebody else could make it.
func like(ctx context.Context, o *operator, kind, name string) *unstructured.Unstructured {
	GinkgoHelper()
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	return site.Read(ctx, ground, o.Namespace, name, there)
}

var _ = It("leaves other owners' objects as they are through the life of a MySQLCluster", func(ctx context.Context) {
	o := newOperator(ctx)
	o.Options.Namespace = "" // All namespaces.
	o.start(ctx)
	db := o.cluster("db")
	o.Create(ctx, db)
	o.succeeds(ctx, db)
	own := ground.Owned(ctx, db, ofClusters...)
	Expect(own).To(HaveLen(5))
	pod := harness.Custom(schema.GroupKind{Kind: "Pod"}, "", "db-0", map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}})
	pod.SetLabels(like(ctx, o, "Pod", "db-0").GetLabels())
	refused := ground.Strangers(ctx, db, append(own, pod, like(ctx, o, "PersistentVolumeClaim", "data-db-0"))...)
	beside := harness.Custom(schema.GroupKind{Kind: "Pod"}, "", "stranger", pod.DeepCopy().Object["spec"].(map[string]any))
	beside.SetLabels(pod.GetLabels())
	others := ground.Strangers(ctx, db, beside)
	all := append(refused, others...)
	for _, s := range all {
		in := &operator{&site.Site{Namespace: s.CR.GetNamespace()}}
		in.secret(ctx, "admin", map[string]string{"password": "not-a-servers"})
		in.secret(ctx, "readers", map[string]string{"username": "reader", "password": "reader"})
	}
	ground.Settle(ctx, refused, func(s *site.Stranger) types.GomegaMatcher {
		return site.Condition("Failure", And(HaveField("Status", "True"),
			HaveField("Message", ContainSubstring(s.Object.GetKind()+" "+s.Object.GetNamespace()+"/"+s.Object.GetName()+" exists and "))))
	})
	ground.Settle(ctx, others, func(*site.Stranger) types.GomegaMatcher {
		return site.Condition("Successful", HaveField("Status", "True"))
	})
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
})

var _ = It("retains a claim for the next MySQLCluster of its name, and takes no other", func(ctx context.Context) {
	const mark = "myapp.myorg.tld/cluster-uid"
	o := newOperator(ctx)
	o.start(ctx)
	claim := func() *corev1.PersistentVolumeClaim {
		GinkgoHelper()
		return site.Read(ctx, ground, o.Namespace, "data-db-0", &corev1.PersistentVolumeClaim{})
	}
	db := o.cluster("db")
	Expect(unstructured.SetNestedField(db.Object, "Retain", "spec", "reclaimPolicy")).To(Succeed())
	next := db.DeepCopy()
	o.Create(ctx, db)
	o.succeeds(ctx, db)
	first := claim()
	Expect(first.Annotations).To(HaveKeyWithValue(mark, string(db.GetUID())))
	ground.Delete(ctx, db)
	Expect(claim()).To(And(HaveField("UID", first.UID), HaveField("Annotations", HaveKeyWithValue(mark, "retained"))))
	o.Create(ctx, next)
	o.succeeds(ctx, next)
	Expect(claim()).To(And(HaveField("UID", first.UID), HaveField("Annotations", HaveKeyWithValue(mark, string(next.GetUID())))))
	ground.Delete(ctx, next)
})
