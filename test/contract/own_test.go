package contract

import (
	"context"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("the operator of this repository, deployed", Ordered, func() {
	var s *site.Site
	cluster, endpoint := schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLCluster"}, schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLEndpoint"}
	BeforeAll(func(ctx context.Context) {
		By("applying config/default, as `make deploy` does")
		kubectl(ctx, "apply", "-k", filepath.Join(ground.Root, "config", "default"))
		s = ground.Site(ctx, nil)
		kubectl(ctx, "apply", "-n", s.Namespace, "-f", filepath.Join(ground.Root, "config", "samples", "secrets.yaml"))
		By("running the manager with the rights of its service account, and no others")
		s.Options.Project = ground.Root
		s.ActAs(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ensign-system", Name: "ensign-manager"}})
		s.Start(ctx, cluster.Kind, endpoint.Kind)
	})

	row("§operators own", "is rolled out", func(ctx context.Context) {
		deployment := &appsv1.Deployment{}
		Eventually(ctx, func(ctx context.Context) int32 {
			return read(ctx, "ensign-system", "ensign-manager", deployment).Status.AvailableReplicas
		}).Should(Equal(int32(1)))
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "an image may be loaded by hand")
		Expect(container.Image).NotTo(HaveSuffix(":latest"))
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			Expect(probe.TimeoutSeconds).To(BeEquivalentTo(5), "a node that is busy with runs answers late")
		}
	})

	row("§operators own", "has a MySQLCluster through its life, and a MySQLEndpoint, which a playbook publishes", func(ctx context.Context) {
		By("creating an endpoint before its cluster, which is no failure")
		app := harness.Custom(endpoint, s.Namespace, "app", map[string]any{"cluster": "db", "configMap": "app-db"})
		s.Create(ctx, app)
		Eventually(ctx, s.Condition(app, "Successful")).Should(HaveField("Status", "True"))
		Expect(s.Condition(app, "Published")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "ClusterNotFound")))

		db := harness.Custom(cluster, s.Namespace, "db", map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers", "size": "2Gi"})
		s.Create(ctx, db)
		Eventually(ctx, s.Condition(db, "Successful")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(1))))
		Expect(kubectl(ctx, "get", "mysqlclusters", "-n", s.Namespace)).To(MatchRegexp(`^NAME +SUCCESSFUL +REASON +READY +ENDPOINT +AGE\ndb +True +Successful +true +db-writer\S+:3306 +\S+\n$`))
		Expect(read(ctx, s.Namespace, "db", db).Object["status"]).To(And(HaveKeyWithValue("ready", true), HaveKeyWithValue("endpoint", "db-writer."+s.Namespace+".svc:3306")))
		service := read(ctx, s.Namespace, "db-writer", &corev1.Service{})
		Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(service.Spec.Selector).To(And(HaveKeyWithValue("app.kubernetes.io/name", "mysql"), HaveKeyWithValue("mysql-cluster", "db")))
		Expect(service.Labels).To(And(HaveKey("app.kubernetes.io/managed-by"), HaveKey("app.kubernetes.io/created-by")))
		Expect(owners(service)).To(ConsistOf("MySQLCluster/db"))
		claim := read(ctx, s.Namespace, "data-db-0", &corev1.PersistentVolumeClaim{})
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))

		By("refusing a smaller size, by the schema's own rule")
		smaller := db.DeepCopy()
		smaller.Object["spec"].(map[string]any)["size"] = "1Gi"
		Expect(k8s.Update(ctx, smaller)).To(MatchError(ContainSubstring("size can only grow")))

		By("publishing its endpoint, and another port once the server listens there")
		for _, port := range []string{"3306", "3307"} {
			patch(ctx, db.DeepCopy(), `{"spec": {"mysqlPort": %s}}`, port)
			Eventually(ctx, func(ctx context.Context) map[string]string {
				return read(ctx, s.Namespace, "app-db", &corev1.ConfigMap{}).Data
			}).Should(HaveKeyWithValue("port", port))
			Eventually(ctx, s.Condition(app, "Published")).Should(HaveField("Status", "True"))
		}
		Expect(s.Condition(app, "Failure")(ctx)).NotTo(HaveField("Status", "True"))

		By("deleting it with its claim, and collecting its children")
		Expect(k8s.Delete(ctx, db)).To(Succeed())
		gone(ctx, db)
		gone(ctx, claim)
		gone(ctx, service)
	})

	row("§operators own", "names a Secret that is absent, in the columns too, also while the next attempt runs", func(ctx context.Context) {
		poor := harness.Custom(cluster, s.Namespace, "poor", map[string]any{"mysqlAdminSecret": "nowhere", "mysqlReadersSecret": "mysql-readers"})
		s.Create(ctx, poor)
		absent := "Secret " + s.Namespace + "/nowhere"
		Eventually(ctx, s.Condition(poor, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "Failed"), HaveField("Message", ContainSubstring(absent))))
		Expect(kubectl(ctx, "get", "mysqlcluster", "poor", "-n", s.Namespace, "-o", "wide")).To(
			MatchRegexp(`^NAME +SUCCESSFUL +REASON +READY +ENDPOINT +VERSION +MESSAGE +AGE\npoor +False +Failed .*` + absent + `.*does not exist`))
		Expect(k8s.Delete(ctx, poor)).To(Succeed())
		gone(ctx, poor)
	})
})

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, ground.Cluster.Kubectl, append([]string{"--kubeconfig=" + ground.Cluster.Kubeconfig}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return string(out)
}
