package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// unchangeable are templates of which each has a field that cannot be changed, with the value v. The
// value other is in fields that can be.
var unchangeable = map[string]string{
	"deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector: {matchLabels: {app: {{ .Values.v }}}}
  template:
    metadata: {labels: {app: {{ .Values.v }}}}
    spec: {containers: [{name: main, image: none}]}
`,
	"job.yaml": `apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: {{ .Values.v }}}]}}}
`,
	"service.yaml": `apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {clusterIP: {{ if eq .Values.v "a" }}""{{ else }}None{{ end }}, selector: {app: a}, ports: [{port: 80}]}
`,
	"binding.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: {{ .Release.Name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ .Values.v }}}
`,
	"set.yaml": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: {{ .Release.Name }}}
spec:
  serviceName: {{ .Release.Name }}
  replicas: 0
  selector: {matchLabels: {app: set}}
  template:
    metadata: {labels: {app: set}}
    spec: {containers: [{name: main, image: none}]}
  volumeClaimTemplates:
  - metadata: {name: {{ .Values.v }}}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
	"config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {other: {{ .Values.other | default "a" | quote }}, v: {{ .Values.v }}}
`,
	"frozen.yaml": `apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-frozen}
immutable: true
stringData: {v: {{ .Values.v }}}
`,
	"broken.yaml": `{{ with .Values.broken }}apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . | quote }}}
{{ end }}`,
}

// force lets upgrades, or the rollbacks after them, replace objects that cannot be changed.
func force(what string) string {
	return `{"metadata":{"annotations":{"helm.sdk.operatorframework.io/` + what + `-force":"true"}}}`
}

var _ = Describe("objects that cannot be changed", Label("long"), func() {
	// replaceable returns new objects to read into, by what is said of them without the annotation. Which field of a
	// StatefulSet it is, Kubernetes says from 1.37 on.
	replaceable := func() map[string]client.Object {
		return map[string]client.Object{
			"spec.selector": &appsv1.Deployment{}, "spec.template": &batchv1.Job{}, "spec.clusterIPs": &corev1.Service{},
			"roleRef": &rbacv1.RoleBinding{}, "StatefulSet.apps": &appsv1.StatefulSet{},
		}
	}
	uids := func(ctx context.Context, s *site.Site, name string) map[string]types.UID {
		GinkgoHelper()
		found := map[string]types.UID{}
		for field, object := range replaceable() {
			Expect(objectNamed(s, name, object)(ctx)).To(Succeed(), field)
			Expect(object.GetOwnerReferences()).To(HaveLen(1), field)
			Expect(object.GetLabels()).To(HaveKey(chartLabel), field)
			found[field] = object.GetUID()
		}
		return found
	}

	DescribeTable("is named, and replaced if it may be", func(ctx context.Context, fields string) {
		s := charted(ctx, unchangeable, fields).Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "fixed", map[string]any{"v": "a"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		first, config := uids(ctx, s, "fixed"), &corev1.ConfigMap{}
		Expect(objectNamed(s, "fixed", config)(ctx)).To(Succeed())

		By("a change without the annotation")
		change(ctx, cr, `{"spec":{"v":"b"}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Reason", "UpgradeError"))
		failure, err := s.Condition(cr, "ReleaseFailed")(ctx)
		Expect(err).NotTo(HaveOccurred())
		for field := range first {
			Expect(failure.Message).To(ContainSubstring(field))
		}
		Expect(failure.Message).To(And(ContainSubstring("fixed"), ContainSubstring("upgrade-force")))
		Expect(uids(ctx, s, "fixed")).To(Equal(first))

		By("with the annotation, an object that is wrong in itself")
		change(ctx, cr, `{"metadata":{"annotations":{"helm.sdk.operatorframework.io/upgrade-force":"true"}},"spec":{"replicas":-1}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring("the API server would not take the new one")))
		Expect(uids(ctx, s, "fixed")).To(Equal(first))

		By("with the annotation")
		change(ctx, cr, `{"spec":{"replicas":null}}`)
		succeeded(ctx, s, cr)
		second := uids(ctx, s, "fixed")
		for field, uid := range first {
			Expect(second[field]).NotTo(Equal(uid), field)
		}
		again := &corev1.ConfigMap{}
		Expect(objectNamed(s, "fixed", again)(ctx)).To(Succeed())
		Expect(again.UID).To(Equal(config.UID), "what can be changed is")
		Expect(again.Data).To(HaveKeyWithValue("v", "b"))

		By("another upgrade with the annotation that changes no such field")
		change(ctx, cr, `{"spec":{"other":"b"}}`)
		succeeded(ctx, s, cr)
		Expect(uids(ctx, s, "fixed")).To(Equal(second))

		By("an upgrade that fails after it has replaced them, and a rollback that may replace them, too")
		change(ctx, cr, force("rollback"))
		change(ctx, cr, `{"spec":{"v":"a","broken":"NO NAME"}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(ContainSubstring("NO NAME"), Not(ContainSubstring("rollback failed")))))
		service := &corev1.Service{}
		Eventually(ctx, func(ctx context.Context) (string, error) {
			err := objectNamed(s, "fixed", service)(ctx)
			return service.Spec.ClusterIP, err
		}).Should(Equal("None"))
	},
		Entry("where the server applies", ""),
		Entry("where the client applies", "  apply: client\n"),
	)

	It("stays if data would go with it, or if it is to be kept", func(ctx context.Context) {
		s := charted(ctx, map[string]string{
			"claim.yaml":   "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: {{ .Release.Name }}}\nspec: {accessModes: [ReadWriteOnce], storageClassName: {{ .Values.v }}, resources: {requests: {storage: 1Gi}}}\n",
			"service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n  annotations: {helm.sh/resource-policy: keep}\nspec: {clusterIP: {{ if eq .Values.v \"a\" }}\"\"{{ else }}None{{ end }}, ports: [{port: 80}]}\n",
		}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "dear", map[string]any{"v": "a"})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		claim, service := &corev1.PersistentVolumeClaim{}, &corev1.Service{}
		Expect(objectNamed(s, "dear", claim)(ctx)).To(Succeed())
		Expect(objectNamed(s, "dear", service)(ctx)).To(Succeed())
		before := []types.UID{claim.UID, service.UID}
		change(ctx, cr, force("upgrade"))
		change(ctx, cr, `{"spec":{"v":"b"}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", And(
			ContainSubstring("PersistentVolumeClaim "+s.Namespace+"/dear cannot be changed"), ContainSubstring("its data would be deleted too"),
			ContainSubstring("Service "+s.Namespace+"/dear cannot be changed"), ContainSubstring("helm.sh/resource-policy: keep"))))
		Expect(objectNamed(s, "dear", claim)(ctx)).To(Succeed())
		Expect(objectNamed(s, "dear", service)(ctx)).To(Succeed())
		Expect([]types.UID{claim.UID, service.UID}).To(Equal(before))
		Expect(claim.DeletionTimestamp).To(BeNil())
	})
})
