package charts

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// play starts another controller, which reads the object with each change and sends the patch that it wants, if any. It returns how often
// that was.
func play(ctx context.Context, object client.Object, wants func() (patch string)) func() int {
	GinkgoHelper()
	ctx, stop := context.WithCancel(ctx)
	count, done := make(chan int, 1), make(chan struct{})
	count <- 0
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for ctx.Err() == nil {
			if err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object); err == nil {
				if patch := wants(); patch != "" && k8s.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("rival")) == nil {
					count <- <-count + 1
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
	DeferCleanup(func() { stop(); <-done })
	return func() int {
		n := <-count
		count <- n
		return n
	}
}

var _ = Describe("a field that another client sets again and again", Label("long"), func() {
	It("is repaired at growing intervals and named, and everything else at once", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b\n  other: c")}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "contested", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "configmaps")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "contested-a"}}
		fights := play(ctx, object, func() string {
			if object.Data["a"] == "theirs" {
				return ""
			}
			return `{"data":{"a":"theirs"}}`
		})
		const line = "driftIgnore: [{kind: ConfigMap, pointers: [/data/a]}]"
		Eventually(ctx, notes(cr, "Contested")).Should(ContainElement(And(ContainSubstring("ConfigMap "+s.Namespace+"/contested-a /data/a"), ContainSubstring("by rival"), ContainSubstring(line))))
		Eventually(ctx, s.Condition(cr, "Compared")).Should(And(HaveField("Status", "False"), HaveField("Reason", "Contested"), HaveField("Message", ContainSubstring(line))))
		Expect(s.Condition(cr, "Successful")(ctx)).To(HaveField("Status", "True"))
		Consistently(ctx, fights, site.Calm).Should(BeNumerically("<=", 5))

		By("another field")
		other := &corev1.ConfigMap{}
		for _, value := range []string{"x", "y"} {
			Expect(objectNamed(s, "contested-a", other)(ctx)).To(Succeed())
			Expect(k8s.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"data":{"other":"`+value+`"}}`)))).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				err := objectNamed(s, "contested-a", other)(ctx)
				return other.Data, err
			}).Should(HaveKeyWithValue("other", "c"))
		}
		Expect(fights()).To(BeNumerically("<=", 6))
		Expect(s.Condition(cr, "SlowedDown")(ctx)).To(Equal(harness.Condition{}))
	})
})

var _ = DescribeTable("fields and entries that others add in lists that are one value for the API server stay", func(ctx context.Context, apply string) {
	s := charted(ctx, map[string]string{
		"account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: '{{ .Release.Name }}', labels: {size: '{{ .Values.size }}'}}\nimagePullSecrets: [{name: '{{ .Values.login }}'}]\n",
		"tank.yaml":    "apiVersion: parts.example.com/v1\nkind: Tank\nmetadata: {name: '{{ .Release.Name }}', labels: {size: '{{ .Values.size }}'}}\nspec:\n  pipes:\n  - {name: hot, bends: [{angle: {{ .Values.size }}}]}\n  {{- if eq (int .Values.size) 1 }}\n  - {name: cold}\n  {{- end }}\n",
	}, apply)
	s.Write(map[string]string{"chart/values.yaml": "size: 1\nlogin: registry\n"})
	s.Start(ctx, hello.Kind)
	cr := harness.Custom(hello, s.Namespace, "lists", nil)
	s.Create(ctx, cr)
	Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	s.Watched(ctx, "serviceaccounts", "tanks.parts.example.com")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "lists"}}
	added := play(ctx, account, func() string {
		names := []string{`{"name":"lists-dockercfg"}`}
		for _, one := range account.ImagePullSecrets {
			if one.Name == "lists-dockercfg" {
				return ""
			}
			names = append(names, `{"name":"`+one.Name+`"}`)
		}
		return `{"imagePullSecrets":[` + strings.Join(names, ",") + `]}`
	})
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(tank)
	found.SetNamespace(s.Namespace)
	found.SetName("lists")
	filled := play(ctx, found, func() string {
		pipes, _, _ := unstructured.NestedSlice(found.Object, "spec", "pipes")
		missing := false
		for _, pipe := range pipes {
			fields, _ := pipe.(map[string]any)
			if fields["count"] == nil {
				fields["count"], missing = int64(1), true
			}
		}
		if !missing {
			return ""
		}
		text, err := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "x", "spec": map[string]any{"pipes": pipes}}}).MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		return `{"spec":` + strings.TrimSuffix(strings.SplitN(string(text), `"spec":`, 2)[1], "}\n") + `}`
	})
	Eventually(added).Should(Equal(1))
	Eventually(filled).Should(Equal(1))
	answered(ctx, s, cr, "compared")
	Consistently(ctx, added, site.Calm).Should(Equal(1))
	Expect(filled()).To(Equal(1))
	Expect(notes(cr, "Repaired")(ctx)).To(BeEmpty())

	By("an upgrade that changes entries")
	change(ctx, cr, `{"spec":{"size":2,"login":"another"}}`)
	succeeded(ctx, s, cr)
	current := &corev1.ServiceAccount{}
	Expect(objectNamed(s, "lists", current)(ctx)).To(Succeed())
	var names []string
	for _, one := range current.ImagePullSecrets {
		names = append(names, one.Name)
	}
	slices.Sort(names)
	Expect(names).To(Equal([]string{"another", "lists-dockercfg"}))
	Expect(tankNamed(s, "lists", &unstructured.Unstructured{})(ctx)).To(Equal(map[string]any{"pipes": []any{map[string]any{"name": "hot", "count": int64(1), "bends": []any{map[string]any{"angle": int64(2)}}}}}))
	Expect(added()).To(Equal(1))
	Expect(filled()).To(Equal(1))
},
	Entry("by the server", ""),
	Entry("by the client", "  apply: client\n"),
)

var _ = Describe("a Job that has ended", func() {
	It("is not created again by a repair, whichever client deletes it", func(ctx context.Context) {
		s := charted(ctx, map[string]string{"once.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}\n"}, "").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "once", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "jobs.batch")
		job := &batchv1.Job{}
		Expect(objectNamed(s, "once", job)(ctx)).To(Succeed())
		uid := job.UID
		Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (types.UID, error) {
			err := objectNamed(s, "once", job)(ctx)
			return job.UID, client.IgnoreNotFound(err)
		}).ShouldNot(Or(Equal(uid), BeEmpty()), "it has not ended")
		now := metav1.Now()
		Eventually(ctx, func(ctx context.Context) error { // The Job's controller writes its status, too.
			if err := objectNamed(s, "once", job)(ctx); err != nil {
				return err
			}
			job.Status.StartTime, job.Status.CompletionTime = &now, &now
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: batchv1.JobReasonCompletionsReached}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
			}
			return k8s.Status().Update(ctx, job)
		}).Should(Succeed())
		answered(ctx, s, cr, "ended")
		Expect(k8s.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		Eventually(ctx, objectNamed(s, "once", job)).Should(site.BeGone())
		answered(ctx, s, cr, "gone")
		Consistently(ctx, objectNamed(s, "once", job), site.Calm).Should(site.BeGone())
	})
})

// Serial: a default class counts for the claims of all specs.
var _ = Describe("a claim whose class is null", Serial, func() {
	It("keeps the default class, which came with its creation (weaveworks/policy-agent#67)", func(ctx context.Context) {
		class := &storagev1.StorageClass{Provisioner: "none.example.com", ObjectMeta: metav1.ObjectMeta{Name: "usual", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}}
		Expect(k8s.Create(ctx, class)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, class)).To(Succeed()) })
		s := charted(ctx, map[string]string{
			"claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '{{ .Release.Name }}', labels: {step: '{{ .Values.step }}'}}\nspec: {accessModes: [ReadWriteOnce], storageClassName: {{ .Values.class }}, resources: {requests: {storage: 1Gi}}}\n",
		}, "")
		s.Write(map[string]string{"chart/values.yaml": "step: a\nclass: null\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "classless", nil)
		s.Create(ctx, cr)
		succeeded(ctx, s, cr)
		for _, step := range []string{"b", "c"} {
			specified(ctx, s, cr, `{"step":"`+step+`"}`)
			claim := &corev1.PersistentVolumeClaim{}
			Expect(objectNamed(s, "classless", claim)(ctx)).To(Succeed())
			Expect(claim.Labels).To(HaveKeyWithValue("step", step))
			Expect(claim.Spec.StorageClassName).To(HaveValue(Equal("usual")))
		}
		answered(ctx, s, cr, "again")
		Expect(statuses(s, "classless")(ctx)).To(Equal(map[string]string{"1": "superseded", "2": "superseded", "3": "deployed"}))
	})
})

var _ = Describe("a claim that has grown", func() {
	It("is named with the line that leaves it so, and that line works", func(ctx context.Context) {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "grows"}, Provisioner: "none.example.com", AllowVolumeExpansion: new(true)}
		Expect(client.IgnoreAlreadyExists(k8s.Create(ctx, class))).To(Succeed())
		s := charted(ctx, map[string]string{
			"a.yaml":     configMap("a", "{}", "a: {{ .Values.size | quote }}"),
			"claim.yaml": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {accessModes: [ReadWriteOnce], storageClassName: grows, resources: {requests: {storage: 1Gi}}}\n",
		}, "")
		s.Write(map[string]string{"chart/values.yaml": "size: 1\n"})
		s.Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "grown", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		claim := &corev1.PersistentVolumeClaim{}
		Expect(objectNamed(s, "grown", claim)(ctx)).To(Succeed())
		merge := func(status bool, patch string) {
			GinkgoHelper()
			if status {
				Expect(k8s.Status().Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
				return
			}
			Expect(k8s.Patch(ctx, claim, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
		}
		merge(true, `{"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}}`)
		merge(false, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
		merge(true, `{"status":{"capacity":{"storage":"2Gi"}}}`)
		const line = "driftIgnore: [{kind: PersistentVolumeClaim, pointers: [/spec/resources/requests/storage]}]"
		answered(ctx, s, cr, "compared")
		Eventually(ctx, s.Condition(cr, "Compared")).Should(And(HaveField("Status", "False"), HaveField("Message", ContainSubstring(line))))
		change(ctx, cr, `{"spec":{"size":2}}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(HaveField("Message", ContainSubstring(line)))

		By("the line")
		Expect(s.Manager.Stop()).To(Succeed())
		s.Write(map[string]string{"watches.yaml": "- group: demo.example.com\n  version: v1\n  kind: Hello\n  chart: chart\n  " + line + "\n"})
		s.Start(ctx, hello.Kind)
		succeeded(ctx, s, cr)
		Expect(objectNamed(s, "grown", claim)(ctx)).To(Succeed())
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))
	})
})
