package deploy

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("the deployed objects", Ordered, ContinueOnFailure, func() {
	var pod corev1.PodTemplateSpec
	BeforeAll(func(ctx context.Context) {
		pod = deploy(ctx, "default").Spec.Template
	})

	It("is held to the restricted profile, cannot write to its image, and has time to stop", func(ctx context.Context) {
		Expect(site.Read(ctx, ground, "", namespace, &corev1.Namespace{}).Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
		// A pod that may gain rights is refused there, so the profile is really on.
		stranger := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stranger"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}},
		}
		Expect(k8s.Create(ctx, stranger)).To(Satisfy(apierrors.IsForbidden))
		Expect(*pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		Expect(*pod.Spec.TerminationGracePeriodSeconds).To(BeNumerically(">", 30), "the default of --graceful-shutdown-timeout")
		Expect(pod.Spec.Containers[0].ImagePullPolicy).To(Equal(corev1.PullIfNotPresent), "an image may be loaded by hand")
		Expect(os.ReadFile(filepath.Join(ground.Root, "config", "manager", "kustomization.yaml"))).NotTo(ContainSubstring("latest"))
		container := pod.Spec.Containers[0]
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			Expect(probe.TimeoutSeconds).To(BeEquivalentTo(5), "a node that is busy with runs answers late")
		}
	})

	It("is a program that nodes load fast", func() {
		manager, err := os.Stat(filepath.Join(ground.Root, "bin", "manager"))
		Expect(err).NotTo(HaveOccurred())
		Expect(manager.Size()).To(BeNumerically("<", 50_000_000), "cmd/manager: TestWhatTheManagerDoesNotLink says what it can do without")
	})

	It("equals the installer's objects", func(ctx context.Context) {
		runs(ctx, "build-installer", "IMG="+pod.Spec.Containers[0].Image)
		out := ground.Kubectl(ctx, "apply", "--dry-run=server", "--filename="+filepath.Join(ground.Root, "dist", "install.yaml"))
		Expect(strings.Split(strings.TrimSpace(out), "\n")).To(And(HaveLen(35), HaveEach(HaveSuffix(" unchanged (server dry run)"))))
	})

	It("has metrics where the ServiceMonitor and the NetworkPolicy look for them", func(ctx context.Context) {
		ground.Kubectl(ctx, "apply", "--kustomize="+filepath.Join(ground.Root, "config", "network-policy"))
		policy := site.Read(ctx, ground, namespace, manager, &networkingv1.NetworkPolicy{})
		Expect(labels.SelectorFromSet(policy.Spec.PodSelector.MatchLabels).Matches(labels.Set(pod.Labels))).To(BeTrue())
		open := policy.Spec.Ingress[0].Ports[0].Port.StrVal
		Expect(slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == open })).To(BeTrue())

		text, err := os.ReadFile(filepath.Join(ground.Root, "config", "prometheus", "monitor.yaml"))
		Expect(err).NotTo(HaveOccurred())
		var monitor struct {
			Spec struct {
				Selector  metav1.LabelSelector
				Endpoints []struct{ Port string }
			}
		}
		Expect(yaml.Unmarshal(text, &monitor)).To(Succeed())
		services := &corev1.ServiceList{}
		Expect(k8s.List(ctx, services, client.InNamespace(namespace), client.MatchingLabels(monitor.Spec.Selector.MatchLabels))).To(Succeed())
		Expect(services.Items).To(HaveLen(1))
		Expect(services.Items[0].Spec.Ports[0]).To(And(HaveField("Name", monitor.Spec.Endpoints[0].Port), HaveField("TargetPort.StrVal", open)))
	})

	It("extends the cluster's roles to custom resources", func(ctx context.Context) {
		for role, may := range map[string][]string{"view": {"get", "list", "watch"}, "edit": {"create", "delete", "patch"}, "admin": {"deletecollection"}} {
			for _, resource := range []string{"mysqlbackups", "mysqlclusters", "mysqldatabases", "mysqlendpoints", "mysqlrestores", "mysqlusers"} {
				Eventually(ctx, func(ctx context.Context) []string { return verbs(ctx, role, resource) }).Should(ContainElements(may), "%s %s", role, resource)
				Expect(verbs(ctx, role, resource+"/status")).To(ConsistOf("get"))
			}
		}
		Expect(verbs(ctx, "view", "mysqlclusters")).To(ConsistOf("get", "list", "watch"))
		Expect(verbs(ctx, "edit", "mysqlclusters")).NotTo(ContainElement("deletecollection"))
	})
})
