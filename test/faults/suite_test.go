package faults

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/faults/campaign"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/trial"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
	"github.com/ensign-operator/ensign/test/harness/site"
)

// parallel is how many plans are at work at once. Most of them wait.
const parallel = 8

var (
	ground *site.Ground
	// auditLog is where the API server writes down what it was asked for.
	auditLog string
)

// The test binary is the Python environment of a manager under load.
func TestMain(m *testing.M) {
	script.Main(script.Succeed)
	os.Exit(m.Run())
}

func TestFaults(t *testing.T) { site.Run(t, "faults", harness.WaitTimeout, 250*time.Millisecond) }

var _ = BeforeSuite(func(ctx context.Context) {
	auditLog = filepath.Join(GinkgoT().TempDir(), "audit.jsonl")
	ground = site.Prepare(ctx, controlplane.Options{AuditLog: auditLog})
})

// expectAllGood performs the plans in a Python environment, "" for the stub, so many at a
// time, and expects no violation.
func expectAllGood(ctx context.Context, environment string, atOnce int, plans []plan.Plan) {
	GinkgoHelper()
	lab, err := trial.NewLab(ctx, trial.Options{
		Root: ground.Root, Manager: filepath.Join(ground.Root, "bin", "manager"), Config: ground.Cluster.Config,
		AuditLog: auditLog, Environment: environment,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(lab.Close()).To(Succeed()) })
	c := campaign.Campaign{Perform: lab.Run, Parallel: atOnce, Tell: func(r campaign.Result) { GinkgoWriter.Println(r) }}
	results, err := c.Run(ctx, plans)
	Expect(err).NotTo(HaveOccurred())
	Expect(campaign.Table(GinkgoWriter, results)).To(Succeed())
	Expect(results).To(HaveLen(len(plans)))
	Expect(campaign.Bad(results)).To(BeEmpty())
}

var _ = Describe("a manager under faults", func() {
	It("converges to the same end under the fixed plans", func(ctx context.Context) {
		expectAllGood(ctx, "", parallel, plan.Fast())
	})
})
