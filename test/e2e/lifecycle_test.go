package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("an operator project of its own", Ordered, ContinueOnFailure, func() {
	var (
		m         *manager
		namespace string
	)
	BeforeAll(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		m = startManager(managerOptions{namespace: namespace}).ready("Probe", "Note")
	})

	It("runs a role for a CR and reports it", func(ctx context.Context) {
		probe := custom("Probe", namespace, "plain", map[string]any{
			"message": "hello", "subList": []any{map[string]any{"innerKey": "deep"}}, "egressIPs": []any{"10.0.0.1"},
		})
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		expectSuccess(ctx, probe)

		said := configMap(namespace, "plain-said")
		Expect(fetch(ctx, said)).To(Succeed())
		Expect(said.Data).To(Equal(map[string]string{
			"message": "hello", "written": "hello", "nested": "deep", "whole": "plain", "names": "egress_ips,message,sub_list",
		}))
		Expect(said.OwnerReferences).To(ConsistOf(metav1.OwnerReference{
			APIVersion: "test.ensign.io/v1", Kind: "Probe", Name: "plain", UID: probe.GetUID(),
		}))
		Expect(fetch(ctx, probe)).To(Succeed())
		Expect(probe.GetFinalizers()).To(ConsistOf("test.ensign.io/finalizer"))
		conditions, _, _ := unstructured.NestedSlice(probe.Object, "status", "conditions")
		Expect(conditions).To(HaveLen(3))
		Expect(conditions[0].(map[string]any)["ansibleResult"]).To(And(HaveKeyWithValue("ok", BeNumerically(">", 0)), HaveKeyWithValue("failures", int64(0))))
		observed, _, _ := unstructured.NestedInt64(probe.Object, "status", "observedGeneration")
		Expect(observed).To(Equal(probe.GetGeneration()))
		m.logged(`Keep what the CR said`)
		Eventually(ctx, func(ctx context.Context) []string { return eventsOf(ctx, probe) }).Should(Equal([]string{"Normal Succeeded"}))
	})

	It("runs again when the spec changes, and not when labels do", func(ctx context.Context) {
		probe := custom("Probe", namespace, "plain", nil)
		Expect(fetch(ctx, probe)).To(Succeed())
		probe.SetLabels(map[string]string{"edited": "yes"})
		Expect(k8s.Update(ctx, probe)).To(Succeed())
		probe.Object["spec"] = map[string]any{"message": "changed"}
		Expect(k8s.Update(ctx, probe)).To(Succeed())
		expectSuccess(ctx, probe)
		said := configMap(namespace, "plain-said")
		Expect(fetch(ctx, said)).To(Succeed())
		Expect(said.Data["message"]).To(Equal("changed"))
		Expect(m.startsOf(namespace + "/plain")).To(Equal(2))
	})

	It("runs a playbook", func(ctx context.Context) {
		note := custom("Note", namespace, "one", map[string]any{"text": "a note"})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		kept := configMap(namespace, "one-note")
		Expect(fetch(ctx, kept)).To(Succeed())
		Expect(kept.Data["text"]).To(Equal("a note"))
	})

	It("tells failing tasks from rescued ones", func(ctx context.Context) {
		rescued := custom("Probe", namespace, "rescued", map[string]any{"actionName": "rescue"})
		failing := custom("Probe", namespace, "failing", map[string]any{"actionName": "fail", "message": "on purpose"})
		Expect(k8s.Create(ctx, rescued)).To(Succeed())
		Expect(k8s.Create(ctx, failing)).To(Succeed())
		expectSuccess(ctx, rescued)
		message := expectFailure(ctx, failing, "Failed")
		Expect(message).To(And(ContainSubstring("Fail on purpose"), ContainSubstring("localhost"), ContainSubstring("the probe failed: on purpose")))
		m.logged(`(?s)-+ Ansible Task StdOut -+\n` + namespace + `/failing \| TASK \[probe : Fail on purpose\].*` + namespace + `/failing \| fatal: \[localhost\]: FAILED! => .*the probe failed: on purpose`)
		Eventually(ctx, func(ctx context.Context) []string { return eventsOf(ctx, failing) }).Should(Equal([]string{"Warning Failed"}))
		By("retrying with a growing pause, and without another Event")
		Eventually(func() int { return m.startsOf(namespace + "/failing") }).Should(BeNumerically(">=", 3))
		Expect(eventsOf(ctx, failing)).To(Equal([]string{"Warning Failed"}))
	})

	It("comes again when a role asks for it", func(ctx context.Context) {
		probe := custom("Probe", namespace, "again", map[string]any{"actionName": "requeue"})
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		Eventually(func() int { return m.startsOf(namespace + "/again") }).Should(BeNumerically(">=", 3))
		expectSuccess(ctx, probe)
		Expect(k8s.Delete(ctx, probe)).To(Succeed())
		expectGone(ctx, probe)
	})

	It("comes again after the period that an annotation sets", func(ctx context.Context) {
		note := custom("Note", namespace, "periodic", map[string]any{})
		note.SetAnnotations(map[string]string{"ansible.sdk.operatorframework.io/reconcile-period": "1s"})
		Expect(k8s.Create(ctx, note)).To(Succeed())
		expectSuccess(ctx, note)
		first := time.Now()
		Eventually(func() int { return m.startsOf(namespace + "/periodic") }).Should(BeNumerically(">=", 2))
		Expect(time.Since(first)).To(BeNumerically(">", 5*time.Second), "a period below 10 s is stretched to 10 s")
		Expect(k8s.Delete(ctx, note)).To(Succeed())
	})

	It("ties what cannot be owned by annotations", func(ctx context.Context) {
		probe := custom("Probe", namespace, "far", map[string]any{"actionName": "elsewhere"})
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		expectSuccess(ctx, probe)
		elsewhere := configMap("default", "far-elsewhere")
		Expect(fetch(ctx, elsewhere)).To(Succeed())
		Expect(elsewhere.OwnerReferences).To(BeEmpty())
		Expect(elsewhere.Annotations).To(And(
			HaveKeyWithValue("operator-sdk/primary-resource", namespace+"/far"), HaveKeyWithValue("operator-sdk/primary-resource-type", "Probe.test.ensign.io")))
	})

	It("keeps a CR until its finalizer's run succeeds", func(ctx context.Context) {
		probe := custom("Probe", namespace, "held", map[string]any{"finalizerAction": "fail"})
		Expect(k8s.Create(ctx, probe)).To(Succeed())
		expectSuccess(ctx, probe)
		Expect(k8s.Delete(ctx, probe)).To(Succeed())
		Expect(expectFailure(ctx, probe, "Failed")).To(ContainSubstring("the finalizer does not want to"))
		Expect(fetch(ctx, probe)).To(Succeed())
		Expect(probe.GetFinalizers()).To(ConsistOf("test.ensign.io/finalizer"))
		// No update, because the manager writes its status each time that it tries again.
		Expect(k8s.Patch(ctx, probe, client.RawPatch(types.MergePatchType, []byte(`{"spec": null}`)))).To(Succeed())
		expectGone(ctx, probe)
		Eventually(ctx, func(ctx context.Context) []string { return eventsOf(ctx, probe) }).Should(ContainElement("Normal Finalized"))
		m.logged(`finalizer run started.*` + namespace + `/held`)
		expectGone(ctx, configMap(namespace, "held-said"))
	})

	It("ends a run whose CR is deleted and has no finalizer", func(ctx context.Context) {
		apart := newNamespace(ctx)
		slow := custom("Slow", apart, "deleted", map[string]any{})
		patient := startManager(managerOptions{namespace: apart, dir: projectWith(`
- {group: test.ensign.io, version: v1, kind: Slow, playbook: slow.yml}
`, map[string]string{"slow.yml": readProject("playbooks/slow.yml")})}).ready("Slow")
		Expect(k8s.Create(ctx, slow)).To(Succeed())
		Eventually(patient.descendants).Should(ContainElement(ContainSubstring("sleep 600")))
		Expect(k8s.Delete(ctx, slow)).To(Succeed())
		Eventually(patient.descendants).Should(BeEmpty())
		Eventually(func() []string { return visible(patient.runDir) }).Should(BeEmpty())
	})

	It("leaves nothing behind of CRs that are gone", func(ctx context.Context) {
		for _, kind := range []string{"Probe", "Note"} {
			Expect(k8s.DeleteAllOf(ctx, custom(kind, namespace, "", nil), client.InNamespace(namespace))).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (int, error) {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(custom(kind, "", "", nil).GroupVersionKind())
				err := k8s.List(ctx, list, client.InNamespace(namespace))
				return len(list.Items), err
			}).Should(BeZero())
		}
		Eventually(m.descendants).Should(BeEmpty())
		Eventually(func() []string { return visible(m.runDir) }).Should(BeEmpty())
	})
})

// startsOf counts the runs of a CR in the log.
func (m *manager) startsOf(object string) int {
	count := 0
	for line := range strings.Lines(m.log()) {
		if strings.Contains(line, "run started") && strings.Contains(line, fmt.Sprintf("%q", object)) {
			count++
		}
	}
	return count
}

// eventsOf returns type and reason of the Events about the object, oldest first.
func eventsOf(ctx context.Context, object client.Object) []string {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(k8s.List(ctx, list, client.InNamespace(object.GetNamespace()))).To(Succeed())
	var found []string
	for _, e := range list.Items {
		if e.Regarding.UID == object.GetUID() && e.Type != "" {
			found = append(found, e.Type+" "+e.Reason)
		}
	}
	return found
}
