package deploy

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("make", Label("long"), func() {
	var place string
	var db *unstructured.Unstructured
	BeforeEach(func(ctx context.Context) {
		place = ground.Namespace(ctx)
		db = cluster(place, "db")
		db.SetFinalizers([]string{"example.com/another", clusterFinalizer})
	})

	It("undeploy refuses while custom resources exist, lists them, and leaves nothing once they are gone", func(ctx context.Context) {
		deploy(ctx, "jobs") // It alone adds what is not in the namespace.
		app := endpoint(place, "app", "db")
		ground.Create(ctx, db, app)
		before := leftovers(ctx)
		Expect(len(before)).To(BeNumerically(">", 15))
		out, err := run(ctx, "undeploy")
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(
			ContainSubstring("MySQLCluster "+place+"/db, finalizers: example.com/another, "+clusterFinalizer+"\n"),
			ContainSubstring("MySQLEndpoint "+place+"/app\n"), ContainSubstring("cluster: "+ground.Cluster.Config.Host),
			ContainSubstring("nothing was removed"), ContainSubstring("FORCE=1")))
		Expect(leftovers(ctx)).To(Equal(before))
		out, err = run(ctx, "uninstall")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("MySQLCluster " + place + "/db"))
		Expect(leftovers(ctx)).To(Equal(before))

		unlock(ctx, db)
		ground.Delete(ctx, db, app)
		runs(ctx, "undeploy")
		Eventually(ctx, leftovers).Should(BeEmpty())
		runs(ctx, "undeploy") // Nothing is there, which is what was asked for.
	})

	It("undeploy FORCE=1 takes our finalizers off, and leaves nothing", func(ctx context.Context) {
		deploy(ctx, "default")
		db.SetFinalizers([]string{clusterFinalizer})
		ground.Create(ctx, db)
		out := runs(ctx, "undeploy", "FORCE=1")
		Expect(out).To(ContainSubstring("removed the finalizer " + clusterFinalizer + " of the MySQLCluster " + place + "/db"))
		Eventually(ctx, leftovers).Should(BeEmpty())
	})

	It("uninstall FORCE=1 leaves other finalizers alone, and names the objects that they block", func(ctx context.Context) {
		runs(ctx, "install")
		ground.Create(ctx, db)
		out, err := run(ctx, "uninstall", "FORCE=1", "UNDEPLOY_TIMEOUT=3")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("MySQLCluster " + place + "/db, finalizers: example.com/another"))
		unlock(ctx, db)
		runs(ctx, "uninstall")
		Eventually(ctx, leftovers).Should(BeEmpty())
	})

	It("deploy names the overlays when it does not know one", func(ctx context.Context) {
		out, err := run(ctx, "deploy", "OVERLAY=nowhere")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("OVERLAY=nowhere: there is no config/overlays/nowhere. There are: high-availability jobs namespaced shards"))
	})

	It("deploy OVERLAY=high-availability has two managers, of which a drain takes one at a time", func(ctx context.Context) {
		deployment := deploy(ctx, "high-availability")
		Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(2))
		Expect(deployment.Spec.Template.Spec.Containers[0]).To(And(
			HaveField("Image", "example.invalid/team/ensign:1.2.3"), HaveField("Args", ContainElement("--leader-elect"))))
		pods := &corev1.PodList{}
		Expect(k8s.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels))).To(Succeed())
		Expect(pods.Items).To(HaveLen(2))
		budget := &policyv1.PodDisruptionBudget{}
		Eventually(ctx, func(ctx context.Context) int32 {
			return site.Read(ctx, ground, namespace, manager, budget).Status.DisruptionsAllowed
		}).Should(BeEquivalentTo(1))
		Expect(budget.Status.ExpectedPods).To(BeEquivalentTo(2))
		runs(ctx, "undeploy")
	})
})

// unlock takes all finalizers off, as their owners do once they are done.
func unlock(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	object.SetFinalizers(nil)
	Expect(k8s.Update(ctx, object)).To(Succeed())
}

// leftovers are the objects of config/ that are in the cluster.
func leftovers(ctx context.Context) (found []string) {
	GinkgoHelper()
	ours := client.MatchingLabels{"app.kubernetes.io/part-of": "ensign"}
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{}, &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		Expect(k8s.List(ctx, list, ours)).To(Succeed())
		items, err := apimeta.ExtractList(list)
		Expect(err).NotTo(HaveOccurred())
		for _, item := range items {
			object, ok := item.(client.Object)
			Expect(ok).To(BeTrue())
			found = append(found, object.GetName())
		}
	}
	definitions := &apiextensionsv1.CustomResourceDefinitionList{} // Which install gives no label.
	Expect(k8s.List(ctx, definitions)).To(Succeed())
	for _, definition := range definitions.Items {
		if definition.Spec.Group == group {
			found = append(found, definition.Name)
		}
	}
	return found
}
