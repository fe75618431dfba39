package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/ensign-operator/ensign/test/controlplane"
)

// patience is the deadline for what should take seconds, on machines that are
// busy with something else.
const (
	patience = 1 * time.Minute
	interval = 100 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	k8s     client.WithWatch
	root    string // of the repository
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(interval)
	RunSpecs(t, "e2e")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	for _, needed := range []string{"bin/manager", ".venv/bin/ansible-runner"} {
		Expect(filepath.Join(root, needed)).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
	}
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	kinds := []string{"Probe", "Note", "Broken", "Nobody", "Far", "Slow"}
	for _, kind := range kinds {
		Expect(k8s.Create(ctx, definition(kind))).To(Succeed())
	}
	for _, kind := range kinds { // Some specs make objects before there is a manager that waits for kinds.
		Eventually(ctx, served).WithArguments(kind).Should(Succeed())
	}
})
