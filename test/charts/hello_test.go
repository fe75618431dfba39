package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("the example hello", Ordered, func() {
	var (
		s  *site.Site
		cr *unstructured.Unstructured
	)

	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "hello")
		s.Limit(ctx, rules("hello/rbac/role.yaml")...)
		s.Start(ctx, hello.Kind)
		cr = harness.Custom(hello, s.Namespace, "example", map[string]any{"replicaCount": int64(1)})
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
	})

	// present reads an object of the release.
	present := func(object client.Object, name string) func(context.Context) error {
		return func(ctx context.Context) error {
			return k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, object)
		}
	}
	// revisions lists the Secrets of the release.
	revisions := func(ctx context.Context) ([]corev1.Secret, error) {
		list := &corev1.SecretList{}
		err := k8s.List(ctx, list, client.InNamespace(s.Namespace), client.MatchingLabels{"owner": "helm", "name": "example"})
		return list.Items, err
	}
	// specify changes the CR's spec.
	specify := func(ctx context.Context, path, value string) {
		GinkgoHelper()
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/spec/`+path+`","value":`+value+`}]`)))).To(Succeed())
	}

	It("installs a release", func(ctx context.Context) {
		deployed := harness.ConditionOf(cr, "Deployed")
		Expect(deployed).To(And(HaveField("Status", "True"), HaveField("Reason", "InstallSuccessful"), HaveField("Message", "Hello from example, with 1 replica(s).\n")))
		Expect(harness.ConditionOf(cr, "Initialized").Status).To(Equal("True"))
		Expect(cr.GetFinalizers()).To(ConsistOf("helm.sdk.operatorframework.io/uninstall-release"))
		name, _, _ := unstructured.NestedString(cr.Object, "status", "deployedRelease", "name")
		Expect(name).To(Equal("example"))
		for _, of := range []string{"example-hello", "example-greeter"} {
			deployment := &appsv1.Deployment{}
			Expect(present(deployment, of)(ctx)).To(Succeed())
			Expect(deployment.OwnerReferences).To(ContainElement(HaveField("UID", cr.GetUID())))
			Expect(deployment.Labels).To(HaveKeyWithValue("helm.sdk.operatorframework.io/chart", "hello-0.1.0"))
			Expect(present(&corev1.Service{}, of)(ctx)).To(Succeed())
		}
		found, err := revisions(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveExactElements(And(
			HaveField("OwnerReferences", BeEmpty()), HaveField("Labels", HaveKey("ensign-digest")),
			HaveField("Annotations", HaveKeyWithValue("operator-sdk/primary-resource", s.Namespace+"/example")),
		)))
	})

	It("has no server for runs of Ansible", func() {
		all, err := harness.ProcessesOf(s.RunDir())
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(ContainElement(HaveField("PID", s.PID())))
		Expect(all).NotTo(ContainElement(HaveField("Server", true)))
	})

	It("rests, without another revision or run, and has no other revision when somebody asks", func(ctx context.Context) {
		runs, err := s.Runs(cr)()
		Expect(err).NotTo(HaveOccurred())
		Consistently(s.Runs(cr), site.Calm).Should(Equal(runs))
		Expect(revisions(ctx)).To(HaveLen(1))
		for _, name := range []string{"ansible.sdk.operatorframework.io/reconcile-requested-at", "helm.sdk.operatorframework.io/reconcile-requested-at"} {
			Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+name+`":"`+name+`"}}}`)))).To(Succeed())
			Eventually(ctx, func(ctx context.Context) (string, error) {
				err := present(cr, cr.GetName())(ctx)
				answered, _, _ := unstructured.NestedString(cr.Object, "status", "reconcileRequestedAt")
				return answered, err
			}).Should(Equal(name))
		}
		Expect(revisions(ctx)).To(HaveLen(1))
	})

	It("refuses values that the chart's schema refuses", func(ctx context.Context) {
		specify(ctx, "replicaCount", "99")
		Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Reason", "InvalidSpec"), HaveField("Message", ContainSubstring("replicaCount"))))
		specify(ctx, "replicaCount", "1")
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})

	It("says what right is missing, and goes on once it is granted", func(ctx context.Context) {
		specify(ctx, "ingress", `{"enabled":true}`)
		Eventually(ctx, s.Condition(cr, "ReleaseFailed")).Should(And(HaveField("Status", "True"), HaveField("Reason", "UpgradeError"),
			HaveField("Message", And(ContainSubstring("is forbidden"), ContainSubstring(`"ingresses"`)))))
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-ingresses"}, Rules: rules("hello/rbac/ingress.yaml")}
		s.Create(ctx, role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.Namespace, Name: "limited"}},
		})
		Eventually(ctx, present(&networkingv1.Ingress{}, "example-hello")).Should(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Expect(s.Condition(cr, "ReleaseFailed")(ctx)).To(Equal(harness.Condition{}))
	})

	It("creates deleted objects again", func(ctx context.Context) {
		s.Watched(ctx, "deployments.apps", "ingresses.networking.k8s.io")
		for _, object := range []client.Object{&appsv1.Deployment{}, &networkingv1.Ingress{}} {
			Expect(present(object, "example-hello")(ctx)).To(Succeed())
			before := object.GetUID()
			Expect(k8s.Delete(ctx, object)).To(Succeed())
			Eventually(ctx, func(ctx context.Context) error { return present(object, "example-hello")(ctx) }).Should(Succeed())
			Eventually(ctx, func(ctx context.Context) (any, error) {
				err := present(object, "example-hello")(ctx)
				return object.GetUID(), client.IgnoreNotFound(err)
			}).ShouldNot(Or(Equal(before), BeEmpty()))
			Eventually(ctx, func(ctx context.Context) ([]metav1.OwnerReference, error) {
				err := present(object, "example-hello")(ctx)
				return object.GetOwnerReferences(), err
			}).Should(ContainElement(HaveField("UID", cr.GetUID())))
		}
	})

	It("reverts changes by other clients", func(ctx context.Context) {
		greeter := &appsv1.Deployment{}
		Expect(present(greeter, "example-greeter")(ctx)).To(Succeed())
		replicas := func(ctx context.Context) (int32, error) {
			err := present(greeter, "example-greeter")(ctx)
			return *greeter.Spec.Replicas, err
		}
		scaled := greeter.DeepCopy()
		*scaled.Spec.Replicas = 5
		Expect(k8s.Patch(ctx, scaled, client.MergeFrom(greeter), client.FieldOwner("kubectl"))).To(Succeed())
		Expect(scaled.Generation).To(BeNumerically(">", greeter.Generation))
		Eventually(ctx, replicas).Should(BeEquivalentTo(1))
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
	})

	It("uninstalls the release with its CR", func(ctx context.Context) {
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, present(cr.DeepCopy(), cr.GetName())).Should(site.BeGone())
		for _, of := range []string{"example-hello", "example-greeter"} {
			Eventually(ctx, present(&appsv1.Deployment{}, of)).Should(site.BeGone())
		}
		Eventually(ctx, revisions).Should(BeEmpty())
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(And(ContainSubstring("Installed release"), ContainSubstring("Upgraded release"), ContainSubstring("Repaired release"), ContainSubstring("Removing finalizer"), Not(ContainSubstring("Ansible-runner"))))
	})
})
