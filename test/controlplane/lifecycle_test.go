package controlplane_test

import (
	"os"
	"path/filepath"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/controlplane"
)

var _ = Describe("The life of a cluster", func() {
	It("writes a private kubeconfig and neither shares nor steals one, tells when a server ends, and leaves nothing", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "new", "kubeconfig")
		dir := ownTempDir()
		cluster := boot(ctx, controlplane.Options{Kubeconfig: path})
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(controlplane.ErrKubeconfigInUse))

		processes := processesIn(cluster.DataDir)
		Expect(processes).To(HaveLen(5))
		for pid, name := range processes {
			if name == "kube-scheduler" {
				Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			}
		}
		Eventually(cluster.Failed()).WithContext(ctx).Should(Receive(MatchError(ContainSubstring("kube-scheduler ended: signal: killed"))))
		Expect(cluster.Stop()).To(Succeed())
		expectGone(cluster)
		Expect(cluster.Stop()).To(Succeed(), "a second Stop")
		Expect(os.ReadDir(dir)).To(BeEmpty())

		Expect(os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600)).To(Succeed())
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(ContainSubstring("left alone")))
		Expect(os.ReadFile(path)).To(BeEquivalentTo("apiVersion: v1\n"))
	})

	It("leaves nothing when a server does not start, and quotes its output", func(ctx SpecContext) {
		dir := ownTempDir()
		_, err := controlplane.Start(ctx, controlplane.Options{AuditLog: "/dev/null/log"})
		Expect(err).To(MatchError(SatisfyAll(ContainSubstring("kube-apiserver ended: exit status 1"), ContainSubstring("/dev/null: not a directory"))))
		Expect(os.ReadDir(dir)).To(BeEmpty())
		Expect(processesIn(dir)).To(BeEmpty())
	})

	It("says what to do when the programs are not built", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{Bin: GinkgoT().TempDir()})
		Expect(err).To(MatchError(ContainSubstring(`run "make controlplane"`)))
	})
})
