package chart

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const finalizer = "myapp.myorg.tld/cluster-finalizer" // Of watches.yaml.

var clusters = schema.GroupKind{Group: "myapp.myorg.tld", Kind: "MySQLCluster"}

// create makes a MySQLCluster, with the finalizer as after its first run, or without.
func create(ctx context.Context, namespace, name string, finalizers ...string) client.Object {
	GinkgoHelper()
	cr := harness.Custom(clusters, namespace, name, map[string]any{"mysqlAdminSecret": "a", "mysqlReadersSecret": "b"})
	cr.SetFinalizers(finalizers)
	Expect(c.Create(ctx, cr)).To(Succeed())
	return cr
}

func manager(ctx context.Context, namespace, name string) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment)).To(Succeed())
	return deployment
}

func args(ctx context.Context, namespace, name string) []string {
	GinkgoHelper()
	return manager(ctx, namespace, name).Spec.Template.Spec.Containers[0].Args
}

// columns are the names of the printed columns of MySQLCluster's definition.
func columns(ctx context.Context) string {
	GinkgoHelper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	Expect(c.Get(ctx, client.ObjectKey{Name: "mysqlclusters.myapp.myorg.tld"}, definition)).To(Succeed())
	var names []string
	for _, column := range definition.Spec.Versions[0].AdditionalPrinterColumns {
		names = append(names, column.Name)
	}
	return strings.Join(names, " ")
}

// leftOf names what is there of a release.
func leftOf(ctx context.Context, namespace, release string) []string {
	GinkgoHelper()
	var found []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{},
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		Expect(c.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			of := object.GetLabels()["app.kubernetes.io/instance"] == release || object.GetLabels()["owner"] == "helm"
			if in := object.GetNamespace(); of && (in == namespace || in == "") {
				found = append(found, object.GetName())
			}
			return nil
		})).To(Succeed())
	}
	return found
}

var _ = Describe("A release", Ordered, func() {
	const namespace = "ensign-system"
	BeforeAll(func(ctx SpecContext) { newNamespace(ctx, namespace) })

	It("is installed, passes the restricted profile, and says what comes next", func(ctx SpecContext) {
		notes := helm(ctx, "install", "ensign", chartDir, "--namespace="+namespace, "--wait", "--timeout="+harness.WaitTimeout.String())
		Expect(manager(ctx, namespace, "ensign-manager").Status.ReadyReplicas).To(BeEquivalentTo(1))
		Expect(notes).To(And(ContainSubstring("watches all namespaces"),
			ContainSubstring("kubectl --namespace ensign-system rollout status deployment/ensign-manager")))
		for line := range strings.Lines(notes) { // All but the one that waits for ever.
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "kubectl" && fields[len(fields)-1] != "--follow" {
				output, err := run(ctx, append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig), cluster.Kubectl, append(fields[1:], dryRun(fields)...)...)
				Expect(err).NotTo(HaveOccurred(), output)
			}
		}
	})

	It("is upgraded, with its definitions", func(ctx SpecContext) {
		before := columns(ctx)
		// An archive has the files that the checkout has links to.
		made := GinkgoT().TempDir()
		helm(ctx, "package", chartDir, "--version=1.2.3", "--app-version=1.2.3", "--destination="+made)
		output, err := run(ctx, os.Environ(), "tar", "--extract", "--directory="+made, "--file="+filepath.Join(made, "ensign-1.2.3.tgz"))
		Expect(err).NotTo(HaveOccurred(), output)
		newer := filepath.Join(made, "ensign")
		definitions, err := filepath.Glob(filepath.Join(newer, "files", "crds", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(definitions).To(HaveLen(6))
		for _, file := range definitions {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			Expect(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "- name: Successful\n", "- name: Done\n")), 0o600)).To(Succeed())
		}

		helm(ctx, "upgrade", "ensign", newer, "--namespace="+namespace, "--set=logFormat=json,maxConcurrentRuns=4", onNoNode)
		Expect(args(ctx, namespace, "ensign-manager")).To(ContainElements("--log-format=json", "--max-concurrent-runs=4"))
		Expect(columns(ctx)).To(Equal(strings.Replace(before, "Successful", "Done", 1)))
		Expect(manager(ctx, namespace, "ensign-manager").Spec.Template.Spec.Containers[0].Image).To(Equal("ensign:1.2.3"))

		By("rolling it back")
		helm(ctx, "rollback", "ensign", "1", "--namespace="+namespace)
		Expect(args(ctx, namespace, "ensign-manager")).NotTo(ContainElement("--log-format=json"))
		Expect(columns(ctx)).To(Equal(before))
	})

	It("is not uninstalled while a resource has the finalizer", func(ctx SpecContext) {
		helm(ctx, "upgrade", "ensign", chartDir, "--namespace="+namespace, onNoNode)
		held := create(ctx, "default", "held", finalizer)
		create(ctx, "default", "free")
		before := leftOf(ctx, namespace, "ensign")

		checked, _, err := uninstall(ctx, namespace, "ensign")
		Expect(err).To(HaveOccurred())
		Expect(checked).To(And(HavePrefix("MySQLCluster.myapp.myorg.tld default/held has the finalizer "+finalizer+"\nmanager: 1 of the custom resources need"),
			ContainSubstring("--no-hooks")))
		Expect(leftOf(ctx, namespace, "ensign")).To(ContainElements(before))
		Expect(c.Get(ctx, client.ObjectKey{Name: "ensign-uninstall-check"}, &rbacv1.ClusterRoleBinding{})).To(MatchError(ContainSubstring("not found")), "its rights are gone")

		By("being of use again after a rollback to the same revision, as docs/howto-helm.md says")
		_, err = tryHelm(ctx, "upgrade", "ensign", chartDir, "--namespace="+namespace)
		Expect(err).To(HaveOccurred(), "helm 4.3 takes it for half uninstalled; where it does not any more, the page is to be changed")
		helm(ctx, "rollback", "ensign", "4", "--namespace="+namespace)
		helm(ctx, "upgrade", "ensign", chartDir, "--namespace="+namespace, "--reuse-values")
		Expect(manager(ctx, namespace, "ensign-manager").Spec.Template.Spec.NodeSelector).To(HaveKey("node"))

		By("being uninstalled once nothing is left that needs it")
		held.SetFinalizers(nil)
		Expect(c.Update(ctx, held)).To(Succeed())
		checked, printed, err := uninstall(ctx, namespace, "ensign")
		Expect(err).NotTo(HaveOccurred(), printed)
		Expect(checked).To(BeEmpty())
		Expect(printed).To(ContainSubstring("[CustomResourceDefinition] mysqlclusters.myapp.myorg.tld"))
		Eventually(leftOf).WithArguments(ctx, namespace, "ensign").Should(BeEmpty())
	})

	It("has left its CRDs and the resources, and adopts them when it is installed again", func(ctx SpecContext) {
		Expect(c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "held"}, harness.Custom(clusters, "", "", nil))).To(Succeed())
		helm(ctx, "install", "ensign", chartDir, "--namespace="+namespace)
	})

	It("goes without the check when it is told to", func(ctx SpecContext) {
		create(ctx, "default", "left", finalizer)
		helm(ctx, "uninstall", "ensign", "--namespace="+namespace, "--no-hooks")
		Expect(leftOf(ctx, namespace, "ensign")).To(BeEmpty())

		helm(ctx, "install", "ensign", chartDir, "--namespace="+namespace, "--set=uninstallCheck.enabled=false")
		helm(ctx, "uninstall", "ensign", "--namespace="+namespace)
		Expect(leftOf(ctx, namespace, "ensign")).To(BeEmpty())
	})

	Describe("for some namespaces", aReleaseForSomeNamespaces)
})

// It comes after the other, whose definitions are in the cluster.
func aReleaseForSomeNamespaces() {
	const namespace, release = "tenant", "green"
	BeforeAll(func(ctx SpecContext) {
		newNamespace(ctx, namespace)
		newNamespace(ctx, "watched")
		newNamespace(ctx, "other")
		Expect(harness.Define(ctx, c,
			harness.Definition(schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}),
			harness.Definition(schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}))).To(Succeed())
	})

	It("is installed with everything switched on", func(ctx SpecContext) {
		values := filepath.Join(GinkgoT().TempDir(), "values.yaml")
		Expect(os.WriteFile(values, []byte(everything), 0o600)).To(Succeed())
		helm(ctx, "install", release, chartDir, "--namespace="+namespace, "--values="+values, onNoNode)
		Expect(args(ctx, namespace, "green-ensign-manager")).To(ContainElement("--max-backoff=1m"))
	})

	It("looks for finalizers in these alone, with rights in these alone", func(ctx SpecContext) {
		create(ctx, "other", "held", finalizer)
		held := create(ctx, "watched", "held", finalizer)
		checked, _, err := uninstall(ctx, namespace, release)
		Expect(err).To(HaveOccurred())
		Expect(checked).To(And(HavePrefix("MySQLCluster.myapp.myorg.tld watched/held has"), Not(ContainSubstring("other/held"))))

		held.SetFinalizers(nil)
		Expect(c.Update(ctx, held)).To(Succeed())
		checked, printed, err := uninstall(ctx, namespace, release)
		Expect(err).NotTo(HaveOccurred(), checked, printed)
		for _, of := range []string{namespace, "watched"} {
			Eventually(leftOf).WithArguments(ctx, of, release).Should(BeEmpty())
		}
	})
}

// everything are values that switch on what is off by default.
const everything = `
watchNamespaces: [tenant, watched]
crds: {enabled: false}
replicas: 2
logFormat: json
warm: false
maxConcurrentRuns: 2
extraArgs: [--max-backoff=1m]
extraEnv: [{name: ONE, value: "1"}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
image: {pullSecrets: [secret]}
podAnnotations: {one: "1"}
podLabels: {one: "1"}
tolerations: [{key: one, operator: Exists}]
affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}
serviceAccount: {annotations: {one: "1"}}
metrics:
  serviceMonitor: {enabled: true, labels: {one: "1"}, interval: 10s}
  prometheusRule: {enabled: true, labels: {one: "1"}}
networkPolicy: {enabled: true, egress: [{ports: [{port: 3306}]}]}
`

// dryRun are the arguments by which one of the notes' commands changes nothing.
func dryRun(command []string) []string {
	if command[1] == "create" || command[1] == "delete" {
		return []string{"--dry-run=server"}
	}
	return nil
}
