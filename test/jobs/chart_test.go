package jobs

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
)

// chartFiles are an operator whose chart has a ConfigMap with a word. With hold it has a hook before such
// actions, which ends when the test says so.
func chartFiles() map[string]string {
	return map[string]string{
		"watches.yaml": `
- group: jobs.example.com
  version: v1
  kind: Freight
  chart: chart
  executor: job
  reconcilePeriod: 0s
  timeout: 10m
  job:
    podTemplate:
      spec: {` + pods.Placement + `, containers: [{name: manager, image: none, command: [manager]}]}
`,
		"chart/Chart.yaml":  "apiVersion: v2\nname: freight\nversion: 1.0.0\n",
		"chart/values.yaml": "word: none\nhold: ''\n",
		"chart/templates/map.yaml": `{{ if eq .Values.word "bad" }}{{ fail "a bad word" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}"}
data: {word: "{{ .Values.word }}"}
`,
		"chart/templates/hook.yaml": `{{ if .Values.hold }}
apiVersion: v1
kind: Pod
metadata: {name: "{{ .Release.Name }}-hold-{{ .Release.Revision }}", annotations: {helm.sh/hook: "pre-{{ .Values.hold }}", helm.sh/hook-delete-policy: hook-succeeded}}
spec: {restartPolicy: Never, nodeSelector: {nowhere: "true"}, containers: [{name: c, image: none}]}
{{ end }}
`,
	}
}

func specify(ctx context.Context, cr *unstructured.Unstructured, spec string) {
	GinkgoHelper()
	Expect(ground.Client.Patch(ctx, cr, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`)))).To(Succeed())
}

// word reads what the release has written.
func (o operator) word(cr *unstructured.Unstructured) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		made := &corev1.ConfigMap{}
		err := ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), made)
		return made.Data["word"], err
	}
}

// history returns the statuses of the release's revisions, the oldest first.
func (o operator) history(cr *unstructured.Unstructured) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list := &corev1.SecretList{}
		err := ground.Client.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels{"owner": "helm", "name": cr.GetName()})
		all := make([]string, len(list.Items))
		for _, s := range list.Items {
			var revision int
			if _, err := fmt.Sscan(s.Labels["version"], &revision); err != nil || revision > len(all) {
				return nil, fmt.Errorf("there are %d revisions, and one is %q: %w", len(all), s.Labels["version"], err)
			}
			all[revision-1] = s.Labels["status"]
		}
		return all, err
	}
}

// holds waits until an action of the revision waits for its hook, and let ends that wait.
func (o operator) holds(ctx context.Context, cr *unstructured.Unstructured, revision int) (let func()) {
	GinkgoHelper()
	hook := &corev1.Pod{}
	key := client.ObjectKey{Namespace: o.Namespace, Name: fmt.Sprintf("%s-hold-%d", cr.GetName(), revision)}
	Eventually(ctx, func(ctx context.Context) error { return ground.Client.Get(ctx, key, hook) }).Should(Succeed())
	return func() {
		GinkgoHelper()
		Expect(ground.Client.Status().Patch(ctx, hook, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`)))).To(Succeed())
	}
}

var _ = Describe("a chart in Jobs", func() {
	It("is a chart as any other: installed, upgraded, failing in its own words, and removed with nothing left", func(ctx SpecContext) {
		o := operatorOf(ctx, chartFiles(), nil)
		o.Start(ctx, freight.Kind)
		cr := harness.Custom(freight, o.Namespace, "one", map[string]any{"word": "first"})
		o.Create(ctx, cr)
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(o.word(cr)(ctx)).To(Equal("first"))
		made := &corev1.ConfigMap{}
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), made)).To(Succeed())
		Expect(made.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		Expect(o.Log()).To(ContainSubstring("Installed release"))
		Expect(o.Metrics(ctx)).To(MatchRegexp(`mode="job"`))
		o.leavesNothing(ctx)

		specify(ctx, cr, `{"word":"second"}`)
		Eventually(ctx, o.word(cr)).Should(Equal("second"))
		Eventually(ctx, o.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		o.leavesNothing(ctx)

		specify(ctx, cr, `{"word":"bad"}`)
		Eventually(ctx, o.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UpgradeError"), HaveField("Message", ContainSubstring("a bad word"))))
		Expect(o.Condition(cr, "Failure")(ctx)).To(HaveField("Message", ContainSubstring("a bad word")))
		Expect(o.word(cr)(ctx)).To(Equal("second"))

		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr) }).Should(MatchError(ContainSubstring("not found")))
		Expect(o.history(cr)(ctx)).To(BeEmpty())
		Expect(ground.Client.Get(ctx, client.ObjectKeyFromObject(made), made)).To(MatchError(ContainSubstring("not found")))
		o.leavesNothing(ctx)
	})

	It("has the rights of its service account there, and no others", func(ctx SpecContext) {
		files := chartFiles()
		files["watches.yaml"] += "  serviceAccountName: deployer\n"
		o := operatorOf(ctx, files, nil)
		o.Start(ctx, freight.Kind)
		allow := func(resource string) {
			name := metav1.ObjectMeta{Namespace: o.Namespace, Name: resource}
			o.Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"*"}}}}, &rbacv1.RoleBinding{
				ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: resource},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: o.Namespace, Name: "deployer"}},
			})
		}
		allow("secrets") // Of the record, which the operator's pod reads before there is a Job.
		cr := harness.Custom(freight, o.Namespace, "tenant", map[string]any{"word": "first"})
		o.Create(ctx, cr)
		Eventually(ctx, o.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Message", And(
			ContainSubstring("configmaps"), ContainSubstring("system:serviceaccount:"+o.Namespace+":deployer")))))
		_, err := o.word(cr)(ctx)
		Expect(err).To(MatchError(ContainSubstring("not found")))
		allow("configmaps")
		Eventually(ctx, o.word(cr)).Should(Equal("first"))
		Eventually(ctx, o.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		Expect(o.Metrics(ctx)).To(MatchRegexp(`mode="job"`))
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		o.leavesNothing(ctx)
	})

	It("goes on while its manager is killed in the middle of an upgrade, and no recovery starts", func(ctx SpecContext) {
		o := operatorOf(ctx, chartFiles(), nil)
		o.Start(ctx, freight.Kind)
		cr := harness.Custom(freight, o.Namespace, "long", map[string]any{"word": "first", "hold": "upgrade"})
		o.Create(ctx, cr)
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))

		By("adopting an upgrade that is still wanted")
		specify(ctx, cr, `{"word":"second"}`)
		let, pod := o.holds(ctx, cr, 2), o.pod(ctx, cr)
		Expect(o.Kill()).To(Succeed())
		o.Start(ctx, freight.Kind)
		Eventually(ctx, o.Log).Should(ContainSubstring("that an earlier manager began in a Job"))
		Expect(o.history(cr)(ctx)).To(Equal([]string{"deployed", "pending-upgrade"}))
		Expect(o.pod(ctx, cr)).To(Equal(pod))
		let()
		Eventually(ctx, o.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Expect(o.history(cr)(ctx)).To(Equal([]string{"superseded", "deployed"}))
		o.leavesNothing(ctx)

		By("waiting for one that is not wanted any more")
		specify(ctx, cr, `{"word":"third"}`)
		let, pod = o.holds(ctx, cr, 3), o.pod(ctx, cr)
		Expect(o.Kill()).To(Succeed())
		specify(ctx, cr, `{"word":"fourth","hold":""}`)
		o.Start(ctx, freight.Kind)
		Eventually(ctx, o.Log).Should(ContainSubstring("the end of the resource's earlier run"))
		Expect(o.history(cr)(ctx)).To(Equal([]string{"superseded", "deployed", "pending-upgrade"}))
		Expect(o.pod(ctx, cr)).To(Equal(pod))
		let()
		Eventually(ctx, o.word(cr)).Should(Equal("fourth"))
		Eventually(ctx, o.history(cr)).Should(Equal([]string{"superseded", "superseded", "superseded", "deployed"}))

		By("ending one whose resource is deleted")
		specify(ctx, cr, `{"word":"fifth","hold":"upgrade"}`)
		o.holds(ctx, cr, 5)
		Expect(o.Kill()).To(Succeed())
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		o.Start(ctx, freight.Kind)
		Eventually(ctx, func(ctx context.Context) error { return ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr) }).Should(MatchError(ContainSubstring("not found")))
		Expect(o.history(cr)(ctx)).To(BeEmpty())
		o.leavesNothing(ctx)
	})

	It("is repeated when Kubernetes ends the pod of an upgrade, and goes on while its manager is killed in the middle of the uninstallation", func(ctx SpecContext) {
		o := operatorOf(ctx, chartFiles(), nil)
		o.Start(ctx, freight.Kind)
		cr := harness.Custom(freight, o.Namespace, "ended", map[string]any{"word": "first", "hold": "upgrade"})
		o.Create(ctx, cr)
		Expect(o.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))

		specify(ctx, cr, `{"word":"second"}`)
		o.holds(ctx, cr, 2)
		Expect(node.OOM(o.pod(ctx, cr))).To(Succeed())
		Eventually(ctx, o.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Reason", "UpgradeError"), HaveField("Message", ContainSubstring("OOMKilled"))))
		o.holds(ctx, cr, 3)()
		Eventually(ctx, o.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Expect(o.history(cr)(ctx)).To(Equal([]string{"superseded", "failed", "deployed"}))

		specify(ctx, cr, `{"hold":"delete"}`)
		Eventually(ctx, o.history(cr)).Should(Equal([]string{"superseded", "failed", "superseded", "deployed"}))
		Expect(ground.Client.Delete(ctx, cr)).To(Succeed())
		let, pod := o.holds(ctx, cr, 4), o.pod(ctx, cr)
		Expect(o.Kill()).To(Succeed())
		o.Start(ctx, freight.Kind)
		Eventually(ctx, o.Log).Should(ContainSubstring("that an earlier manager began in a Job"))
		Expect(o.pod(ctx, cr)).To(Equal(pod))
		let()
		Eventually(ctx, func(ctx context.Context) error { return ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr) }).Should(MatchError(ContainSubstring("not found")))
		Expect(o.history(cr)(ctx)).To(BeEmpty())
		o.leavesNothing(ctx)
	})
})
