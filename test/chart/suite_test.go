package chart

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

var (
	root     string // of the repository
	chartDir string
	cluster  *controlplane.Cluster
	c        client.Client // an administrator's
)

func TestChart(t *testing.T) {
	SetDefaultEventuallyTimeout(harness.Patience)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RegisterFailHandler(Fail)
	RunSpecs(t, "chart")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	chartDir = filepath.Join(root, "charts", "ensign")
	for _, needed := range []string{"bin/manager", "bin/tools/helm"} {
		Expect(filepath.Join(root, needed)).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
	}
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter, AdmitServiceAccounts: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	c, err = client.New(cluster.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})

// run runs a program in the repository's directory, and returns what it printed.
func run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = root
	command.Env = env
	output, err := command.CombinedOutput()
	GinkgoWriter.Printf("$ %s %q\n%s\n", filepath.Base(program), args, output)
	return string(output), err
}

// followed is what helm says of each link to config/ that it follows.
var followed = regexp.MustCompile(`(?m)^level=INFO msg="found symbolic link in path\. .*\n`)

// tryHelm runs helm as an administrator who has no files of his own.
func tryHelm(ctx context.Context, args ...string) (string, error) {
	home := filepath.Join(cluster.DataDir, "helm")
	env := append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	output, err := run(ctx, env, filepath.Join(root, "bin", "tools", "helm"), args...)
	return followed.ReplaceAllString(output, ""), err
}

func helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := tryHelm(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), output)
	return output
}

// newNamespace makes a namespace in which the strictest of Kubernetes' profiles for pods holds.
func newNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})).To(Succeed())
}
