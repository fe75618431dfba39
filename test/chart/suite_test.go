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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var (
	root     string // of the repository
	chartDir string
	cluster  *controlplane.Cluster
	c        client.Client // an administrator's
)

func TestChart(t *testing.T) { site.Run(t, "chart", harness.WaitTimeout, 100*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	ground := site.Prepare(ctx, controlplane.Options{AdmitServiceAccounts: true})
	root, cluster, c = ground.Root, ground.Cluster, ground.Client
	chartDir = filepath.Join(root, "charts", "ensign")
	Expect(filepath.Join(root, "bin", "tools", "helm")).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
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
