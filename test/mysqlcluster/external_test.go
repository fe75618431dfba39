package mysqlcluster

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
	"github.com/ensign-operator/ensign/test/mariadb"
)

var _ = Describe("a MySQLCluster whose server runs elsewhere", Label("long"), Ordered, func() {
	var (
		o      *operator
		server *mariadb.Server
		there  *unstructured.Unstructured
		kept   *corev1.PersistentVolumeClaim
	)
	BeforeAll(func(ctx context.Context) {
		var err error
		server, err = mariadb.Start(ctx, mariadb.Options{TLS: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
		o = newOperator(ctx)
		o.secret(ctx, "admin", map[string]string{"password": server.Password})
		o.secret(ctx, "authority", map[string]string{"ca.crt": string(server.CA)})
		labels := map[string]string{"app.kubernetes.io/managed-by": "ensign", "app.kubernetes.io/created-by": "mysqlcluster", "mysql-cluster": "there"}
		// An earlier cluster of the name has left it.
		kept = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "data-there-0", Labels: labels}}
		kept.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		kept.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		o.Create(ctx, kept)
		o.start(ctx)
		there = harness.Custom(kind, o.Namespace, "there", map[string]any{
			"mysqlAdminSecret": "admin", "endpoint": map[string]any{"host": server.Host, "port": int64(server.Port), "caSecret": "authority"},
		})
		o.Create(ctx, there)
	})

	It("is ready, and has no objects", func(ctx context.Context) {
		o.succeeds(ctx, there)
		Expect(status(there, "ready")(ctx)).To(BeTrue())
		Expect(status(there, "endpoint")(ctx)).To(Equal(server.Address()))
		Expect(status(there, "mysqlVersion")(ctx)).To(BeNil())
		for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}} {
			Expect(k8s.List(ctx, list, client.InNamespace(o.Namespace))).To(Succeed())
			Expect(list).To(HaveField("Items", BeEmpty()))
		}
	})

	It("keeps its endpoint, and needs readers where it has none", func(ctx context.Context) {
		Expect(change(ctx, there, `{"endpoint": null, "mysqlReadersSecret": "readers"}`)).To(MatchError(ContainSubstring("endpoint cannot be added or removed")))
		own := o.cluster("own")
		delete(own.Object["spec"].(map[string]any), "mysqlReadersSecret")
		Expect(k8s.Create(ctx, own)).To(MatchError(ContainSubstring("mysqlReadersSecret is required where there is no endpoint")))
		for _, host := range []string{"a:3306", "", "'; DROP", "{{ 1 }}", "-a", "a/b"} {
			Expect(change(ctx, there, `{"endpoint": {"host": %q}}`, host)).To(MatchError(ContainSubstring("spec.endpoint.host")), host)
		}
	})

	It("fails by a wrong password, and comes back with the right one", func(ctx context.Context) {
		o.secret(ctx, "admin", map[string]string{"password": "wrong"})
		Eventually(ctx, status(there, "ready")).Should(BeFalse())
		Expect(o.fails(ctx, there)).To(And(ContainSubstring("Access denied for user 'root'"), ContainSubstring("Secret "+o.Namespace+"/admin")))
		o.secret(ctx, "admin", map[string]string{"password": server.Password})
		Eventually(ctx, status(there, "ready")).Should(BeTrue())
	})

	It("fails while its server is down, and comes back by itself", func(ctx context.Context) {
		Expect(server.Kill()).To(Succeed())
		Expect(change(ctx, there, `{"allowedNamespaces": ["*"]}`)).To(Succeed())
		Expect(o.fails(ctx, there)).To(And(ContainSubstring(server.Address()), ContainSubstring("Connection refused")))
		Expect(status(there, "ready")(ctx)).To(BeFalse())
		Expect(server.Restart(ctx)).To(Succeed())
		Eventually(ctx, status(there, "ready")).Should(BeTrue())
	})

	It("fails by a host that nobody knows, and by another authority", func(ctx context.Context) {
		Expect(change(ctx, there, `{"endpoint": {"host": "nobody.invalid"}}`)).To(Succeed())
		Expect(o.fails(ctx, there)).To(ContainSubstring("nobody.invalid"))
		Expect(status(there, "ready")(ctx)).To(BeFalse())
		By("a name that the certificate has")
		Expect(change(ctx, there, `{"endpoint": {"host": "localhost"}}`)).To(Succeed())
		o.succeeds(ctx, there)
		By("an authority that has not signed it")
		other, err := mariadb.Start(ctx, mariadb.Options{TLS: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(other.Stop()).To(Succeed())
		o.secret(ctx, "authority", map[string]string{"ca.crt": string(other.CA)})
		Eventually(ctx, status(there, "ready")).Should(BeFalse())
		Expect(o.fails(ctx, there)).To(ContainSubstring("certificate verify failed"))
	})

	It("goes although its server cannot be reached, and takes nothing with it", func(ctx context.Context) {
		Expect(server.Kill()).To(Succeed())
		ground.Delete(ctx, there)
		Expect(site.Read(ctx, ground, o.Namespace, kept.Name, kept).DeletionTimestamp).To(BeNil())
		text, err := o.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).NotTo(ContainSubstring(server.Password))
	})
})
