package controlplane_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/procfs"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

const waitTimeout = harness.WaitTimeout

func TestControlPlane(t *testing.T) {
	SetDefaultEventuallyTimeout(waitTimeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	log.SetLogger(GinkgoLogr)
	RegisterFailHandler(Fail)
	RunSpecs(t, "Embedded control plane")
}

// boot starts a cluster that ends with the spec or the container.
func boot(ctx context.Context, o controlplane.Options) *controlplane.Cluster {
	GinkgoHelper()
	cluster, err := controlplane.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cluster.Stop)
	return cluster
}

func clientOf(cluster *controlplane.Cluster) client.Client {
	GinkgoHelper()
	c, err := client.New(cluster.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// processesIn names the processes, by their ids, that work in the directory or
// below it, as all servers of a cluster do.
func processesIn(dir string) map[int]string {
	GinkgoHelper()
	all, err := procfs.AllProcs()
	Expect(err).NotTo(HaveOccurred())
	found := map[int]string{}
	for _, p := range all {
		if cwd, err := p.Cwd(); err == nil && strings.HasPrefix(cwd, dir) { // Or it has ended meanwhile.
			found[p.PID], _ = p.Comm()
		}
	}
	return found
}

// expectGone asserts that nothing of a stopped cluster is left.
func expectGone(cluster *controlplane.Cluster) {
	GinkgoHelper()
	Expect(processesIn(cluster.DataDir)).To(BeEmpty(), "processes are left")
	Expect(cluster.Kubeconfig).NotTo(BeAnExistingFile())
	address, err := url.Parse(cluster.Config.Host)
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", address.Host)
	Expect(err).NotTo(HaveOccurred(), "the port is still taken")
	Expect(listener.Close()).To(Succeed())
}

// ownTempDir gives the spec a TMPDIR of its own, so that what it leaves shows.
func ownTempDir() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	GinkgoT().Setenv("TMPDIR", dir)
	return dir
}
