//go:build long

package disk

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a manager of many runs", func() {
	It("survives that it may open no further files, and loses no resource", func(ctx context.Context) {
		d := newDisk(20_000, 20_000)
		m := startManager(ctx, d, true, "--health-probe-bind-address=127.0.0.1:0", "--max-concurrent-reconciles=16", "--max-concurrent-runs=16")
		m.create(ctx, "first")
		Eventually(ctx, m.told("Successful", "")).Should(Equal(1))
		before := m.files()
		health, err := m.Address(ctx, "health probe")
		Expect(err).NotTo(HaveOccurred())
		proxy, err := m.Address(ctx, "API proxy")
		Expect(err).NotTo(HaveOccurred())
		By("letting it open too few files for 16 runs at a time, but enough for some")
		limit := m.limitFiles(uint64(before) + 30)
		m.create(ctx, numbered("some", 50)...)
		Eventually(ctx, m.Log).Should(ContainSubstring("no further files may be opened"))
		Eventually(ctx, m.told("Successful", "")).Should(Equal(51), "others go on as runs end")
		By("letting it open no file at all")
		m.limitFiles(3)
		m.create(ctx, numbered("none", 5)...)
		answers := []<-chan error{ask("http://" + health + "/readyz"), ask("https://" + proxy + "/api")}
		Eventually(ctx, m.told("Failure", "no further files may be opened")).Should(Equal(5))
		m.limitFiles(limit)
		for _, answer := range answers {
			Eventually(ctx, answer).Should(Receive(BeNil()), "who asked meanwhile is answered now")
		}
		Eventually(ctx, m.told("Successful", "")).Should(Equal(56))
		Eventually(m.Processes).Should(BeEmpty())
		Eventually(m.files).Should(BeNumerically("<=", before+10), "no file stays open")
		Expect(visible(m.RunDir())).To(HaveLen(56))
		Expect(m.ExitCode()).To(Equal(-1), "it is the same process")
	})
})
