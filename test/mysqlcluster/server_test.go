package mysqlcluster

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// parts are what a cluster is made of, as it stands.
type parts struct {
	set   *appsv1.StatefulSet
	pod   *corev1.Pod
	claim *corev1.PersistentVolumeClaim
}

func partsOf(ctx context.Context, cr *unstructured.Unstructured) parts {
	GinkgoHelper()
	namespace, name := cr.GetNamespace(), cr.GetName()
	return parts{
		site.Read(ctx, ground, namespace, name, &appsv1.StatefulSet{}), site.Read(ctx, ground, namespace, name+"-0", &corev1.Pod{}),
		site.Read(ctx, ground, namespace, "data-"+name+"-0", &corev1.PersistentVolumeClaim{}),
	}
}

// sizes are those of the StatefulSet's claims and of its claim.
func (p parts) sizes() []string {
	return []string{p.set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(), p.claim.Spec.Resources.Requests.Storage().String()}
}

// expandable says whether claims can grow.
func expandable(ctx context.Context, may bool) {
	GinkgoHelper()
	classes := &storagev1.StorageClassList{}
	Expect(k8s.List(ctx, classes)).To(Succeed())
	Expect(classes.Items).To(HaveLen(1))
	Expect(k8s.Patch(ctx, &classes.Items[0], client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"allowVolumeExpansion": %t}`, may)))).To(Succeed())
}

var _ = Describe("a MySQLCluster", Ordered, func() {
	var (
		o      *operator
		db     *unstructured.Unstructured
		before parts
	)
	BeforeAll(func(ctx context.Context) {
		o = newOperator(ctx)
		o.start(ctx)
		db = o.cluster("db")
		o.Create(ctx, db)
		o.succeeds(ctx, db)
		before = partsOf(ctx, db)
	})

	It("has a Service for readers that says whom it selects", func(ctx context.Context) {
		readers := site.Read(ctx, ground, o.Namespace, "db-readers", &corev1.Service{})
		Expect(readers.Annotations["kubernetes.io/description"]).To(And(ContainSubstring("the one server"), ContainSubstring("accepts writes too")))
		selected := &corev1.PodList{}
		Expect(k8s.List(ctx, selected, client.InNamespace(o.Namespace), client.MatchingLabels(readers.Spec.Selector))).To(Succeed())
		Expect(selected.Items).To(ConsistOf(HaveField("UID", before.pod.UID)))
	})

	It("grows its volume, and its pod keeps running", func(ctx context.Context) {
		runs, err := o.Runs(db)()
		Expect(err).NotTo(HaveOccurred())
		Expect(change(ctx, db, `{"size": "2Gi"}`)).To(Succeed())
		o.succeeds(ctx, db)
		after := partsOf(ctx, db)
		Expect(after.sizes()).To(HaveEach("2Gi"))
		Expect(after.pod.UID).To(Equal(before.pod.UID))
		Expect(after.set.UID).NotTo(Equal(before.set.UID))
		Expect(metav1.IsControlledBy(after.pod, after.set)).To(BeTrue(), "the new StatefulSet takes the pod up")
		Expect(after.set.OwnerReferences).To(ConsistOf(HaveField("UID", db.GetUID())))
		Expect(status(db, "ready")(ctx)).To(BeTrue())
		By("by one run")
		o.Settles(db, runs+1)
		before = after
	})

	It("takes the same size in other words for no change, and a smaller one not at all", func(ctx context.Context) {
		Expect(change(ctx, db, `{"size": "2048Mi"}`)).To(Succeed())
		o.succeeds(ctx, db)
		Expect(partsOf(ctx, db).set.UID).To(Equal(before.set.UID))
		Expect(change(ctx, db, `{"size": "2047Mi"}`)).To(MatchError(ContainSubstring("size can only grow, because a volume cannot shrink")))
		By("nor a size or a version of which no rule can be evaluated, with the message of the pattern alone")
		for spec, field := range map[string]string{`{"size": "2 GB"}`: "spec.size", `{"mysqlVersion": "garbage"}`: "spec.mysqlVersion", `{"mysqlVersion": "9"}`: "spec.mysqlVersion"} {
			Expect(change(ctx, db, spec)).To(MatchError(And(ContainSubstring(field), Not(ContainSubstring("evaluating rule")))), spec)
		}
	})

	It("changes nothing where its volume cannot grow, and says why", func(ctx context.Context) {
		expandable(ctx, false)
		DeferCleanup(func(ctx context.Context) { expandable(ctx, true) })
		Expect(change(ctx, db, `{"size": "3Gi", "mysqlPort": 3307}`)).To(Succeed())
		Expect(o.fails(ctx, db)).To(And(ContainSubstring("Raise the claim"), ContainSubstring("only dynamically provisioned pvc can be resized")))
		after := partsOf(ctx, db)
		Expect(after.sizes()).To(HaveEach("2Gi"))
		Expect(after.set.UID).To(Equal(before.set.UID))
		Expect(after.set.Generation).To(Equal(before.set.Generation))
		Expect(site.Read(ctx, ground, o.Namespace, "db-mysql-config", &corev1.ConfigMap{}).Data["ensign.cnf"]).To(ContainSubstring("port = 3306"))
		By("growing once the class can")
		expandable(ctx, true)
		o.succeeds(ctx, db)
		Expect(partsOf(ctx, db).sizes()).To(HaveEach("3Gi"))
		Expect(status(db, "endpoint")(ctx)).To(HaveSuffix(":3307"))
	})

	It("moves to another version, and back to no older series", func(ctx context.Context) {
		before = partsOf(ctx, db)
		Expect(status(db, "mysqlVersion")(ctx)).To(Equal("8.4"))
		pods, err := k8s.Watch(ctx, &corev1.PodList{}, client.InNamespace(o.Namespace), client.MatchingLabels{"mysql-cluster": "db"})
		Expect(err).NotTo(HaveOccurred())
		seen := harness.UIDs(pods)
		Expect(change(ctx, db, `{"mysqlVersion": "9.7"}`)).To(Succeed())
		o.succeeds(ctx, db)
		o.Calms(db)
		after := partsOf(ctx, db)
		Expect(seen()).To(ConsistOf(before.pod.UID, after.pod.UID), "it restarted once")
		Expect(after.set.Spec.Template.Spec.Containers[0].Image).To(Equal("mysql:9.7"))
		Expect(after.pod.Spec.Containers[0].Image).To(Equal("mysql:9.7"))
		Expect(after.claim.UID).To(Equal(before.claim.UID))
		Expect(status(db, "mysqlVersion")(ctx)).To(Equal("9.7"))
		By("with a copy of the data in a directory of its own, which the claim names too")
		Expect(after.set.Spec.Template.Spec.Containers[0].VolumeMounts).To(ContainElement(And(HaveField("MountPath", "/var/lib/mysql"), HaveField("SubPath", "mysql-9.7"))))
		Expect(after.claim.Annotations).To(And(HaveKeyWithValue("myapp.myorg.tld/data-directory", "mysql-9.7"), HaveKeyWithValue("myapp.myorg.tld/mysql-version", "9.7")))
		Expect(o.Condition(db, "Upgrading")(ctx)).To(HaveField("Reason", "Finished"))
		for version, may := range map[string]bool{"8.4": false, "9.6.9": false, "9.7": true, "9.7.4": true, "10.0": true} {
			tried := db.DeepCopy()
			tried.Object["spec"].(map[string]any)["mysqlVersion"] = version
			err := k8s.Update(ctx, tried, client.DryRunAll)
			if may {
				Expect(err).NotTo(HaveOccurred())
			} else {
				Expect(err).To(MatchError(ContainSubstring("the server has run version 9.7, and MySQL cannot go back")))
			}
		}
	})

	It("knows the version of its data, whatever somebody writes into its status", func(ctx context.Context) {
		forge := func(version string) error {
			return k8s.Status().Patch(ctx, db.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"mysqlVersion":%q}}`, version)))
		}
		image := func() string { return partsOf(ctx, db).set.Spec.Template.Spec.Containers[0].Image }
		Expect(forge("9.7; true")).To(MatchError(ContainSubstring("should match")))

		By("a later one: the API server refuses others until a run has corrected it")
		Expect(forge("99.9")).To(Succeed())
		Expect(change(ctx, db, `{"mysqlVersion": "9.8"}`)).To(MatchError(ContainSubstring("the server has run version 99.9")))
		Expect(change(ctx, db, `{"mysqlPort": 3308}`)).To(Succeed())
		Eventually(ctx, status(db, "mysqlVersion")).Should(Equal("9.7"))
		o.succeeds(ctx, db)

		By("an older one: no run goes back to it")
		Expect(forge("5.7")).To(Succeed())
		Expect(change(ctx, db, `{"mysqlVersion": "8.4"}`)).To(Succeed())
		Expect(o.fails(ctx, db)).To(ContainSubstring("spec.mysqlVersion: the server has run version 9.7, and mysql:8.4 is older"))
		Expect(image()).To(Equal("mysql:9.7"))
		Expect(change(ctx, db, `{"mysqlVersion": "9.7"}`)).To(Succeed())
		o.succeeds(ctx, db)
		Expect(status(db, "mysqlVersion")(ctx)).To(Equal("9.7"))
	})

	It("does not take the PVC of another", func(ctx context.Context) {
		theirs := before.claim.DeepCopy()
		theirs.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: "data-next-0", Labels: map[string]string{"mysql-cluster": "next"}}
		theirs.Spec.VolumeName = ""
		o.Create(ctx, theirs)
		next := o.cluster("next")
		o.Create(ctx, next)
		Expect(o.fails(ctx, next)).To(ContainSubstring("PersistentVolumeClaim " + o.Namespace + "/data-next-0 exists and does not belong to this MySQLCluster"))
		By("beginning once the claim is gone")
		ground.Delete(ctx, theirs)
		o.succeeds(ctx, next)
		By("leaving a copy that somebody made of its own, with all of its labels")
		copied := &corev1.PersistentVolumeClaim{}
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: "data-next-0"}, copied)).To(Succeed())
		copied.ObjectMeta = metav1.ObjectMeta{Namespace: o.Namespace, Name: "restored", Labels: copied.Labels}
		copied.Spec.VolumeName = ""
		o.Create(ctx, copied)
		ground.Delete(ctx, next)
		Expect(site.Read(ctx, ground, o.Namespace, copied.Name, copied).DeletionTimestamp).To(BeNil())
	})
})
