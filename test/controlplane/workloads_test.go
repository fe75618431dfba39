package controlplane_test

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
)

var _ = Describe("What runs on it", Ordered, func() {
	var c client.Client
	var auditLog string

	BeforeAll(func(ctx SpecContext) {
		auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
		c = clientOf(boot(ctx, controlplane.Options{AdmitServiceAccounts: true, AuditLog: auditLog}))
	})

	It("writes down who asked for what", func(ctx SpecContext) {
		Expect(c.Create(ctx, configMap("audited"))).To(Succeed())
		Expect(os.ReadFile(auditLog)).To(MatchRegexp(`(?m)^\{"kind":"Event",.*"stage":"ResponseComplete",.*"verb":"create","user":\{"username":"admin",.*"name":"audited"`))
	})

	It("makes a StatefulSet Ready and binds its claim", func(ctx SpecContext) {
		set := statefulSet("db")
		Expect(c.Create(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(1))
		}).WithContext(ctx).Should(Succeed())

		claim := claimOf(set)
		Expect(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
	})

	It("grows a claim that asks for more", func(ctx SpecContext) {
		claim := claimOf(statefulSet("db"))
		Expect(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		Expect(c.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())

		volume := &corev1.PersistentVolume{}
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
			g.Expect(claim.Status.Capacity.Storage().String()).To(Equal("3Gi"))
			g.Expect(c.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, volume)).To(Succeed())
			g.Expect(volume.Spec.Capacity.Storage().String()).To(Equal("3Gi"))
		}).WithContext(ctx).Should(Succeed())
	})

	It("collects an object whose owner is deleted", func(ctx SpecContext) {
		owner := configMap("owner")
		Expect(c.Create(ctx, owner)).To(Succeed())
		owned := configMap("owned")
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
		Expect(c.Create(ctx, owned)).To(Succeed())

		Expect(c.Delete(ctx, owner)).To(Succeed())
		Eventually(func() error {
			return client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(owned), owned))
		}).WithContext(ctx).Should(Succeed())
		Eventually(func(g Gomega) {
			list := &corev1.ConfigMapList{}
			g.Expect(c.List(ctx, list, client.InNamespace("default"))).To(Succeed())
			g.Expect(list.Items).NotTo(ContainElement(HaveField("Name", "owned")))
		}).WithContext(ctx).Should(Succeed())
	})

	It("keeps the node alive by renewing its lease", func(ctx SpecContext) {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: "fake-node"}
		Eventually(func() error { return c.Get(ctx, key, lease) }).WithContext(ctx).Should(Succeed())
		first := lease.Spec.RenewTime.Time
		Eventually(func(g Gomega) {
			g.Expect(c.Get(ctx, key, lease)).To(Succeed())
			g.Expect(lease.Spec.RenewTime.Time).To(BeTemporally(">", first))
		}).WithContext(ctx).Should(Succeed())
	})

	It("refuses a pod whose service account does not exist, as asked", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stray"}, Spec: podSpec()}
		pod.Spec.ServiceAccountName = "nobody"
		Expect(c.Create(ctx, pod)).To(MatchError(ContainSubstring(`serviceaccount "nobody" not found`)))
	})

	It("deletes a workload, its pods, and a claim with its volume", func(ctx SpecContext) {
		set := statefulSet("db")
		claim := claimOf(set)
		Expect(c.Delete(ctx, set)).To(Succeed())
		Expect(c.Delete(ctx, claim)).To(Succeed())
		Eventually(func(g Gomega) {
			for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}} {
				g.Expect(c.List(ctx, list)).To(Succeed())
				g.Expect(list).To(HaveField("Items", BeEmpty()))
			}
		}).WithContext(ctx).Should(Succeed())
	})
})

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name:         "main",
		Image:        "example.invalid/never-pulled:1",
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
	}}}
}

func statefulSet(name string) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.StatefulSetSpec{
			Selector:    &metav1.LabelSelector{MatchLabels: labels},
			ServiceName: name,
			Template:    corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}},
		},
	}
}

// claimOf names the claim of the set's first pod.
func claimOf(set *appsv1.StatefulSet) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-" + set.Name + "-0"}}
}
