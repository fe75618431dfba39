package leftovers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Processes lists the live processes that carry dir in their environment or
// their command line.
func Processes(dir string, but ...int) []string {
	var found []string
	for _, pid := range pids() {
		if slices.Contains(but, pid) || pid == os.Getpid() {
			continue
		}
		commandLine, err := os.ReadFile(procPath(pid, "cmdline"))
		if err != nil || len(commandLine) == 0 {
			continue // It has ended.
		}
		environment, _ := os.ReadFile(procPath(pid, "environ")) // Of another user it is unreadable, and not ours.
		if carries(environment, dir) || carries(commandLine, dir) {
			found = append(found, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(bytes.TrimRight(commandLine, "\x00"), []byte{0}, []byte(" "))))
		}
	}
	return found
}

// carries looks for the directory, and not for one whose name begins as its does.
func carries(text []byte, dir string) bool {
	return bytes.Contains(text, []byte(dir+"\x00")) || bytes.Contains(text, []byte(dir+"/"))
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

func pids() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // What has ended meanwhile is no error.
	var found []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

func procPath(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// Helpers are the children of a manager that live as long as it does, and not longer:
// the servers for warm runs.
func Helpers(manager int) []int {
	var found []int
	for _, pid := range children(manager, nil) {
		commandLine, err := os.ReadFile(procPath(pid, "cmdline"))
		if err == nil && bytes.Contains(commandLine, []byte("/server/serve.py\x00")) {
			found = append(found, pid)
		}
	}
	return found
}

// Zombies lists the children of a process that it has not waited for.
func Zombies(parent int) []string {
	var found []string
	for _, pid := range children(parent, func(state string) bool { return state == "Z" }) {
		found = append(found, fmt.Sprintf("zombie %d", pid))
	}
	return found
}

// children are the processes that a process has started and that are in such a
// state; nil is any.
func children(parent int, state func(string) bool) []int {
	var found []int
	for _, pid := range pids() {
		stat, err := os.ReadFile(procPath(pid, "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) && (state == nil || state(fields[0])) {
			found = append(found, pid)
		}
	}
	return found
}

// Alive is true for a process that has not ended.
func Alive(pid int) bool {
	stat, err := os.ReadFile(procPath(pid, "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	// X is what a zombie is for the moment in which it is collected.
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// Descriptors lists the open files of a process that belong to runs.
func Descriptors(pid int, runDir string) []string {
	links, _ := filepath.Glob(procPath(pid, "fd/*")) // The pattern is right.
	var found []string
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, runDir+"/") && !strings.HasPrefix(filepath.Base(target), ".") {
			found = append(found, "descriptor of "+target)
		}
	}
	return found
}
