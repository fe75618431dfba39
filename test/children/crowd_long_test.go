//go:build long

package children

import (
	"fmt"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/crowd"
	"github.com/ensign-operator/ensign/test/harness/script"
)

// The limits of the issue, which `make bench` has too.
const (
	startLimit  = time.Second
	memoryLimit = 250 << 20
	liveLimit   = 20 * time.Second
)

// TestMain lets this test play the programs of a Python environment, too.
func TestMain(m *testing.M) {
	script.Main(script.Succeed)
	os.Exit(m.Run())
}

var _ = Describe("ten thousand children", func() {
	It("are watched soon after the start, in little memory, and drift is seen at once", func(ctx SpecContext) {
		p := newOperator(ctx, watching(""), harness.Options{})
		many := crowd.Crowd{Client: k8s, Kind: box, Namespace: p.Namespace, Labels: map[string]string{"place": p.Namespace}, CRs: 1000, Children: 10}
		Expect(many.Create(ctx)).To(Succeed())
		m, err := many.Start(ctx, p.Options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(m.Stop()).To(Succeed()) })
		Expect(m.Ran(ctx)).To(Succeed())
		memory, err := harness.MemoryOf(m.PID())
		Expect(err).NotTo(HaveOccurred())
		p.Manager = m.Manager
		Expect(p.Calms(p.custom("cr-00999", nil))).To(Equal(1))
		started, err := m.Drift(ctx, 999)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("10,000 children of 1,000 CRs", fmt.Sprintf("live after %s; resident %d MiB, at most %d MiB; from a deletion to the run %s",
			m.Live, memory.Resident>>20, memory.Peak>>20, started))
		Expect(m.Live).To(BeNumerically("<", liveLimit))
		Expect(memory.Resident).To(BeNumerically("<", memoryLimit))
		Expect(started).To(BeNumerically("<", startLimit))
	}, SpecTimeout(20*time.Minute))
})
