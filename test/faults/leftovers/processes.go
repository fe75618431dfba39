package leftovers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// Processes lists the live processes that carry dir in their environment or
// their command line.
func Processes(dir string, but ...int) []string {
	all, _ := procfs.AllProcs()
	var found []string
	for _, p := range all {
		commandLine, _ := p.CmdLine()
		if len(commandLine) == 0 || p.PID == os.Getpid() || slices.Contains(but, p.PID) {
			continue // What has none has ended.
		}
		environment, _ := p.Environ() // Of another user it is unreadable, and not ours.
		if carries(environment, dir) || carries(commandLine, dir) {
			found = append(found, fmt.Sprintf("process %d: %s", p.PID, strings.Join(commandLine, " ")))
		}
	}
	return found
}

// carries looks for the directory, and not for one whose name begins as its does.
func carries(texts []string, dir string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(text, dir) || strings.Contains(text, dir+"/") })
}

// Kill ends what a failed trial left.
func Kill(dir string) {
	for _, process := range Processes(dir) {
		var pid int
		if _, err := fmt.Sscanf(process, "process %d:", &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may have ended meanwhile.
		}
	}
}

// Helpers are the children of a manager that live as long as it does, and not longer:
// the servers for warm runs.
func Helpers(manager int) []int {
	var found []int
	for _, p := range children(manager) {
		commandLine, _ := p.CmdLine() // It may have ended.
		if slices.ContainsFunc(commandLine, func(text string) bool { return strings.HasSuffix(text, "/server/serve.py") }) {
			found = append(found, p.PID)
		}
	}
	return found
}

// Zombies lists the children of a process that it has not waited for.
func Zombies(parent int) []string {
	var found []string
	for _, p := range children(parent) {
		if stat, err := p.Stat(); err == nil && stat.State == "Z" {
			found = append(found, fmt.Sprintf("zombie %d", p.PID))
		}
	}
	return found
}

// children are the processes that a process has started.
func children(parent int) procfs.Procs {
	all, _ := procfs.AllProcs()
	return slices.DeleteFunc(all, func(p procfs.Proc) bool {
		stat, err := p.Stat()
		return err != nil || stat.PPID != parent
	})
}

// Alive is true for a process that has not ended.
func Alive(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	// X is what a zombie is for the moment in which it is collected.
	return err == nil && stat.State != "Z" && stat.State != "X"
}

// Descriptors lists the open files of a process that belong to runs.
func Descriptors(pid int, runDir string) []string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil
	}
	targets, _ := p.FileDescriptorTargets() // It may have ended.
	var found []string
	for _, target := range targets {
		if strings.HasPrefix(target, runDir+"/") && !strings.HasPrefix(filepath.Base(target), ".") {
			found = append(found, "descriptor of "+target)
		}
	}
	return found
}
