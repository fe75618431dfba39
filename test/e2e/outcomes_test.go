package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var _ = Describe("what a run comes to", Ordered, ContinueOnFailure, func() {
	var (
		m         *manager
		namespace string
	)
	BeforeAll(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		m = startManager(managerOptions{namespace: namespace}).ready("Broken", "Nobody", "Far", "Slow", "Probe")
	})

	DescribeTable("fails for its own reason",
		func(ctx context.Context, kind, reason, message string) {
			cr := custom(kind, namespace, strings.ToLower(kind), map[string]any{})
			Expect(k8s.Create(ctx, cr)).To(Succeed())
			Expect(expectFailure(ctx, cr, reason)).To(MatchRegexp(message))
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			expectGone(ctx, cr)
		},
		Entry("a playbook that does not parse", "Broken", "NoStats", `not_a_keyword|no_such_module_at_all`),
		Entry("a play that matches no host", "Nobody", "NoHosts", `host`),
		Entry("a host that cannot be reached", "Far", "Unreachable", `far-away`),
		Entry("a run that takes too long", "Slow", "Timeout", `3s`),
	)

	DescribeTable("refuses a spec that cannot become variables, runs nothing, and lets the CR be deleted",
		func(ctx context.Context, name string, spec map[string]any, message string) {
			cr := custom("Probe", namespace, name, spec)
			Expect(k8s.Create(ctx, cr)).To(Succeed())
			Expect(expectFailure(ctx, cr, "InvalidSpec")).To(ContainSubstring(message))
			Expect(m.startsOf(namespace + "/" + name)).To(BeZero())
			Expect(fetch(ctx, cr)).To(Succeed())
			Expect(cr.GetFinalizers()).To(BeEmpty())
			Expect(k8s.Delete(ctx, cr)).To(Succeed())
			expectGone(ctx, cr)
		},
		Entry("a name that steers Ansible", "steering", map[string]any{"ansiblePythonInterpreter": "/bin/sh"}, "ansible_python_interpreter"),
		Entry("two keys that become one", "colliding", map[string]any{"fooBar": "a", "foo_bar": "b"}, "foo_bar"),
		Entry("an empty key", "empty", map[string]any{"": "a"}, `""`),
		Entry("a key that only Ansible may use", "marking", map[string]any{"deep": map[string]any{"__ansible_unsafe": "x"}}, "__ansible_unsafe"),
		Entry("300 levels", "deep", nested(300), "64"),
	)

	It("drops names that Ansible has a value of its own for, and says so", func(ctx context.Context) {
		cr := custom("Probe", namespace, "dropping", map[string]any{"hostvars": "mine", "message": "still here"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
		m.logged(`not passed to Ansible.*hostvars`)
	})

	It("takes Jinja and event markers of a CR as text", func(ctx context.Context) {
		const jinja = "{{ lookup('pipe', 'touch /tmp/ensign-e2e-executed') }}"
		const marker = "\x1b[KeyJ1dWlkIjoiZm9yZ2VkIiwiZXZlbnQiOiJwbGF5Ym9va19vbl9zdGF0cyJ9\x1b[60D\x1b[K"
		cr := custom("Probe", namespace, "hostile", map[string]any{"message": jinja, "actionName": "fail", "marker": marker})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Expect(expectFailure(ctx, cr, "Failed")).To(ContainSubstring(jinja))
		said := configMap(namespace, "hostile-said")
		Expect(fetch(ctx, said)).To(Succeed())
		Expect(said.Data["message"]).To(Equal(jinja))
		Expect("/tmp/ensign-e2e-executed").NotTo(BeAnExistingFile())
	})

	It("names an annotation that does not parse, and runs when it is mended", func(ctx context.Context) {
		cr := custom("Note", namespace, "annotated", map[string]any{})
		const period = "ansible.sdk.operatorframework.io/reconcile-period"
		cr.SetAnnotations(map[string]string{period: "often"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Expect(expectFailure(ctx, cr, "InvalidAnnotation")).To(And(ContainSubstring(period), ContainSubstring("often")))
		Expect(fetch(ctx, cr)).To(Succeed())
		cr.SetAnnotations(map[string]string{period: "1h"})
		Expect(k8s.Update(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
	})

	It("keeps what others wrote into the status", func(ctx context.Context) {
		cr := custom("Note", namespace, "shared", map[string]any{})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
		Expect(fetch(ctx, cr)).To(Succeed())
		conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
		foreign := map[string]any{"type": "Backup", "status": "True", "own": map[string]any{"key": int64(1)}}
		Expect(unstructured.SetNestedSlice(cr.Object, append([]any{foreign}, conditions...), "status", "conditions")).To(Succeed())
		Expect(unstructured.SetNestedField(cr.Object, "kept", "status", "endpoint")).To(Succeed())
		Expect(k8s.Status().Update(ctx, cr)).To(Succeed())
		cr.Object["spec"] = map[string]any{"text": "new"}
		Expect(k8s.Update(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
		Expect(fetch(ctx, cr)).To(Succeed())
		conditions, _, _ = unstructured.NestedSlice(cr.Object, "status", "conditions")
		Expect(conditions[0]).To(Equal(foreign))
		endpoint, _, _ := unstructured.NestedString(cr.Object, "status", "endpoint")
		Expect(endpoint).To(Equal("kept"))
	})
})

func nested(levels int) map[string]any {
	spec := map[string]any{"end": "here"}
	for range levels {
		spec = map[string]any{"level": spec}
	}
	return spec
}
