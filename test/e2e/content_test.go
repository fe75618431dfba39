package e2e

import (
	"context"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("the operator's own content, deployed", Ordered, func() {
	var namespace string
	BeforeAll(func(ctx context.Context) {
		By("applying config/default, as `make deploy` does")
		kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "default"))
		namespace = newNamespace(ctx)
		kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join(root, "config", "samples", "secrets.yaml"))
		By("running the manager with the rights of its service account, and no others")
		startManager(managerOptions{dir: root, namespace: namespace, args: []string{"--kubeconfig=" + serviceAccountKubeconfig(ctx)}}).
			ready("MySQLCluster", "MySQLEndpoint")
	})

	It("rolls the manager out", func(ctx context.Context) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ensign-system", Name: "ensign-manager"}}
		Eventually(ctx, func(ctx context.Context) (int32, error) {
			err := fetch(ctx, deployment)
			return deployment.Status.AvailableReplicas, err
		}).Should(Equal(int32(1)))
		container := deployment.Spec.Template.Spec.Containers[0]
		Expect(container.ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "an image may be loaded by hand")
		Expect(container.Image).NotTo(HaveSuffix(":latest"))
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			Expect(probe.TimeoutSeconds).To(BeEquivalentTo(5), "a node that is busy with runs answers late")
		}
	})

	It("runs a MySQLCluster through its life", func(ctx context.Context) {
		By("creating an endpoint before its cluster, which is no failure")
		endpoint := mysql("MySQLEndpoint", namespace, "app", map[string]any{"cluster": "db", "configMap": "app-db"})
		Expect(k8s.Create(ctx, endpoint)).To(Succeed())
		expectSuccess(ctx, endpoint)
		Expect(conditionOf(endpoint, "Published")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "ClusterNotFound")))

		cr := mysql("MySQLCluster", namespace, "db", map[string]any{"mysqlAdminSecret": "mysql-admin", "mysqlReadersSecret": "mysql-readers", "size": "2Gi"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		expectSuccess(ctx, cr)
		Expect(kubectl(ctx, "get", "mysqlclusters", "-n", namespace)).To(MatchRegexp(`^NAME +SUCCESSFUL +REASON +AGE\ndb +True +Successful +\S+\n$`))

		Expect(fetch(ctx, cr)).To(Succeed())
		Expect(cr.Object["status"]).To(And(HaveKeyWithValue("ready", true), HaveKeyWithValue("endpoint", "db-writer."+namespace+".svc:3306")))
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db-writer"}}
		Expect(fetch(ctx, service)).To(Succeed())
		Expect(service.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(service.Spec.Selector).To(And(HaveKeyWithValue("app.kubernetes.io/name", "mysql"), HaveKeyWithValue("mysql-cluster", "db")))
		Expect(service.Labels).To(And(HaveKey("app.kubernetes.io/managed-by"), HaveKey("app.kubernetes.io/created-by")))
		Expect(service.OwnerReferences).To(ConsistOf(HaveField("UID", cr.GetUID())))
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-db-0"}}
		Expect(fetch(ctx, claim)).To(Succeed())
		Expect(claim.Spec.Resources.Requests.Storage().String()).To(Equal("2Gi"))

		By("refusing another size, by the schema's own rule")
		Expect(unstructured.SetNestedField(cr.Object, "3Gi", "spec", "size")).To(Succeed())
		Expect(k8s.Update(ctx, cr)).To(MatchError(ContainSubstring("size")))

		By("publishing its endpoint, which a playbook does")
		expectPublished := func(port string) {
			Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				published := configMap(namespace, "app-db")
				err := client.IgnoreNotFound(fetch(ctx, published))
				return published.Data, err
			}).Should(HaveKeyWithValue("port", port))
			Eventually(conditionOf(endpoint, "Published")).WithContext(ctx).Should(HaveField("Status", "True"))
		}
		expectPublished("3306")
		Expect(conditionOf(endpoint, "Failure")(ctx)).NotTo(HaveField("Status", "True"))

		By("publishing another port once the server listens there")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"mysqlPort":3307}}`))
		Expect(k8s.Patch(ctx, cr, patch)).To(Succeed())
		expectPublished("3307")

		By("deleting it with its claim, and collecting its children")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		expectGone(ctx, cr)
		expectGone(ctx, claim)
		expectGone(ctx, service)
	})

	It("names a Secret that is absent", func(ctx context.Context) {
		cr := mysql("MySQLCluster", namespace, "poor", map[string]any{"mysqlAdminSecret": "nowhere", "mysqlReadersSecret": "mysql-readers"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		Expect(expectFailure(ctx, cr, "Failed")).To(ContainSubstring("Secret " + namespace + "/nowhere"))
		Expect(kubectl(ctx, "get", "mysqlcluster", "poor", "-n", namespace, "-o", "wide")).To(MatchRegexp(`^NAME +SUCCESSFUL +REASON +ENDPOINT +MESSAGE +AGE\npoor +False +Failed .*Secret `+namespace+`/nowhere.*does not exist`),
			"also while the next attempt runs")
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		expectGone(ctx, cr)
	})
})

func mysql(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	cr := custom(kind, namespace, name, spec)
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: "myapp.myorg.tld", Version: "v1", Kind: kind})
	return cr
}

func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, cluster.Kubectl, append([]string{"--kubeconfig=" + cluster.Kubeconfig}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %v: %s", args, out)
	return string(out)
}

// serviceAccountKubeconfig writes a kubeconfig with a token of the deployed
// manager's service account, and gives its path.
func serviceAccountKubeconfig(ctx context.Context) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ensign-system", Name: "ensign-manager"}}
	token := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, account, token)).To(Succeed())
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
