//go:build long

package mysqlcluster

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/test/harness/site"
)

// The spec of others' objects would pass for any content if it looked at the wrong thing.
var _ = DescribeTable("a mutant of the roles touches an object of somebody else, which is noticed", func(ctx context.Context, file, from, to, kind string) {
	o := newOperator(ctx)
	o.Options.Namespace = "" // All namespaces.
	o.Options.Project = site.Mutant(ground.Root, file, from, to)
	o.start(ctx)
	db := o.cluster("db")
	o.Create(ctx, db)
	o.succeeds(ctx, db)
	own := slices.DeleteFunc(ground.Owned(ctx, db, ofClusters...), func(one *unstructured.Unstructured) bool { return one.GetKind() != kind })
	Expect(own).NotTo(BeEmpty())
	all := ground.Strangers(ctx, db, own[0])
	for _, s := range all {
		in := &operator{&site.Site{Namespace: s.CR.GetNamespace()}}
		in.secret(ctx, "admin", map[string]string{"password": "not-a-servers"})
		in.secret(ctx, "readers", map[string]string{"username": "reader", "password": "reader"})
		Expect(change(ctx, s.CR, `{"mysqlPort": 3307}`)).To(Succeed())
		Eventually(ctx, o.Condition(s.CR, "Running")).Should(HaveField("Generation", int64(2)), s.Called)
	}
	if file != "roles/mysqlcluster/tasks/checks.yml" {
		for _, s := range all {
			Expect(k8s.Delete(ctx, s.CR)).To(Succeed())
		}
	}
	Eventually(func() (string, error) { return site.AnyChanged(ctx, all) }).ShouldNot(BeEmpty())
},
	Entry("a reuse by name", "roles/mysqlcluster/tasks/checks.yml",
		`  ensign\.operator\.k8s_require_owned:\n    owner: .*\n    definition: .*\n    namespace: .*\n`, `  kubernetes.core.k8s_info:
    api_version: apps/v1
    kind: StatefulSet
    name: "{{ mysqlcluster_name }}"
    namespace: "{{ mysqlcluster_namespace }}"
`, "Service"),
	Entry("a delete by label", "roles/mysqlcluster_finalizer/tasks/server.yml",
		`(?s)- name: Stop the server\n  ensign\.operator\.k8s_delete_owned:.*?\n\n`, `- name: Stop the server
  kubernetes.core.k8s:
    state: absent
    api_version: apps/v1
    kind: StatefulSet
    namespace: "{{ ansible_operator_meta.namespace }}"
    label_selectors: ["mysql-cluster={{ ansible_operator_meta.name }}"]
    delete_all: true

`, "StatefulSet"),
)
