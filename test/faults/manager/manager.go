// Package manager keeps the manager of a trial: one process after the other, in
// the same directories and with the same settings. It kills and stops them, and
// notes what they do that they must not.
package manager

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/controlplane/process"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// stopLimit is how long an orderly stop may take on a busy machine.
const stopLimit = time.Minute

// Options say what a manager works with.
type Options struct {
	// Program is the manager under test.
	Program string
	// Dir is the trial's: it has the kubeconfig, and gets log and run directory.
	Dir string
	// Project is the operator project, Environment the Python environment.
	Project, Environment string
	// Namespace is the one that it watches.
	Namespace string
	// Args are further flags.
	Args []string
	// Processes starts the processes, and ends them with the test.
	Processes *process.Group
}

// Manager is the manager of a trial.
type Manager struct {
	options Options

	mu     sync.Mutex
	child  *process.Child
	kills  int
	ending bool
	faults []oracle.Violation
}

// New makes a manager that is not started yet.
func New(o Options) *Manager { return &Manager{options: o} }

// Log is the file of what all its processes print.
func (m *Manager) Log() string { return filepath.Join(m.options.Dir, "manager.log") }

// RunDir is its --run-dir, which may not be there yet.
func (m *Manager) RunDir() string { return filepath.Join(m.options.Dir, "r") }

// Start starts a manager; there must be none.
func (m *Manager) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending {
		return nil
	}
	child, err := m.options.Processes.Start(process.Command{
		Path: m.options.Program,
		Args: append([]string{
			"run", "--kubeconfig=" + filepath.Join(m.options.Dir, "kubeconfig"), "--run-dir=" + m.RunDir(),
			"--max-backoff=10s", "--reconcile-period=0s", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--user-metrics-bind-address=0", "--max-concurrent-reconciles=4",
		}, append(harness.Mode(), m.options.Args...)...),
		Env: append(environment(), "VIRTUAL_ENV="+m.options.Environment, "WATCH_NAMESPACE="+m.options.Namespace, stub.DirVariable+"="+m.options.Dir),
		Dir: m.options.Project,
		Log: m.Log(),
	})
	if err != nil {
		return err
	}
	m.child = child
	go m.mind(child)
	return nil
}

// environment is the test's without what would lead elsewhere.
func environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "VIRTUAL_ENV", "WATCH_NAMESPACE", stub.DirVariable:
		default:
			kept = append(kept, entry)
		}
	}
	return kept
}

// mind notes when a manager ends that was not told to.
func (m *Manager) mind(child *process.Child) {
	<-child.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child == child && !m.ending {
		m.faults = append(m.faults, oracle.Violation{Invariant: "I10", Text: fmt.Sprintf("the manager ended by itself with %d; %s", child.ExitCode(), child.Quote())})
	}
}

// PID is 0 when there is no manager.
func (m *Manager) PID() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child == nil {
		return 0
	}
	return m.child.PID()
}

// Kill ends the manager as a lost node does.
func (m *Manager) Kill() error {
	m.mu.Lock()
	child := m.child
	m.child = nil
	m.kills++
	m.mu.Unlock()
	if child == nil {
		return nil
	}
	if err := syscall.Kill(child.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the manager: %w", err)
	}
	<-child.Done()
	return nil
}

// Stop ends the manager orderly and for good.
func (m *Manager) Stop(ctx context.Context) error {
	m.mu.Lock()
	m.ending = true
	m.mu.Unlock()
	return m.Pause(ctx)
}

// Pause ends the manager orderly; it may be started again.
func (m *Manager) Pause(ctx context.Context) error {
	m.mu.Lock()
	child := m.child
	m.child = nil
	m.mu.Unlock()
	if child == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := syscall.Kill(child.PID(), syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the manager: %w", err)
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		m.Blame("I10", "the manager did not end within %s of SIGTERM", stopLimit)
		_ = syscall.Kill(child.PID(), syscall.SIGKILL)
		<-child.Done()
		return nil
	}
	if code := child.ExitCode(); code != 0 {
		m.Blame("I10", "the manager's exit code after SIGTERM is %d; %s", code, child.Quote())
	}
	return nil
}

// Blame notes what a manager or a run did and must not.
func (m *Manager) Blame(invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, oracle.Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// Misdeeds are what it must not do, and did.
func (m *Manager) Misdeeds() ([]oracle.Violation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.faults
	text, err := os.ReadFile(m.Log())
	if err != nil {
		return nil, fmt.Errorf("read the manager's log: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
			found = append(found, oracle.Violation{Invariant: "I10", Text: "the manager's log: " + strings.TrimSpace(line)})
		}
	}
	return found, nil
}

// Kills is how many of its processes were killed.
func (m *Manager) Kills() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kills
}
