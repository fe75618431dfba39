package controlplane_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/controlplane"
)

const statefulSet = `
metadata: {namespace: default, name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: main, image: "example.invalid/never-pulled:1", volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

var _ = Describe("The workloads of the control plane", Ordered, func() {
	var c client.Client
	set, claim := &appsv1.StatefulSet{}, &corev1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name = "default", "data-db-0"
	get := func(g Gomega, ctx SpecContext, object client.Object) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	}

	BeforeAll(func(ctx SpecContext) {
		c = clientOf(boot(ctx, controlplane.Options{AdmitServiceAccounts: true}))
		Expect(yaml.UnmarshalStrict([]byte(statefulSet), set)).To(Succeed())
	})

	It("makes a StatefulSet Ready and binds its claim", func(ctx SpecContext) {
		Expect(c.Create(ctx, set)).To(Succeed())
		Eventually(func(g Gomega) {
			get(g, ctx, set)
			g.Expect(set.Status.ReadyReplicas).To(BeEquivalentTo(1))
		}).WithContext(ctx).Should(Succeed())
		get(Default, ctx, claim)
		Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound))
		Expect(claim.Status.Capacity.Storage().String()).To(Equal("1Gi"))
	})

	It("grows a claim that asks for more", func(ctx SpecContext) {
		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("3Gi")
		Expect(c.Patch(ctx, claim, client.MergeFrom(before))).To(Succeed())

		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
		Eventually(func(g Gomega) {
			get(g, ctx, claim)
			g.Expect(claim.Status.Capacity.Storage().String()).To(Equal("3Gi"))
			get(g, ctx, volume)
			g.Expect(volume.Spec.Capacity.Storage().String()).To(Equal("3Gi"))
		}).WithContext(ctx).Should(Succeed())
	})

	It("keeps the node alive by renewing its lease", func(ctx SpecContext) {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "fake-node"}}
		Eventually(func(g Gomega) { get(g, ctx, lease) }).WithContext(ctx).Should(Succeed())
		first := lease.Spec.RenewTime.Time
		Eventually(func(g Gomega) {
			get(g, ctx, lease)
			g.Expect(lease.Spec.RenewTime.Time).To(BeTemporally(">", first))
		}).WithContext(ctx).Should(Succeed())
	})

	It("refuses a pod whose service account does not exist, as asked", func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stray"}, Spec: set.Spec.Template.Spec}
		pod.Spec.ServiceAccountName = "nobody"
		Expect(c.Create(ctx, pod)).To(MatchError(ContainSubstring(`serviceaccount "nobody" not found`)))
	})

	It("deletes a workload, its pods, and a claim with its volume", func(ctx SpecContext) {
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
