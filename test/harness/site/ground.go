// Package site gives suites of Ginkgo a running operator on a real control plane: a
// namespace, a project directory, and managers one after another, with what their
// logs say about runs.
//
// The package does not say what is right: that is what suites are for.
package site

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/pods"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// Ground is what a suite's sites share.
type Ground struct {
	Cluster *controlplane.Cluster
	// Client is an administrator's, without a cache.
	Client client.WithWatch
	// Root is the repository's directory.
	Root string
	// pods is where the pods of runs come to, where runs of suites are executed in Jobs.
	pods *pods.Node
	// PodsDir has what those pods leave; "" if there are none.
	PodsDir string
}

// Run runs the specs of a suite. waitTimeout, usually harness.WaitTimeout, ends specs that hang.
func Run(t *testing.T, suite string, waitTimeout, interval time.Duration) {
	t.Helper()
	gomega.RegisterFailHandler(ginkgo.Fail)
	gomega.SetDefaultEventuallyTimeout(waitTimeout)
	gomega.SetDefaultEventuallyPollingInterval(interval)
	gomega.SetDefaultConsistentlyPollingInterval(interval)
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	ginkgo.RunSpecs(t, suite)
}

// Prepare starts a control plane for the suite, which ends with it. Bin and Log of
// the options are set here. It belongs into BeforeSuite.
func Prepare(ctx context.Context, options controlplane.Options) *Ground {
	ginkgo.GinkgoHelper()
	log.SetLogger(ginkgo.GinkgoLogr)
	g := &Ground{Root: scratch.Repository(ginkgo.GinkgoTB())}
	var err error
	for _, needed := range []string{"bin/manager", ".venv/bin/ansible-runner"} {
		gomega.Expect(filepath.Join(g.Root, needed)).To(gomega.BeAnExistingFile(), "run these tests by `make test`, which builds what they need")
	}
	options.Bin, options.Log = filepath.Join(g.Root, "bin", "controlplane"), ginkgo.GinkgoWriter
	options.LeaveNodes = options.LeaveNodes || harness.InJobs()
	g.Cluster, err = controlplane.Start(ctx, options)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() { gomega.Expect(g.Cluster.Stop()).To(gomega.Succeed()) })
	gomega.Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(gomega.Succeed())
	g.Client, err = client.NewWithWatch(g.Cluster.Config, client.Options{Scheme: scheme.Scheme})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	if harness.InJobs() {
		g.startPods(ctx)
	}
	return g
}

// Define creates kinds, and returns when they are served: see `harness.Definition`.
func (g *Ground) Define(ctx context.Context, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	ginkgo.GinkgoHelper()
	gomega.Expect(harness.Define(ctx, g.Client, definitions...)).To(gomega.Succeed())
}

// Namespace makes one. It goes with the cluster.
func (g *Ground) Namespace(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "site-"}}
	gomega.Expect(g.Client.Create(ctx, namespace)).To(gomega.Succeed())
	return namespace.Name
}

// Site makes a namespace and a project with the files, by their paths relative to
// its directory; one is watches.yaml. Its managers watch that namespace, whose name
// is in their variable PLACE, too, unless Options are changed before the start. Files
// that begin with "#!" may be executed.
func (g *Ground) Site(ctx context.Context, files map[string]string) *Site {
	ginkgo.GinkgoHelper()
	s := &Site{Namespace: g.Namespace(ctx), ground: g}
	var err error
	s.Dir, err = os.MkdirTemp("", "site") // Short: sockets are below it.
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(os.RemoveAll, s.Dir)
	s.Options = harness.Options{
		Binary: filepath.Join(g.Root, "bin", "manager"), Project: filepath.Join(s.Dir, "project"), Home: filepath.Join(s.Dir, "home"),
		Kubeconfig: g.Cluster.Kubeconfig, Namespace: s.Namespace, Env: []string{"PLACE=" + s.Namespace},
		Args: []string{
			"--leader-election-namespace=" + s.Namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4", "--ansible-verbosity=0",
		},
	}
	s.Write(files)
	return s
}
