package faults

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/trial"
)

// parallel is how many plans are at work at once. Most of them wait.
const parallel = 8

var (
	cluster *controlplane.Cluster
	root    string // of the repository
	// auditLog is where the API server writes down what it was asked for.
	auditLog string
)

func TestFaults(t *testing.T) {
	RegisterFailHandler(Fail)
	EnforceDefaultTimeoutsWhenUsingContexts()
	RunSpecs(t, "faults")
}

var _ = BeforeSuite(func(ctx context.Context) {
	log.SetLogger(GinkgoLogr)
	var err error
	root, err = filepath.Abs("../..")
	Expect(err).NotTo(HaveOccurred())
	Expect(filepath.Join(root, "bin", "manager")).To(BeARegularFile(), "run these tests by `make test`, which builds what they need")
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(root, "bin", "controlplane"), Log: GinkgoWriter, AuditLog: auditLog})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(cluster.Stop()).To(Succeed()) })
})

// newLab prepares trials for one spec.
func newLab(ctx context.Context, environment string) *trial.Lab {
	GinkgoHelper()
	lab, err := trial.NewLab(ctx, trial.Options{Root: root, Manager: filepath.Join(root, "bin", "manager"), Config: cluster.Config, AuditLog: auditLog, Environment: environment})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(lab.Close()).To(Succeed()) })
	return lab
}

// expectAllGood performs the plans and expects no violation.
func expectAllGood(ctx context.Context, c campaign.Campaign, plans []plan.Plan) {
	GinkgoHelper()
	c.Tell = func(r campaign.Result) { GinkgoWriter.Println(r) }
	results, err := c.Run(ctx, plans)
	Expect(err).NotTo(HaveOccurred())
	Expect(campaign.Table(GinkgoWriter, results)).To(Succeed())
	Expect(results).To(HaveLen(len(plans)))
	Expect(campaign.Bad(results)).To(BeEmpty())
}

var _ = Describe("a manager under faults", func() {
	It("converges to the same end under the fixed plans", func(ctx context.Context) {
		expectAllGood(ctx, campaign.Campaign{Perform: newLab(ctx, "").Run, Parallel: parallel}, plan.Fast())
	}, NodeTimeout(10*time.Minute))
})
