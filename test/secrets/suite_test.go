package secrets

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

// patience is the deadline for a few runs, on machines that are busy with
// something else.
const (
	patience = 10 * time.Minute
	interval = 200 * time.Millisecond
)

var (
	cluster *controlplane.Cluster
	k8s     client.Client
	root    string // of the repository
	keeper  = schema.GroupKind{Group: "secrets.ensign.io", Kind: "Keeper"}
)

func TestSecrets(t *testing.T) {
	RegisterFailHandler(Fail)
	format.MaxLength = 0 // Every leak is to be seen.
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(interval)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "secrets")
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
	k8s, err = client.New(cluster.Config, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(k8s.Create(ctx, harness.Definition(keeper))).To(Succeed())
})
