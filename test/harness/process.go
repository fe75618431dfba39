package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, entry := range entries {
		environment, err := os.ReadFile(filepath.Join(entry, "environ"))
		if err != nil || !bytes.Contains(environment, []byte(text)) {
			continue // It ended meanwhile, or is not ours.
		}
		commandLine, err := os.ReadFile(filepath.Join(entry, "cmdline"))
		if err != nil || len(commandLine) == 0 {
			continue // It ended meanwhile, or is a zombie.
		}
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		found = append(found, Process{pid, strings.ReplaceAll(string(commandLine), "\x00", " "), bytes.Contains(environment, []byte("ENSIGN_WARM_ROOM="))})
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
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			m.Resident = kilobytes << 10
		case "VmHWM":
			m.Peak = kilobytes << 10
		}
	}
	return m, nil
}
