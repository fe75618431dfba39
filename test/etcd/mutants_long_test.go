//go:build long

package etcd

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness/site"
)

// The spec of others' objects would pass for any content if it looked at the wrong thing.
var _ = DescribeTable("a mutant of the role touches an object of somebody else, which is noticed", func(ctx context.Context, file, from, to, kind, name string) {
	operate(ctx, site.Mutant(example, file, from, to))
	cluster := object("EtcdCluster", "db", `{"size": 1}`)
	cluster.SetNamespace(ground.Namespace(ctx))
	ground.Create(ctx, cluster)
	var own []*unstructured.Unstructured
	Eventually(ctx, func() []*unstructured.Unstructured {
		own = slices.DeleteFunc(ground.Owned(ctx, cluster, ofClusters...), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind })
		return own
	}).ShouldNot(BeEmpty())
	if name != "" {
		own[0].SetName(name)
	}
	own[0].SetLabels(map[string]string{"app": "theirs", "etcd_cluster": "db"}) // Or an apply would find nothing to change.
	all := ground.Strangers(ctx, cluster, own[0])
	Eventually(func() (string, error) { return site.AnyChanged(ctx, all) }).ShouldNot(BeEmpty())
},
	Entry("a reuse by name", "roles/etcdcluster/tasks/look.yml",
		`definition: "\{\{ etcdcluster_own_objects \}\}"`, `definition: "{{ etcdcluster_own_objects | rejectattr('kind', 'equalto', 'Service') }}"`, "Service", ""),
	Entry("a delete by label", "roles/etcdcluster/tasks/pods.yml",
		`(?s)- name: Delete the volumes of former members\n.*$`, `- name: Delete the volumes of former members
  kubernetes.core.k8s:
    state: absent
    kind: PersistentVolumeClaim
    namespace: "{{ etcdcluster_namespace }}"
    label_selectors: ["etcd_cluster={{ ansible_operator_meta.name }}"]
    delete_all: true
`, "PersistentVolumeClaim", "data-db-7"),
)
