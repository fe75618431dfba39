package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/ensign-operator/ensign/test/harness"
)

// manager is bin/manager as a process of its own.
type manager struct {
	*gexec.Session
	runDir  string
	metrics string
	health  string
}

// managerOptions say how a manager of a test differs from the usual one.
type managerOptions struct {
	runDir    string   // default a directory of its own
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
	if o.runDir == "" {
		o.runDir = filepath.Join(GinkgoT().TempDir(), "runs")
	}
	m := &manager{runDir: o.runDir, metrics: freeAddress(), health: freeAddress()}
	args := append([]string{
		"run", "--kubeconfig=" + cluster.Kubeconfig, "--run-dir=" + m.runDir, "--max-backoff=10s", "--max-concurrent-reconciles=2",
		"--metrics-bind-address=" + m.metrics, "--health-probe-bind-address=" + m.health, "--user-metrics-bind-address=127.0.0.1:0",
	}, append(harness.Mode(), o.args...)...)
	if o.binary == "" {
		o.binary = filepath.Join(root, "bin", "manager")
	}
	command := exec.Command(o.binary, args...)
	command.Dir = o.dir
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "WATCH_NAMESPACE=" + o.namespace}, o.env...) // As `env -i` with PATH alone.
	var err error
	m.Session, err = gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { m.stop() })
	return m
}

// stop ends the manager orderly.
func (m *manager) stop() {
	GinkgoHelper()
	if m.ExitCode() < 0 {
		m.Terminate()
		m.stopped()
	}
}

// stopped expects the end of an orderly stop: exit code 0, and no error in its log.
func (m *manager) stopped() {
	GinkgoHelper()
	Eventually(m.Session, time.Minute).Should(gexec.Exit(0))
	_, stop, _ := strings.Cut(m.log(), "stopping: ")
	Expect(stop).NotTo(ContainSubstring("\tERROR\t"))
}

// ready waits until the manager watches a kind.
func (m *manager) ready(kinds ...string) *manager {
	GinkgoHelper()
	for _, kind := range kinds {
		Eventually(func() (string, error) {
			if code := m.ExitCode(); code >= 0 {
				return "", StopTrying(fmt.Sprintf("the manager ended with %d", code))
			}
			return m.log(), nil
		}).Should(MatchRegexp(`watching.*Kind=%s"`, kind))
	}
	return m
}

func (m *manager) log() string { return string(m.Err.Contents()) }

// logged waits until the log matches the expression.
func (m *manager) logged(expression string) {
	GinkgoHelper()
	Eventually(m.log).Should(MatchRegexp(expression))
}

// descendants lists the live processes, by PID and command line, that the
// manager or one of its runs started: ansible-playbook has a session of its own, so
// they are found by the run directory that stands in their environment. The servers of
// a manager that lives are left out.
func (m *manager) descendants() []string {
	GinkgoHelper()
	var lines []string
	found, err := harness.ProcessesOf(m.runDir)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range found {
		if !p.Server || m.ExitCode() >= 0 {
			lines = append(lines, fmt.Sprintf("%d %s", p.PID, p.CommandLine))
		}
	}
	return lines
}

// failsAtStart runs a manager that must end with exit code 1, and gives what it said.
func failsAtStart(ctx context.Context, o managerOptions) string {
	GinkgoHelper()
	m := startManager(o)
	Eventually(ctx, m.Session).Should(gexec.Exit(1))
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
