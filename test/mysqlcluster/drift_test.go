package mysqlcluster

import (
	"context"
	"os/exec"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("manual changes of a MySQLCluster", Label("long"), Ordered, ContinueOnFailure, func() {
	var (
		o  *operator
		db *unstructured.Unstructured
	)
	BeforeAll(func(ctx context.Context) {
		o = newOperator(ctx)
		o.start(ctx)
		db = o.cluster("db")
		o.Create(ctx, db)
		o.succeeds(ctx, db)
		o.Watched(ctx, "services", "configmaps", "statefulsets.apps", "poddisruptionbudgets.policy")
	})
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: o.Namespace, Name: name} }

	DescribeTable("comes back", func(ctx context.Context, object func() client.Object, edit string, comesBack func(client.Object) any, want any) {
		o.Calms(db)
		there := object()
		Expect(k8s.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(edit)))).To(Succeed())
		Expect(comesBack(there)).NotTo(Equal(want), "the edit does not change what is looked at")
		Eventually(ctx, func(ctx context.Context) (any, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(there), there)
			return comesBack(there), err
		}).Should(Equal(want))
	},
		Entry("of the writer's Service", func() client.Object { return &corev1.Service{ObjectMeta: named("db-writer")} },
			`{"spec": {"selector": {"mysql-cluster": "another"}}}`,
			func(object client.Object) any { return object.(*corev1.Service).Spec.Selector["mysql-cluster"] }, "db"),
		Entry("of the readers' Service", func() client.Object { return &corev1.Service{ObjectMeta: named("db-readers")} },
			`{"spec": {"ports": [{"name": "other", "port": 1}]}}`,
			func(object client.Object) any { return object.(*corev1.Service).Spec.Ports[0].Port }, int32(3306)),
		Entry("of the ConfigMap", func() client.Object { return &corev1.ConfigMap{ObjectMeta: named("db-mysql-config")} },
			`{"data": {"ensign.cnf": null}}`,
			func(object client.Object) any { return object.(*corev1.ConfigMap).Data["ensign.cnf"] != "" }, true),
		Entry("of the StatefulSet's replicas", func() client.Object { return &appsv1.StatefulSet{ObjectMeta: named("db")} },
			`{"spec": {"replicas": 0}}`,
			func(object client.Object) any { return *object.(*appsv1.StatefulSet).Spec.Replicas }, int32(1)),
		Entry("of the way in which its pod is replaced", func() client.Object { return &appsv1.StatefulSet{ObjectMeta: named("db")} },
			`{"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}`,
			func(object client.Object) any { return object.(*appsv1.StatefulSet).Spec.UpdateStrategy.Type }, appsv1.RollingUpdateStatefulSetStrategyType),
		Entry("of its image", func() client.Object { return &appsv1.StatefulSet{ObjectMeta: named("db")} },
			`{"spec": {"template": {"spec": {"containers": [{"name": "mysql", "image": "mysql:5.7"}]}}}}`,
			func(object client.Object) any {
				container := object.(*appsv1.StatefulSet).Spec.Template.Spec.Containers[0]
				return []any{container.Image, len(container.Env), container.ReadinessProbe != nil}
			}, []any{"mysql:8.4", 3, true}),
		Entry("of the disruption budget", func() client.Object { return &policyv1.PodDisruptionBudget{ObjectMeta: named("db")} },
			`{"spec": {"maxUnavailable": 0}}`,
			func(object client.Object) any {
				return object.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntValue()
			}, 1),
	)

	It("comes back when it is deleted", func(ctx context.Context) {
		o.Calms(db)
		for _, object := range []client.Object{
			&corev1.Service{ObjectMeta: named("db-readers")}, &corev1.ConfigMap{ObjectMeta: named("db-mysql-config")},
			&policyv1.PodDisruptionBudget{ObjectMeta: named("db")}, &appsv1.StatefulSet{ObjectMeta: named("db")},
		} {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			deleted := object.GetUID()
			Expect(k8s.Delete(ctx, object)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (types.UID, error) {
				err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
				return object.GetUID(), client.IgnoreNotFound(err)
			}).ShouldNot(Equal(deleted))
		}
		o.succeeds(ctx, db)
	})

	It("is a Secret that is missing at first, too", func(ctx context.Context) {
		late := o.cluster("late")
		late.Object["spec"].(map[string]any)["mysqlAdminSecret"] = "late"
		o.Create(ctx, late)
		Expect(o.fails(ctx, late)).To(ContainSubstring("Secret " + o.Namespace + "/late, named by spec.mysqlAdminSecret, does not exist"))
		Expect(columns(ctx, late, "--output=wide")).To(MatchRegexp(
			`^NAME +READY +STATUS +ENDPOINT +VERSION +MESSAGE +AGE\n` +
				`late +False +Failed .*Secret ` + o.Namespace + `/late.*does not exist`))
		o.secret(ctx, "late", map[string]string{"password": "late"})
		o.succeeds(ctx, late)
		Expect(columns(ctx, late)).To(MatchRegexp(`^NAME +READY +STATUS +ENDPOINT +AGE\n` +
			`late +True +Successful +late-writer\S+:3306 +\S+\n$`))
		writer := site.Read(ctx, ground, o.Namespace, "late-writer", &corev1.Service{})
		Expect(writer.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		Expect(writer.Labels).To(And(HaveKey("app.kubernetes.io/managed-by"), HaveKey("app.kubernetes.io/created-by")))
	})
})

// columns are what kubectl shows of a CR.
func columns(ctx context.Context, cr *unstructured.Unstructured, further ...string) string {
	GinkgoHelper()
	args := append([]string{"get", "mysqlcluster", cr.GetName(), "--namespace=" + cr.GetNamespace()}, further...)
	command := exec.CommandContext(ctx, ground.Cluster.Kubectl, args...)
	command.Env = []string{"KUBECONFIG=" + ground.Cluster.Kubeconfig, "HOME=" + GinkgoT().TempDir()}
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}
