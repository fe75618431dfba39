package leases

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// patience is the deadline for what should take seconds, on machines that are
	// busy with something else.
	patience = 2 * time.Minute
	interval = 50 * time.Millisecond
)

var (
	cluster  *controlplane.Cluster
	k8s      client.Client
	root     string // of the repository
	auditLog string
	kind     = schema.GroupKind{Group: "leases.ensign.io", Kind: "Lived"}
)

// The test binary plays ansible-runner too.
func TestMain(m *testing.M) {
	if os.Getenv(playVariable) != "" {
		if err := play(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestLeases(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "leases")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	Expect(filepath.Join(root, "bin/manager")).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter, AuditLog: auditLog})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
	Expect(apiextensionsv1.AddToScheme(scheme.Scheme)).To(Succeed())
	k8s, err = client.New(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Create(ctx, harness.Definition(kind))).To(Succeed())
})
