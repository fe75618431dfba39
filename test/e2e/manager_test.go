package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/ensign-operator/ensign/test/harness"
)

// manager is bin/manager as a process of its own.
type manager struct {
	*harness.Manager
	home   string
	health string
}

// managerOptions say how a manager of a test differs from the usual one.
type managerOptions struct {
	home      string   // default a directory of its own
	namespace string   // the only one that is watched; default all
	binary    string   // default bin/manager
	dir       string   // the operator project; default testdata/operator
	args      []string // further flags
	env       []string // further "NAME=value"
}

// startManager starts a manager in a project's directory and stops it with the spec.
func startManager(o managerOptions) *manager {
	GinkgoHelper()
	if o.dir == "" {
		o.dir = filepath.Join(root, "test", "e2e", "testdata", "operator")
	}
	if o.binary == "" {
		o.binary = filepath.Join(root, "bin", "manager")
	}
	var err error
	if o.home == "" {
		o.home, err = os.MkdirTemp("/tmp", "e2e-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, o.home)
	}
	m := &manager{home: o.home, health: freeAddress()}
	m.Manager, err = harness.Start(harness.Options{
		Binary: o.binary, Project: o.dir, Kubeconfig: cluster.Kubeconfig, Home: o.home, Namespace: o.namespace, Env: o.env, Copy: GinkgoWriter,
		Args: append([]string{"--max-concurrent-reconciles=2", "--health-probe-bind-address=" + m.health}, o.args...),
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { m.stop() })
	return m
}

// stop ends the manager orderly, if it lives: with exit code 0, and no error in its log.
func (m *manager) stop() {
	GinkgoHelper()
	select {
	case <-m.Ended():
		return
	default:
	}
	Expect(m.Stop()).To(Succeed())
	_, stop, _ := strings.Cut(m.log(), "stopping: ")
	Expect(stop).NotTo(ContainSubstring("\tERROR\t"))
}

// ready waits until the manager watches the kinds.
func (m *manager) ready(kinds ...string) *manager {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	Expect(m.Ready(ctx, kinds...)).To(Succeed())
	return m
}

func (m *manager) log() string {
	GinkgoHelper()
	text, err := m.Log()
	Expect(err).NotTo(HaveOccurred())
	return text
}

// logged waits until the log matches the expression.
func (m *manager) logged(expression string) {
	GinkgoHelper()
	Eventually(m.log).Should(MatchRegexp(expression))
}

// failsAtStart runs a manager that must end with exit code 1, and gives what it said.
func failsAtStart(ctx context.Context, o managerOptions) string {
	GinkgoHelper()
	m := startManager(o)
	Eventually(ctx, m.ExitCode).Should(Equal(1))
	return m.log()
}

// freeAddress returns an address of the loopback interface that nobody listens on.
func freeAddress() string {
	GinkgoHelper()
	address, err := harness.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// startsOf counts the runs of a CR in the log.
func (m *manager) startsOf(object string) int {
	count := 0
	for line := range strings.Lines(m.log()) {
		if strings.Contains(line, "run started") && strings.Contains(line, fmt.Sprintf("%q", object)) {
			count++
		}
	}
	return count
}
