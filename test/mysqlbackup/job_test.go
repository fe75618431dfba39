package mysqlbackup

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// Pods here end at once and do nothing: what a Job does is tested in test/node.
var _ = Describe("a MySQLBackup on a claim", func() {
	It("asks for the claim, makes one modest Job, and says that it told no result", func(ctx context.Context) {
		p := newPlace(ctx)
		p.query(ctx, "CREATE DATABASE `$(PASSWORD)`")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}
		Expect(api.Patch(ctx, namespace, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)))).To(Succeed())
		p.Options.Env = append(p.Options.Env, "RELATED_IMAGE_MYSQLBACKUP=example.invalid/mysql:1")
		p.begin(ctx)
		cr := harness.Custom(backupKind, p.Namespace, "claimed", map[string]any{
			"cluster": map[string]any{"name": "db"}, "storage": map[string]any{"persistentVolumeClaim": "dumps"},
		})
		p.Create(ctx, cr)
		Expect(p.Outcome(ctx, cr)).To(HaveField("Message", ContainSubstring("PersistentVolumeClaim "+p.Namespace+"/dumps, where the dumps are kept, does not exist")))

		By("not waiting for a Job of somebody else, whatever its labels say")
		another := harness.Custom(backupKind, p.Namespace, "another", cr.Object["spec"].(map[string]any))
		another.SetAnnotations(map[string]string{"ansible.sdk.operatorframework.io/paused": "true"})
		p.Create(ctx, another)
		forged := forgeries(ctx, cr, another)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "dumps"}}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		p.Create(ctx, claim)
		Eventually(ctx, p.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("The dump failed in Job claimed-")))
		p.again(ctx, cr)
		jobs := &batchv1.JobList{}
		Expect(api.List(ctx, jobs, client.InNamespace(p.Namespace))).To(Succeed())
		jobs.Items = slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return strings.HasPrefix(job.Name, "forged-") })
		Expect(jobs.Items).To(HaveLen(1), "a turn has one Job that ended well")
		Expect(jobs.Items[0].OwnerReferences).To(ContainElement(HaveField("UID", cr.GetUID())))
		Expect(jobs.Items[0].Spec.Template.Spec.Containers[0].Args).To(ContainElements("quota=1073741824", "share=."))
		spec := jobs.Items[0].Spec.Template.Spec
		Expect(spec.Containers[0].Image).To(Equal("example.invalid/mysql:1"))
		Expect(strings.Join(spec.Containers[0].Args, " ")).To(HaveSuffix("-- $$(PASSWORD)"), "Kubernetes is not to replace it")
		Expect(jobs.Items[0].Status.Succeeded).To(BeEquivalentTo(1), "the restricted profile admits its pod")
		text, err := jobs.Items[0].Marshal()
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring(p.server.Password))

		By("nor does a MySQLRestore wait for one")
		back := harness.Custom(restoreKind, p.Namespace, "back", map[string]any{"cluster": map[string]any{"name": "db"}, "backup": "claimed", "dump": "20260131T235959Z"})
		back.SetAnnotations(another.GetAnnotations())
		p.Create(ctx, back)
		forged = append(forged, forgeries(ctx, back, another)...)
		Expect(api.Patch(ctx, back, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`)))).To(Succeed())
		Eventually(ctx, p.Condition(back, "Failure")).Should(HaveField("Message", ContainSubstring("The restore failed in Job back-")))

		By("and the end of both leaves them as they are")
		for _, gone := range []*unstructured.Unstructured{back, cr} {
			Expect(api.Delete(ctx, gone)).To(Succeed())
			ground.Gone(ctx, gone)
		}
		for _, job := range forged {
			now := &batchv1.Job{}
			Expect(api.Get(ctx, client.ObjectKeyFromObject(job), now)).To(Succeed(), job.Name)
			Expect(now).To(And(HaveField("UID", job.UID), HaveField("DeletionTimestamp", BeNil()), HaveField("OwnerReferences", job.OwnerReferences),
				HaveField("Labels", job.Labels), HaveField("Spec.Suspend", HaveValue(BeTrue()))), job.Name)
		}
	})
})

// forgeries makes Jobs that never end, with the labels of those that are for a CR: one of nobody, one of another CR
// and one of a Helm release.
func forgeries(ctx context.Context, cr, another *unstructured.Unstructured) (made []*batchv1.Job) {
	GinkgoHelper()
	labels := map[string]string{
		"app.kubernetes.io/name": "mysqlbackup", "app.kubernetes.io/managed-by": "ensign", "app.kubernetes.io/created-by": "mysqlbackup",
		"mysqlbackup-for": string(cr.GetUID()), "mysqlbackup-turn": "any",
	}
	for _, of := range []string{"nobody", "another", "release"} {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: cr.GetNamespace(), Name: "forged-" + of + "-" + cr.GetName(), Labels: labels}}
		switch of {
		case "another":
			job.OwnerReferences = []metav1.OwnerReference{{APIVersion: another.GetAPIVersion(), Kind: another.GetKind(), Name: another.GetName(), UID: another.GetUID()}}
		case "release":
			job.Annotations = map[string]string{"meta.helm.sh/release-name": "theirs", "meta.helm.sh/release-namespace": cr.GetNamespace()}
		}
		job.Spec.Suspend = new(true)
		job.Spec.Template.Labels = labels
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "any", Image: "example.invalid/any:1"}}
		ground.Create(ctx, job)
		made = append(made, job)
	}
	return made
}
