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
		forged := forgery(p.Namespace, string(cr.GetUID()))
		p.Create(ctx, forged)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "dumps"}}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		p.Create(ctx, claim)
		Eventually(ctx, p.Condition(cr, "Failure")).Should(HaveField("Message", ContainSubstring("The dump failed in Job claimed-")))
		p.again(ctx, cr)
		jobs := &batchv1.JobList{}
		Expect(api.List(ctx, jobs, client.InNamespace(p.Namespace))).To(Succeed())
		jobs.Items = slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool { return job.UID == forged.UID })
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
	})
})

// forgery is a Job that never ends, with the labels of those that are for the CR with a UID.
func forgery(namespace, uid string) *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": "mysqlbackup", "app.kubernetes.io/managed-by": "ensign", "app.kubernetes.io/created-by": "mysqlbackup",
		"mysqlbackup-for": uid, "mysqlbackup-turn": "any",
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forged", Labels: labels}}
	suspended := true
	job.Spec.Suspend = &suspended
	job.Spec.Template.Labels = labels
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "any", Image: "example.invalid/any:1"}}
	return job
}
