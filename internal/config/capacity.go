package config

import (
	"io/fs"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

const (
	// runMemory is what a run holds at its peak, in bytes: ansible-runner,
	// ansible-playbook and a worker took 140 MB when it was measured.
	runMemory = 160 << 20
	// ownMemory is what the manager itself needs, in bytes.
	ownMemory = 128 << 20
	// serversMemory is what a set of servers for warm runs needs, in bytes.
	serversMemory = 160 << 20
	// leastOwnMemory and leastServersMemory are what these hold where little is watched, in
	// bytes. With a limit of 320 MiB, or of 224 without servers, run after run came
	// through; with 256 the kernel ended servers.
	leastOwnMemory     = 64 << 20
	leastServersMemory = 96 << 20
)

// DefaultRuns is how many runs may be live at once where nobody says: two for
// each processor, because runs wait for others much of the time, or two for each
// watch, so that a watch with long ones leaves a slot to every other; but no more
// than the memory holds, also when all of them are cold. GOMAXPROCS knows the CPU limit of the cgroup.
func DefaultRuns(watches int, memory uint64, warm bool) int {
	wanted := 2 * max(runtime.GOMAXPROCS(0), watches)
	own := uint64(ownMemory)
	if warm {
		own += serversMemory
	}
	room := uint64(0)
	if memory > own {
		room = min((memory-own)/runMemory, math.MaxInt32)
	}
	return max(1, min(wanted, int(room)))
}

// WarnOfMemory warns where not even one run fits into the memory.
func WarnOfMemory(log logr.Logger, memory uint64, warm bool) {
	const cold = leastOwnMemory + runMemory
	needed := uint64(cold)
	if warm {
		needed += leastServersMemory
	}
	if memory < needed {
		log.Info("WARNING: the memory limit is too low for a run: the kernel will end runs or the manager; raise the limit",
			"limit", mebibytes(memory), "needed", mebibytes(needed), "neededWithoutWarm", mebibytes(cold))
	}
}

// mebibytes writes a size as a limit of a container is written.
func mebibytes(bytes uint64) string { return strconv.FormatUint(bytes>>20, 10) + "Mi" }

// AvailableMemory is what the machine has or, if less, what the cgroups of this
// process allow, in bytes. files is the root of the file system.
func AvailableMemory(files fs.FS) uint64 {
	limit := uint64(math.MaxUint64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = info.Totalram * uint64(info.Unit)
	}
	for _, name := range memoryFiles(files, "memory.max", "memory.limit_in_bytes") {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			continue // Not every level has one, and most hierarchies are not mounted.
		}
		if bytes, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil { // "max" is no limit.
			limit = min(limit, bytes)
		}
	}
	return limit
}

// OOMKills counts the processes of this process' cgroup that the kernel has ended for
// want of memory. files is the root of the file system.
func OOMKills(files fs.FS) uint64 {
	for _, name := range memoryFiles(files, "memory.events", "memory.oom_control") {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			continue // In a container, the level that can be read is its own.
		}
		for line := range strings.Lines(string(data)) {
			if count, found := strings.CutPrefix(line, "oom_kill "); found {
				n, _ := strconv.ParseUint(strings.TrimSpace(count), 10, 64) // What is no number counts nothing.
				return n
			}
		}
	}
	return 0
}

// memoryFiles are the files of that name which tell of the memory of this process, of its
// own cgroup and those above, as each hierarchy (cgroups(7), version 2 and 1) calls them.
func memoryFiles(files fs.FS, version2, version1 string) []string {
	data, err := fs.ReadFile(files, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) != 3:
		case fields[0] == "0":
			names = append(names, upwards("sys/fs/cgroup", fields[2], version2)...)
		case fields[1] == "memory":
			names = append(names, upwards("sys/fs/cgroup/memory", fields[2], version1)...)
		}
	}
	return names
}

// upwards names the file at each level from the group to the root.
func upwards(root, group, file string) []string {
	var names []string
	for level := path.Join("/", group); ; level = path.Dir(level) {
		names = append(names, path.Join(root, level, file))
		if level == "/" {
			return names
		}
	}
}
