//go:build long

package visitors

import (
	"context"
	"path/filepath"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

// The spec of others' objects would pass for any content if it looked at the wrong thing.
var _ = DescribeTable("a mutant of the role touches an object of somebody else, which is noticed", func(ctx context.Context, file, from, to, kind, name string) {
	runsProject(ctx, "ansible", site.Mutant(filepath.Join(example, "ansible"), file, from, to))
	app := lobby(ground.Namespace(ctx))
	ground.Create(ctx, app)
	var own []*unstructured.Unstructured
	Eventually(ctx, func() []*unstructured.Unstructured {
		own = slices.DeleteFunc(ground.Owned(ctx, app, ofSites...), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind || o.GetName() != name })
		return own
	}).Should(HaveLen(1))
	all := ground.Strangers(ctx, app, own...)
	for _, s := range all {
		Expect(ground.Client.Patch(ctx, s.CR, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"size": 3}}`)))).To(Succeed())
		Eventually(ctx, conditionOf(s.CR, "Running")).Should(HaveField("Generation", int64(2)), s.Called)
	}
	touched := func() (string, error) { return site.AnyChanged(ctx, all) }
	if file != "roles/visitorsapp/tasks/site.yml" {
		for _, s := range all {
			Expect(ground.Client.Delete(ctx, s.CR)).To(Succeed())
		}
	}
	Eventually(touched).ShouldNot(BeEmpty())
},
	Entry("a reuse by name", "roles/visitorsapp/tasks/site.yml", `- "\{\{ visitorsapp_backend \}\}"\n +- "\{\{ visitorsapp_frontend_service`, `- "{{ visitorsapp_frontend_service`, "Deployment", "lobby-backend"),
	Entry("a delete by label", "roles/visitorsapp_finalizer/tasks/main.yml", `(?s)^.*$`, `---
- name: Delete the database
  kubernetes.core.k8s:
    state: absent
    api_version: apps/v1
    kind: StatefulSet
    namespace: "{{ ansible_operator_meta.namespace }}"
    label_selectors: ["app.kubernetes.io/instance={{ ansible_operator_meta.name }}"]
    delete_all: true
`, "StatefulSet", "lobby-mysql"),
	Entry("a delete by name", "roles/visitorsapp_finalizer/tasks/main.yml", `(?s)^.*$`, `---
- name: Delete the database
  kubernetes.core.k8s:
    state: absent
    api_version: apps/v1
    kind: StatefulSet
    namespace: "{{ ansible_operator_meta.namespace }}"
    name: "{{ ansible_operator_meta.name }}-mysql"
`, "StatefulSet", "lobby-mysql"),
)
