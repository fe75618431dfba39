package controlplane_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
		ownTempDir()
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
		Expect(tempDirs()).To(BeEmpty())
	})

	It("keeps its objects in a data directory that is named", func(ctx SpecContext) {
		dir := filepath.Join(GinkgoT().TempDir(), "kept")
		first := boot(ctx, controlplane.Options{DataDir: dir})
		Expect(clientOf(first).Create(ctx, configMap("kept"))).To(Succeed())
		_, err := controlplane.Start(ctx, controlplane.Options{DataDir: dir})
		Expect(err).To(MatchError(controlplane.ErrDataDirInUse))
		Expect(first.Stop()).To(Succeed())
		expectGone(first)

		second := boot(ctx, controlplane.Options{DataDir: dir})
		Expect(clientOf(second).Get(ctx, client.ObjectKeyFromObject(configMap("kept")), &corev1.ConfigMap{})).To(Succeed())
	})

	It("writes a private kubeconfig and neither shares nor steals one", func(ctx SpecContext) {
		path := filepath.Join(GinkgoT().TempDir(), "new", "kubeconfig")
		cluster := boot(ctx, controlplane.Options{Kubeconfig: path})
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(BeEquivalentTo(0o600))
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(controlplane.ErrKubeconfigInUse))
		Expect(cluster.Stop()).To(Succeed())
		Expect(path).NotTo(BeAnExistingFile())

		Expect(os.WriteFile(path, []byte("apiVersion: v1\n"), 0o600)).To(Succeed())
		_, err = controlplane.Start(ctx, controlplane.Options{Kubeconfig: path})
		Expect(err).To(MatchError(ContainSubstring("left alone")))
		Expect(os.ReadFile(path)).To(BeEquivalentTo("apiVersion: v1\n"))
	})

	It("leaves nothing when a server does not start, and quotes what it said", func(ctx SpecContext) {
		dir := ownTempDir()
		bin := programsExcept("kube-scheduler", `echo "no such flag: --leader-elect" >&2; exit 7`)
		_, err := controlplane.Start(ctx, controlplane.Options{Bin: bin})
		Expect(err).To(MatchError(SatisfyAll(
			ContainSubstring("kube-scheduler ended: exit status 7"),
			ContainSubstring("no such flag: --leader-elect"),
		)))
		Expect(tempDirs()).To(BeEmpty())
		Expect(processesIn(dir)).To(BeEmpty())
	})

	It("leaves nothing when it is interrupted during the boot", func(ctx SpecContext) {
		dir := ownTempDir()
		boot, interrupt := context.WithCancel(ctx)
		defer interrupt()
		seen := 0
		_, err := controlplane.Start(boot, controlplane.Options{Log: writerFunc(func(line string) {
			if strings.Contains(line, "kube-apiserver") {
				seen = len(processesIn(dir))
				interrupt()
			}
		})})
		Expect(err).To(MatchError(context.Canceled))
		Expect(seen).To(Equal(2), "etcd and kube-apiserver ran when the boot was interrupted")
		Expect(tempDirs()).To(BeEmpty())
		Expect(processesIn(dir)).To(BeEmpty())
	})

	It("reports a server that ends while the cluster is up", func(ctx SpecContext) {
		bin := programsExcept("kube-scheduler", `trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done`)
		cluster := boot(ctx, controlplane.Options{Bin: bin})
		for pid, name := range processesIn(cluster.DataDir) {
			if name == "kube-scheduler" {
				Expect(syscall.Kill(pid, syscall.SIGTERM)).To(Succeed())
			}
		}
		Eventually(cluster.Failed()).WithContext(ctx).Should(Receive(MatchError(ContainSubstring("kube-scheduler ended: exit status 9"))))
	})

	It("says what to do when the programs are not built", func(ctx SpecContext) {
		_, err := controlplane.Start(ctx, controlplane.Options{Bin: GinkgoT().TempDir()})
		Expect(err).To(MatchError(ContainSubstring(`run "make controlplane"`)))
	})
})
