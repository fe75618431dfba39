package charts

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// hookJob is a template of a Job that is a hook, with annotations and further fields of its spec.
func hookJob(annotations, spec string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-hook, annotations: {%s}}
spec: {backoffLimit: 0, %stemplate: {metadata: {labels: {hook: "true"}}, spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}
`, annotations, spec)
}

// end lets the Job of a hook end, as the controller of Jobs would.
func end(ctx context.Context, s *site.Site, name string, condition batchv1.JobConditionType, message string) {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(ctx, objectNamed(s, name, job)).Should(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		if err := objectNamed(s, name, job)(ctx); err != nil {
			return err
		}
		now := metav1.Now()
		ended := batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue, Reason: "ByTest", Message: message, LastTransitionTime: now}
		if job.Status.StartTime == nil {
			job.Status.StartTime = &now
		}
		before := batchv1.JobSuccessCriteriaMet
		if condition == batchv1.JobFailed {
			before = batchv1.JobFailureTarget
		} else {
			job.Status.CompletionTime = &now
		}
		job.Status.Active, job.Status.Ready, job.Status.Terminating = 0, nil, nil
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: before, Status: corev1.ConditionTrue, Reason: "ByTest", LastTransitionTime: now}, ended)
		return k8s.Status().Update(ctx, job)
	}).Should(Succeed())
}

var _ = Describe("the hooks of a chart", func() {
	// suspended keeps the controller of Jobs from making pods, which nothing would run.
	const suspended = "suspend: true, "
	config := configMap("a", "{}", "a: {{ .Values.a | default \"b\" | quote }}")

	It("have ended although a controller has removed them since", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": hookJob(`helm.sh/hook: "pre-install,pre-upgrade"`, suspended)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "swept", nil)
		s.Create(ctx, cr)
		end(ctx, s, "swept-hook", batchv1.JobComplete, "")
		Expect(k8s.Delete(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "swept-hook"}}, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))

		By("one that is deleted before it has ended")
		change(ctx, cr, `{"spec":{"a":"c"}}`)
		job := &batchv1.Job{}
		Eventually(ctx, objectNamed(s, "swept-hook", job)).Should(Succeed())
		Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("Job "+s.Namespace+"/swept-hook was deleted before it had ended")))
		made := &corev1.ConfigMap{}
		Expect(objectNamed(s, "swept-a", made)(ctx)).To(Succeed())
		Expect(made.Data).To(Equal(map[string]string{"a": "b"}))
	})

	It("say which of them failed, and why", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": hookJob(`helm.sh/hook: pre-install, helm.sh/hook-delete-policy: "before-hook-creation,hook-failed"`, suspended)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "failing", nil)
		s.Create(ctx, cr)
		end(ctx, s, "failing-hook", batchv1.JobFailed, "no disk")
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("Job "+s.Namespace+"/failing-hook has failed: ByTest: no disk")))
		Expect(objectNamed(s, "failing-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())

		By("the next attempt")
		end(ctx, s, "failing-hook", batchv1.JobComplete, "")
		succeeded(ctx, s, cr)
	})

	It("run again although a failed one of an earlier attempt was left", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": hookJob(`helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: hook-succeeded`, suspended+`activeDeadlineSeconds: {{ .Values.limit | default 600 }}, `)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "left", nil)
		s.Create(ctx, cr)
		end(ctx, s, "left-hook", batchv1.JobFailed, "no disk")
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("Job "+s.Namespace+"/left-hook has failed: ByTest: no disk")))
		end(ctx, s, "left-hook", batchv1.JobComplete, "")
		succeeded(ctx, s, cr)

		By("a hook that fails at an upgrade, and another one")
		change(ctx, cr, `{"spec":{"a":"c"}}`)
		end(ctx, s, "left-hook", batchv1.JobFailed, "no net")
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("left-hook has failed: ByTest: no net")))
		change(ctx, cr, `{"spec":{"limit":700}}`)
		end(ctx, s, "left-hook", batchv1.JobComplete, "")
		succeeded(ctx, s, cr)
	})

	It("fail an installation whose objects stay for the next attempt", func(ctx context.Context) {
		// The data of the second object cannot be changed, and the third goes with the correction.
		templates := config + "---\n" + configMap("fixed", "{}", "a: {{ .Values.a | default \"b\" | quote }}") + "immutable: true\n" +
			"{{- if not .Values.a }}\n---\n" + configMap("dropped", "{}", "a: b") + "{{- end }}\n---\n" + configMap("told", "{}", `install: "{{ .Release.IsInstall }}"`)
		s := charted(ctx, map[string]string{"a.yaml": templates, "hook.yaml": hookJob(`helm.sh/hook: post-install`, suspended)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "kept", nil)
		s.Create(ctx, cr)
		end(ctx, s, "kept-hook", batchv1.JobFailed, "no disk")
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Reason", "InstallError"))
		before, after := &corev1.ConfigMap{}, &corev1.ConfigMap{}
		Expect(objectNamed(s, "kept-a", before)(ctx)).To(Succeed())
		Expect(objectNamed(s, "kept-dropped", &corev1.ConfigMap{})(ctx)).To(Succeed())

		change(ctx, cr, `{"spec":{"a":"c"}}`)
		Eventually(ctx, objectNamed(s, "kept-dropped", &corev1.ConfigMap{})).Should(site.BeGone())
		end(ctx, s, "kept-hook", batchv1.JobComplete, "")
		succeeded(ctx, s, cr)
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "InstallSuccessful"))
		Expect(objectNamed(s, "kept-a", after)(ctx)).To(Succeed())
		Expect(after.UID).To(Equal(before.UID), "an object with data is not made anew")
		Expect(after.Data).To(Equal(map[string]string{"a": "c"}))
		Expect(objectNamed(s, "kept-fixed", after)(ctx)).To(Succeed())
		Expect(after.Data).To(Equal(map[string]string{"a": "c"}))
		Expect(objectNamed(s, "kept-told", after)(ctx)).To(Succeed())
		Expect(after.Data).To(Equal(map[string]string{"install": "true"}))
	})

	It("are waited for by name, and no more once their resource is deleted", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": hookJob(`helm.sh/hook: "post-install,post-upgrade"`, suspended)}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "waiting", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "Running")).Should(HaveField("Message", ContainSubstring("wait for the hook Job "+s.Namespace+"/waiting-hook")))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		for name, object := range map[string]client.Object{"waiting": cr, "waiting-a": &corev1.ConfigMap{}} {
			Eventually(ctx, objectNamed(s, name, object)).Should(site.BeGone())
		}
		Expect(statuses(s, "waiting")(ctx)).To(BeEmpty())
	})

	It("are named when their time is over, with the reason why the pods of the release wait", func(ctx context.Context) {
		stuck := strings.Replace(deployment, "spec: {containers", "spec: {nodeSelector: {{ .Values.nodes | default dict | toJson }}, containers", 1) +
			"---\n" + hookJob(`helm.sh/hook: post-install`, suspended)
		s := charted(ctx, map[string]string{"a.yaml": stuck}, "  wait: true\n  timeout: 15s\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "stuck", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("Job "+s.Namespace+"/stuck-hook has not ended after ")))

		By("pods that no node takes")
		change(ctx, cr, `{"spec":{"nodes":{"such":"none"}}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(
			ContainSubstring("Deployment/"+s.Namespace+"/stuck not ready"), ContainSubstring("Pod "+s.Namespace+"/stuck-"), ContainSubstring("Unschedulable"))))
	})

	DescribeTable("do not touch an object of their name that is none of theirs", func(ctx context.Context, policy string) {
		annotations := `{helm.sh/hook: "pre-install,pre-upgrade"` + policy + `}`
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": configMap("hook", annotations, `a: "of the chart"`)}, "").Start(ctx, hello.Kind)
		strange := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "strange-hook"}, Data: map[string]string{"b": "of another"}}
		Expect(k8s.Create(ctx, strange)).To(Succeed())
		cr := harness.Custom(hello, s.Namespace, "strange", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(
			ContainSubstring("ConfigMap "+s.Namespace+"/strange-hook"), ContainSubstring("is there already and belongs to no release"))))
		found := &corev1.ConfigMap{}
		Expect(objectNamed(s, "strange-hook", found)(ctx)).To(Succeed())
		Expect(found.ResourceVersion).To(Equal(strange.ResourceVersion))
		Expect(objectNamed(s, "strange-a", &corev1.ConfigMap{})(ctx)).To(site.BeGone())

		By("its deletion")
		Expect(k8s.Delete(ctx, found)).To(Succeed())
		succeeded(ctx, s, cr)
	},
		Entry("by default", ""),
		Entry("with hook-succeeded and hook-failed", `, helm.sh/hook-delete-policy: "hook-succeeded,hook-failed"`),
	)

	It("wait for their place until one of an earlier time is gone", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": config, "hook.yaml": configMap("hook", `{helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-1"}`, "a: {{ .Values.a | default \"b\" | quote }}")}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "placed", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		hook := &corev1.ConfigMap{}
		Expect(objectNamed(s, "placed-hook", hook)(ctx)).To(Succeed())
		before := hook.UID
		Expect(k8s.Patch(ctx, hook, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["example.com/hold"]}}`)))).To(Succeed())
		change(ctx, cr, `{"spec":{"a":"c"}}`)
		Eventually(ctx, func(ctx context.Context) (*metav1.Time, error) {
			err := objectNamed(s, "placed-hook", hook)(ctx)
			return hook.DeletionTimestamp, err
		}).ShouldNot(BeNil())
		Eventually(ctx, s.Condition(cr, "Running")).Should(HaveField("Message", ContainSubstring("wait until ConfigMap "+s.Namespace+"/placed-hook is gone")))
		Expect(k8s.Patch(ctx, hook, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		succeeded(ctx, s, cr)
		Expect(objectNamed(s, "placed-hook", hook)(ctx)).To(Succeed())
		Expect(hook.UID).NotTo(Equal(before))
		Expect(hook.Data).To(Equal(map[string]string{"a": "c"}))
	})
})

var _ = Describe("an object that becomes a hook, and one that was one", func() {
	It("stays, is an object of the release again, and goes with it", func(ctx context.Context) {
		annotations := `{{ if .Values.hook }}{helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5"}{{ else }}{}{{ end }}`
		s := charted(ctx, map[string]string{
			"a.yaml": configMap("a", annotations, "a: {{ .Values.a | default \"b\" | quote }}"),
			"b.yaml": configMap("b", "{}", "a: {{ .Values.a | default \"b\" | quote }}"),
		}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "moved", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		is := func(value string, hook types.GomegaMatcher) func(Gomega, context.Context) {
			return func(g Gomega, ctx context.Context) {
				made := &corev1.ConfigMap{}
				g.Expect(objectNamed(s, "moved-a", made)(ctx)).To(Succeed())
				g.Expect(made.Data).To(HaveKeyWithValue("a", value))
				g.Expect(made.Annotations).To(hook)
				g.Expect(objectNamed(s, "moved-b", made)(ctx)).To(Succeed())
				g.Expect(made.Data).To(HaveKeyWithValue("a", value))
			}
		}
		change := func(spec, value string, hook types.GomegaMatcher) {
			GinkgoHelper()
			Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":`+spec+`}`)))).To(Succeed())
			Eventually(ctx, is(value, hook)).Should(Succeed())
			Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
			Eventually(ctx, is(value, hook)).Should(Succeed())
		}
		isHook := HaveKey("helm.sh/hook")
		change(`{"hook":true,"a":"c"}`, "c", isHook)
		change(`{"hook":true,"a":"d"}`, "d", isHook)
		change(`{"hook":false,"a":"e"}`, "e", And(Not(isHook), HaveKeyWithValue("meta.helm.sh/release-name", "moved")))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, objectNamed(s, "moved-a", &corev1.ConfigMap{})).Should(site.BeGone())
	})
})
