package etcd

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var ofClusters = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "PersistentVolumeClaim"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
}

// thing returns an object with the labels of the members of the cluster db.
func thing(group, kind, name string, spec map[string]any) *unstructured.Unstructured {
	made := harness.Custom(schema.GroupKind{Group: group, Kind: kind}, "", name, spec)
	made.SetLabels(map[string]string{"app": "etcd", "etcd_cluster": "db"})
	return made
}

// nothing is the spec of a pod or of the pods of a Job.
func nothing() map[string]any {
	return map[string]any{"restartPolicy": "Never", "containers": []any{map[string]any{"name": "c", "image": "none"}}}
}

// operate starts the operator of a project until the end of the spec.
func operate(ctx context.Context, project string) {
	GinkgoHelper()
	operator := ground.Site(ctx, nil)
	operator.Options.Project = project
	operator.Options.Namespace = ""
	operator.Options.Args = append(operator.Options.Args, "--max-backoff=5s")
	operator.Options.Env = append(operator.Options.Env, "ANSIBLE_GATHERING=explicit")
	operator.Start(ctx, "EtcdCluster", "EtcdBackup", "EtcdRestore")
}

// Nothing answers in the pods here: a cluster waits for its first member.
var _ = It("leaves other owners' objects as they are through the life of its resources", func(ctx context.Context) {
	operate(ctx, filepath.Join(ground.Root, "examples", "etcd"))
	cluster := object("EtcdCluster", "db", `{"size": 1}`)
	cluster.SetNamespace(ground.Namespace(ctx))
	ground.Create(ctx, cluster)
	var own []*unstructured.Unstructured
	Eventually(ctx, func() []*unstructured.Unstructured {
		own = ground.Owned(ctx, cluster, ofClusters...)
		return own
	}).Should(HaveLen(6))
	job := map[string]any{"suspend": true, "template": map[string]any{"spec": nothing()}}

	refused := ground.Strangers(ctx, cluster, append(own, thing("", "Pod", "db-0", nothing()))...)
	refused = append(refused, ground.Strangers(ctx, object("EtcdBackup", "b", `{"etcdEndpoints":["http://a:1"],`+backup+`}`), thing("batch", "Job", "b-0", job))...)
	restored := ground.Strangers(ctx, cluster, thing("batch", "Job", "db-restore", job))
	asks := `{"metadata":{"annotations":{"etcd.database.coreos.com/restore":"r","ansible.sdk.operatorframework.io/reconcile-requested-at":"now"}}}`
	for _, s := range restored {
		r := object("EtcdRestore", "r", `{`+restore+`,"persistentVolumeClaim":{"claimName":"c","path":"a"}}`)
		r.SetNamespace(s.CR.GetNamespace())
		ground.Create(ctx, r)
		Expect(ground.Client.Patch(ctx, s.CR, client.RawPatch("application/merge-patch+json", []byte(asks)))).To(Succeed())
	}
	// They are in nobody's way: neither a pod that has the labels alone, nor a claim of a member that the cluster does not have.
	beside := ground.Strangers(ctx, cluster, thing("", "Pod", "stranger", nothing()), func() *unstructured.Unstructured {
		claim := own[3].DeepCopy()
		Expect(claim.GetKind()).To(Equal("PersistentVolumeClaim"))
		claim.SetName("data-db-7")
		return claim
	}())

	ground.Settle(ctx, append(refused, restored...), func(s *site.Stranger) types.GomegaMatcher {
		is := site.Condition("Failure", And(HaveField("Status", "True"), HaveField("Message", And(
			ContainSubstring(s.Object.GetKind()+" "+s.Object.GetNamespace()+"/"+s.Object.GetName()+" exists and "), ContainSubstring("to "+s.CR.GetKind()+" "+s.CR.GetName())))))
		if s.CR.GetKind() == "EtcdCluster" {
			return And(is, site.Condition("Ready", HaveField("Status", "False")))
		}
		return is
	})
	ground.Settle(ctx, beside, func(*site.Stranger) types.GomegaMatcher {
		return HaveField("Object", HaveKeyWithValue("status", HaveKeyWithValue("reason", ContainSubstring("the first member starts"))))
	})
	all := append(append(refused, restored...), beside...)
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
})
