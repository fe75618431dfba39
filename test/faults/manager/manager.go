// Package manager keeps the manager of a trial: one process after the other, in
// the same directories and with the same settings. It kills and stops them, and
// notes what they do that they must not.
package manager

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// Manager is the manager of a trial.
type Manager struct {
	options harness.Options

	mu     sync.Mutex
	child  *harness.Manager // nil when there is none
	kills  int
	ending bool
	faults []oracle.Violation
}

// New makes a manager that is not started yet. Home is the trial's directory, which
// has the kubeconfig, and gets log and run directory. The Python environment is of use
// to it.
func New(o harness.Options, environment string) *Manager {
	o.Kubeconfig, o.LogFile, o.RunDir = filepath.Join(o.Home, "kubeconfig"), filepath.Join(o.Home, "manager.log"), filepath.Join(o.Home, "r")
	o.Env = []string{"VIRTUAL_ENV=" + environment, stub.DirVariable + "=" + o.Home}
	o.Args = append([]string{"--reconcile-period=0s", "--max-concurrent-reconciles=4"}, o.Args...)
	return &Manager{options: o}
}

// Log is the file of what all its processes print.
func (m *Manager) Log() string { return m.options.LogFile }

// RunDir is its --run-dir, which may not be there yet.
func (m *Manager) RunDir() string { return m.options.RunDir }

// Start starts a manager; there must be none.
func (m *Manager) Start() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending {
		return nil
	}
	if m.child, err = harness.Start(m.options); err == nil {
		go m.mind(m.child)
	}
	return err
}

// mind notes when a manager ends that was not told to.
func (m *Manager) mind(child *harness.Manager) {
	<-child.Ended()
	m.mu.Lock()
	unasked := m.child == child && !m.ending
	m.mu.Unlock()
	if unasked {
		m.Blame("I10", "the manager ended by itself with %d; its log ends with %s", child.ExitCode(), end(child))
	}
}

// end is the last that a manager printed.
func end(child *harness.Manager) string {
	const bytes = 2000
	text, err := child.Log()
	if err != nil {
		return err.Error()
	}
	return text[max(0, len(text)-bytes):]
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

// take leaves no manager, and returns the one that was there, or nil.
func (m *Manager) take(ending bool, kills int) *harness.Manager {
	m.mu.Lock()
	defer m.mu.Unlock()
	child := m.child
	m.child, m.ending, m.kills = nil, m.ending || ending, m.kills+kills
	return child
}

// Kill ends the manager, and nothing that it has started.
func (m *Manager) Kill() error {
	child := m.take(false, 1)
	if child == nil {
		return nil
	}
	if err := syscall.Kill(child.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the manager: %w", err)
	}
	<-child.Ended()
	return nil
}

// Stop ends the manager orderly and for good.
func (m *Manager) Stop() { m.stop(true) }

// Pause ends the manager orderly; it may be started again.
func (m *Manager) Pause() { m.stop(false) }

func (m *Manager) stop(ending bool) {
	if child := m.take(ending, 0); child != nil {
		if err := child.Stop(); err != nil {
			m.Blame("I10", "an orderly stop: %v; its log ends with %s", err, end(child))
		}
	}
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
	found := slices.Clone(m.faults)
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
