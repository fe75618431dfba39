package harness

import (
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Process is a live process, as seen from outside.
type Process struct {
	PID         int
	CommandLine string
	// Server is true for a server for warm runs, which its forks are not.
	Server bool
}

// Processes lists the live processes of runs: ansible-playbook has a session of
// its own, so they are told by the run directory that stands in their environment.
// Once the manager has ended, that are its servers for warm runs too, which must not
// be there any more.
func (m *Manager) Processes() ([]Process, error) {
	found, err := ProcessesOf(m.RunDir())
	if m.ExitCode() < 0 {
		found = slices.DeleteFunc(found, func(p Process) bool { return p.Server })
	}
	return found, err
}

// ProcessesOf lists the live processes with the text in their environment.
func ProcessesOf(text string) ([]Process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, p := range all {
		entries, _ := p.Environ() // It ended meanwhile, or is not ours.
		environment := strings.Join(entries, "\x00")
		if !strings.Contains(environment, text) {
			continue
		}
		if command, _ := p.CmdLine(); len(command) > 0 { // It ended meanwhile, or is a zombie.
			found = append(found, Process{p.PID, strings.Join(command, " "), strings.Contains(environment, "ENSIGN_WARM_ROOM=")})
		}
	}
	return found, nil
}

// Memory is what a process needs of the machine's, in bytes.
type Memory struct {
	// Resident is the memory in use, Peak the most that ever was.
	Resident, Peak int64
}

// MemoryOf reads a live process' memory.
func MemoryOf(pid int) (Memory, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	status, err := p.NewStatus()
	return Memory{Resident: int64(status.VmRSS), Peak: int64(status.VmHWM)}, err
}
