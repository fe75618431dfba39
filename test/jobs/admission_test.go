package jobs

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// changePods lets the API server change the pods of the operator's namespace, as admission webhooks do. The
// patch is CEL. It returns when changed is true of a new pod, and remove ends that.
func (o operator) changePods(ctx context.Context, patch string, changed func(*corev1.Pod) bool) (remove func()) {
	GinkgoHelper()
	name := "pods-of-" + o.Namespace
	var made []client.Object
	for _, text := range []string{`
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{%[3]s}]'}}]
`, `
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[2]s}}}}
`} {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: admissionregistration.k8s.io/v1"+text, name, o.Namespace, patch), &object.Object)).To(Succeed())
		o.Create(ctx, object)
		made = append(made, object)
	}
	try := func(ctx context.Context) (bool, error) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "try", Labels: map[string]string{template.RunLabel: "true"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		err := ground.Client.Create(ctx, pod, client.DryRunAll)
		return changed(pod), err
	}
	Eventually(ctx, try).Should(BeTrue())
	return func() {
		GinkgoHelper()
		for _, object := range made {
			Expect(ground.Client.Delete(ctx, object)).To(Succeed())
		}
		Eventually(ctx, try).Should(BeFalse())
	}
}

var _ = Describe("a run in a Job, whose pod others change at its creation", Label("long"), func() {
	DescribeTable("is a run as any other beside a container that never ends", func(ctx SpecContext, where string) {
		o := newOperator(ctx, "10m")
		o.changePods(ctx, `op: "add", path: "/spec/containers/`+where+`", value: Object.spec.containers{name: "mesh", image: "mesh"}`,
			func(p *corev1.Pod) bool { return len(p.Spec.Containers) == 2 })
		o.Start(ctx, work.Kind)
		Expect(o.Outcome(ctx, o.create(ctx, "good", map[string]any{"writes": true}))).To(HaveField("Reason", "Successful"))
		o.leavesNothing(ctx)
		Expect(o.Outcome(ctx, o.create(ctx, "bad", map[string]any{"fails": true}))).To(HaveField("Message", ContainSubstring("this was asked for")))

		killed := o.create(ctx, "killed", map[string]any{"seconds": 600.0})
		at(ctx, killed, lives, 1)
		Expect(node.OOM(o.pod(ctx, killed))).To(Succeed())
		Eventually(ctx, o.Condition(killed, "Failure")).Should(HaveField("Message", ContainSubstring("OOMKilled")))

		alone := o.create(ctx, "alone", map[string]any{"seconds": 2.0})
		at(ctx, alone, lives, 1)
		Expect(o.Kill()).To(Succeed())
		at(ctx, alone, ends, 1)
		o.Start(ctx, work.Kind)
		Expect(o.Outcome(ctx, alone)).To(HaveField("Reason", "Successful"))
		Expect(counted(alone, begins)).To(Equal(1))
	},
		Entry("behind its own", "-"),
		Entry("before its own", "0"),
	)

	It("does not begin without the label by which the operator sees its end, and says so", func(ctx SpecContext) {
		o := newOperator(ctx, "10m")
		restore := o.changePods(ctx, `op: "remove", path: "/metadata/labels/ensign.io~1run"`, func(p *corev1.Pod) bool { return p.Labels[template.RunLabel] == "" })
		o.Start(ctx, work.Kind)
		cr := o.create(ctx, "hidden", map[string]any{"seconds": 600.0})
		Eventually(ctx, o.Condition(cr, "Running")).Should(HaveField("Message", ContainSubstring("the pod of the Job has no label "+template.RunLabel)))
		Consistently(func() (int, error) { return counted(cr, begins) }).WithTimeout(site.Calm).Should(BeZero(), "whoever deletes its Job alone would have two runs")
		restore()
		Expect(ground.Client.Delete(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: template.Name(string(cr.GetUID()))}},
			client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		at(ctx, cr, begins, 1)
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		o.leavesNothing(ctx)
	})
})
