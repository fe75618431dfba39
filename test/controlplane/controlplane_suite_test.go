package controlplane_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ensign-operator/ensign/test/controlplane"
)

const patience = time.Minute

func TestControlPlane(t *testing.T) {
	SetDefaultEventuallyTimeout(patience)
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

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// processesIn names the processes, by their ids, that work in the directory or
// below it, as all servers of a cluster do.
func processesIn(dir string) map[int]string {
	GinkgoHelper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	Expect(err).NotTo(HaveOccurred())
	found := map[int]string{}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, dir) {
			continue // It has ended meanwhile, or works elsewhere.
		}
		process := filepath.Dir(link)
		pid, err := strconv.Atoi(filepath.Base(process))
		Expect(err).NotTo(HaveOccurred())
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		found[pid] = strings.TrimSpace(string(name))
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

// tempDirs lists the temporary data directories below TMPDIR.
func tempDirs() []string {
	GinkgoHelper()
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "ensign-controlplane-*"))
	Expect(err).NotTo(HaveOccurred())
	return dirs
}

// ownTempDir gives the spec a TMPDIR of its own, so that what it leaves shows.
func ownTempDir() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	GinkgoT().Setenv("TMPDIR", dir)
	return dir
}

// writerFunc lets a spec act on the boot's progress.
type writerFunc func(line string)

func (w writerFunc) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// programsExcept is a directory of the real programs with one replaced by a
// script.
func programsExcept(name, script string) string {
	GinkgoHelper()
	built, err := filepath.Abs(filepath.Join("..", "..", "bin", "controlplane"))
	Expect(err).NotTo(HaveOccurred())
	entries, err := os.ReadDir(built)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	for _, entry := range entries {
		if entry.Name() != name {
			Expect(os.Symlink(filepath.Join(built, entry.Name()), filepath.Join(dir, entry.Name()))).To(Succeed())
		}
	}
	content := fmt.Sprintf("#!/bin/sh\n%s\n", script)
	Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755)).To(Succeed())
	return dir
}
