package trial

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/harness"
)

// managers are those of a trial: one process after the other, in the same directories and
// with the same settings.
type managers struct {
	harness.Options

	mu       sync.Mutex
	child    *harness.Manager // nil when there is none
	kills    int
	ending   bool
	misdeeds []oracle.Violation
}

// start starts a manager, unless the trial is at its end; there must be none.
func (m *managers) start() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending {
		return nil
	}
	if m.child, err = harness.Start(m.Options); err == nil {
		go m.mind(m.child)
	}
	return err
}

// mind notes when a manager ends that was not told to.
func (m *managers) mind(child *harness.Manager) {
	<-child.Ended()
	m.mu.Lock()
	unasked := m.child == child
	m.mu.Unlock()
	if unasked {
		m.blame("I10", "the manager ended by itself with %d; %v", child.ExitCode(), m.tail())
	}
}

// tail is the end of their log, as an error.
func (m *managers) tail() error {
	text, err := os.ReadFile(m.LogFile)
	if err != nil {
		return err
	}
	return fmt.Errorf("its log: %s", text[max(0, len(text)-2000):])
}

// pid is 0 when there is no manager.
func (m *managers) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.child == nil {
		return 0
	}
	return m.child.PID()
}

// kill ends the manager, and nothing that it has started.
func (m *managers) kill() error {
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
	<-child.Ended()
	return nil
}

// stop ends the manager orderly, and for good.
func (m *managers) stop() {
	m.mu.Lock()
	child := m.child
	m.child, m.ending = nil, true
	m.mu.Unlock()
	if child == nil {
		return
	}
	if err := child.Stop(); err != nil {
		m.blame("I10", "an orderly stop: %v; %v", err, m.tail())
	}
}

// blame notes what a manager or a run did and must not.
func (m *managers) blame(invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.misdeeds = append(m.misdeeds, oracle.Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// blamed returns what they did and must not, with what their log tells of that, and how
// many were killed.
func (m *managers) blamed() ([]oracle.Violation, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := slices.Clone(m.misdeeds)
	text, err := os.ReadFile(m.LogFile)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
			found = append(found, oracle.Violation{Invariant: "I10", Text: "the manager's log: " + strings.TrimSpace(line)})
		}
	}
	return found, m.kills, err
}
