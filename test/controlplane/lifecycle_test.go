package controlplane_test

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/controlplane"
)

var _ = Describe("The life of a cluster", func() {
	It("shares the machine with another one that boots at the same moment", func(ctx SpecContext) {
		dir := ownTempDir()
		clusters := make([]*controlplane.Cluster, 2)
		errs := make([]error, len(clusters))
		var boots sync.WaitGroup
		for i := range clusters {
			boots.Go(func() { clusters[i], errs[i] = controlplane.Start(ctx, controlplane.Options{}) })
		}
		boots.Wait()
		Expect(errs).To(HaveEach(Succeed()))
		for _, cluster := range clusters {
			DeferCleanup(cluster.Stop)
		}

		Expect(clientOf(clusters[0]).Create(ctx, configMap("only-in-the-first"))).To(Succeed())
		err := clientOf(clusters[1]).Get(ctx, client.ObjectKeyFromObject(configMap("only-in-the-first")), &corev1.ConfigMap{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "got %v", err)

		Expect(processesIn(clusters[0].DataDir)).To(HaveLen(5))
		for _, cluster := range clusters {
			Expect(cluster.Stop()).To(Succeed())
			expectGone(cluster)
			Expect(cluster.Stop()).To(Succeed(), "a second Stop")
		}
		Expect(os.ReadDir(dir)).To(BeEmpty())
	})

	It("writes a private kubeconfig and neither shares nor steals one, and tells when a server ends", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "new", "kubeconfig")
		cluster := boot(ctx, controlplane.Options{Kubeconfig: path})
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(controlplane.ErrKubeconfigInUse))

		for pid, name := range processesIn(cluster.DataDir) {
			if name == "kube-scheduler" {
				Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
			}
		}
		Eventually(cluster.Failed()).WithContext(ctx).Should(Receive(MatchError(ContainSubstring("kube-scheduler ended: signal: killed"))))
		Expect(cluster.Stop()).To(Succeed())
		Expect(path).NotTo(BeAnExistingFile())

		Expect(os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600)).To(Succeed())
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(ContainSubstring("left alone")))
		Expect(os.ReadFile(path)).To(BeEquivalentTo("apiVersion: v1\n"))
	})

	It("leaves nothing when a server does not start, and quotes what it said", func(ctx SpecContext) {
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
