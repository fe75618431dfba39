package harness

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Process is a running process, as seen from outside.
type Process struct {
	PID, Parent int
	CommandLine string
	// Server is true for a server for warm runs, which its forks are not.
	Server bool
}

// Processes lists the running processes of runs: ansible-playbook has a session of
// its own, so they are told by the run directory that stands in their environment.
// Once the manager has ended, that are its servers for warm runs too, which must not
// be there any more.
func (m *Manager) Processes() ([]Process, error) {
	found, err := ProcessesOf(m.RunDir())
	if m.ExitCode() < 0 {
		found = slices.DeleteFunc(found, func(p Process) bool { return p.Server || p.PID == m.PID() })
	}
	return found, err
}

// ProcessesOf lists the running processes with the directory, or what is below it, in their
// environment or their command line.
func ProcessesOf(dir string) ([]Process, error) {
	all, err := procfs.AllProcs()
	var found []Process
	for _, p := range all {
		command, _ := p.CmdLine()
		environment, _ := p.Environ() // Of another user it is unreadable, and not ours.
		stat, err := p.Stat()
		named := slices.ContainsFunc(slices.Concat(environment, command), func(text string) bool {
			return strings.HasSuffix(text, dir) || strings.Contains(text, dir+"/") // The name of another may begin the same way.
		})
		if !named || err != nil || len(command) == 0 { // It ended meanwhile, or is a zombie.
			continue
		}
		server := slices.ContainsFunc(environment, func(entry string) bool { return strings.HasPrefix(entry, "ENSIGN_WARM_ROOM=") })
		found = append(found, Process{p.PID, stat.PPID, strings.Join(command, " "), server})
	}
	return found, err
}

// Tree lists a running process and all that descend from it, none where the
// process has ended. A process that ends at the same time may be missing.
func Tree(root int) []procfs.ProcStat {
	all, _ := procfs.AllProcs() // Without /proc there are none.
	var found []procfs.ProcStat
	children := map[int][]procfs.ProcStat{}
	for _, p := range all {
		stat, err := p.Stat()
		switch {
		case err != nil: // It has ended.
		case p.PID == root:
			found = append(found, stat)
		default:
			children[stat.PPID] = append(children[stat.PPID], stat)
		}
	}
	for i := 0; len(found) > i; i++ {
		found = append(found, children[found[i].PID]...)
	}
	return found
}

// Memory is what a process needs of the machine's, in bytes.
type Memory struct {
	// Resident is the memory in use, Peak the most that ever was.
	Resident, Peak int64
}

// MemoryOf reads a running process' memory.
func MemoryOf(pid int) (Memory, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	status, err := p.NewStatus()
	return Memory{Resident: int64(status.VmRSS), Peak: int64(status.VmHWM)}, err
}

// Descriptors counts the open files of a process.
func Descriptors(pid int) (int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries), err
}

// Limit sets a process' limit of a resource, and returns the one before. Its hard limit stays.
func Limit(pid, resource int, most uint64) (before uint64, err error) {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return 0, err
	}
	return old.Cur, unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: old.Max}, nil)
}
