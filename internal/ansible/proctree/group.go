package proctree

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// group is the path of a control group of version 2, with those below it. The
// kernel keeps the processes that were started in one together, whatever they do
// to their environment, parents and sessions. "" is no group and has no processes.
type group string

// pids are the processes in the group.
func (g group) pids() map[int]bool {
	found := map[int]bool{}
	for _, dir := range g.dirs() {
		content, err := insist(func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, "cgroup.procs")) })
		if err != nil {
			continue // It was removed meanwhile.
		}
		for line := range strings.FieldsSeq(string(content)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				found[pid] = true
			}
		}
	}
	return found
}

// kill kills all processes in the group at once, those included that are being
// forked. An error changes nothing for who kills each of them, too.
func (g group) kill() {
	if g != "" {
		_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0)
	}
}

func killAll(groups []group) {
	for _, g := range groups {
		g.kill()
	}
}

// below lists the groups that are depth levels below this one.
func (g group) below(depth int) []group {
	if g == "" || depth == 0 {
		return []group{g}
	}
	entries, err := insist(func() ([]os.DirEntry, error) { return os.ReadDir(string(g)) })
	if err != nil {
		return nil // It does not exist.
	}
	var found []group
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, (g + "/" + group(entry.Name())).below(depth-1)...)
		}
	}
	return found
}

// remove removes the group. Its processes must have ended; the kernel may need a
// moment more to notice.
func (g group) remove() error {
	const tries, pause = 100, time.Millisecond
	var err error
	for range tries {
		err = nil
		for _, dir := range slices.Backward(g.dirs()) {
			if e := os.Remove(dir); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		if err == nil {
			return nil
		}
		<-time.After(pause)
	}
	return err
}

// dirs lists the directories of the group and of those below it, parents first.
func (g group) dirs() []string {
	if g == "" {
		return nil
	}
	found := []string{string(g)}
	for _, inner := range g.below(1) {
		found = append(found, inner.dirs()...)
	}
	return found
}

// usable makes the group's directory and tells why runs cannot be started in it.
func (g group) usable() error {
	if g == "" {
		return errors.New("no cgroup2 hierarchy is mounted that shows this process")
	}
	if err := os.MkdirAll(string(g), 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(string(g), "cgroup.kill")); err != nil {
		return fmt.Errorf("a kernel before 5.14: %w", err)
	}
	kind, err := os.ReadFile(filepath.Join(string(g), "cgroup.type"))
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(string(kind)); got != "domain" {
		return fmt.Errorf("a control group here is %q and takes no processes", got)
	}
	return nil
}

// ownGroup is the control group of version 2 that this process is in.
func ownGroup() group {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return findGroup(string(membership), string(mounts))
}

// findGroup finds the directory of a process' group from what the kernel says in
// /proc/PID/cgroup and /proc/PID/mountinfo: cgroups(7), proc_pid_mountinfo(5).
func findGroup(membership, mounts string) group {
	path, found := "", false
	for line := range strings.Lines(membership) {
		if path, found = strings.CutPrefix(strings.TrimRight(line, "\n"), "0::"); found {
			break
		}
	}
	// A process outside of the namespace's root has a path that begins so.
	if !found || strings.HasPrefix(path, "/..") {
		return ""
	}
	scanner := bufio.NewScanner(strings.NewReader(mounts))
	for scanner.Scan() {
		before, after, _ := strings.Cut(scanner.Text(), " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		// A mount may show a part of the hierarchy only.
		root, mountPoint := unescape(fields[3]), unescape(fields[4])
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return group(filepath.Join(mountPoint, rel))
		}
	}
	return ""
}

// unescape undoes what the kernel does to blanks in the paths of mounts.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
