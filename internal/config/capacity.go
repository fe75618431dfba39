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
	// runMemory is the memory of a run at its peak, in bytes. Measured: 140 MB for
	// ansible-runner, ansible-playbook and a worker.
	runMemory = 160 << 20
	// managerMemory is the memory of the manager itself, in bytes.
	managerMemory = 128 << 20
	// warmServerMemory is the memory of the server for warm runs, in bytes.
	warmServerMemory = 160 << 20
	// minManagerMemory and minWarmServerMemory are the least that these need when little is
	// watched, in bytes. Measured: all runs succeeded with a limit of 320 MiB, or of 224 MiB
	// without the server. With 256 MiB the kernel killed servers.
	minManagerMemory    = 64 << 20
	minWarmServerMemory = 96 << 20
)

// DefaultMaxConcurrentRuns returns how many runs may execute at once if --max-concurrent-runs is
// not given: two for each processor, because runs wait much of the time. If two for each watch are
// more, it returns these, so that a watch with long runs leaves a slot to every other watch. The
// result is limited to the number of cold runs that fit into memory, and is at least 1. GOMAXPROCS
// respects the CPU limit of the cgroup.
func DefaultMaxConcurrentRuns(watches int, memory uint64, warm bool) int {
	wanted := 2 * max(runtime.GOMAXPROCS(0), watches)
	reserved := uint64(managerMemory)
	if warm {
		reserved += warmServerMemory
	}
	fits := uint64(0)
	if memory > reserved {
		fits = min((memory-reserved)/runMemory, math.MaxInt32)
	}
	return max(1, min(wanted, int(fits)))
}

// WarnIfMemoryTooLow logs a warning if not even one run fits into memory, given in bytes.
func WarnIfMemoryTooLow(log logr.Logger, memory uint64, warm bool) {
	const neededCold = minManagerMemory + runMemory
	needed := uint64(neededCold)
	if warm {
		needed += minWarmServerMemory
	}
	if memory < needed {
		log.Info("WARNING: the memory limit is too low for a run: the kernel will kill runs or the manager; raise the limit",
			"limit", mebibytes(memory), "needed", mebibytes(needed), "neededWithoutWarm", mebibytes(neededCold))
	}
}

// mebibytes formats a size as a memory limit of a container, such as 320Mi.
func mebibytes(bytes uint64) string { return strconv.FormatUint(bytes>>20, 10) + "Mi" }

// AvailableMemory returns the memory of the machine, or the limit of this process's
// cgroups if it is lower, in bytes. files is the root of the file system.
func AvailableMemory(files fs.FS) uint64 {
	limit := uint64(math.MaxUint64)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limit = info.Totalram * uint64(info.Unit)
	}
	for _, name := range cgroupFiles(files, "memory.max", "memory.limit_in_bytes") {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			continue // Not every level has the file, and most hierarchies are not mounted.
		}
		if bytes, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64); err == nil { // "max" means no limit.
			limit = min(limit, bytes)
		}
	}
	return limit
}

// OOMKills returns how many processes of this process's cgroup the kernel has killed
// because memory ran out; 0 if that is not known. files is the root of the file system.
func OOMKills(files fs.FS) uint64 {
	for _, name := range cgroupFiles(files, "memory.events", "memory.oom_control") {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			continue // In a container, only the container's own level can be read.
		}
		for line := range strings.Lines(string(data)) {
			if count, found := strings.CutPrefix(line, "oom_kill "); found {
				n, _ := strconv.ParseUint(strings.TrimSpace(count), 10, 64) // 0 if it is not a number.
				return n
			}
		}
	}
	return 0
}

// cgroupFiles returns the paths of a file of the memory controller, for this process's
// cgroup and for those above it. The file has different names in version 2 and version 1
// of cgroups; see cgroups(7).
func cgroupFiles(files fs.FS, version2, version1 string) []string {
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
			names = append(names, fileAtEachLevel("sys/fs/cgroup", fields[2], version2)...)
		case fields[1] == "memory":
			names = append(names, fileAtEachLevel("sys/fs/cgroup/memory", fields[2], version1)...)
		}
	}
	return names
}

// fileAtEachLevel returns the paths of the file from the cgroup up to the root.
func fileAtEachLevel(root, group, file string) []string {
	var names []string
	for level := path.Join("/", group); ; level = path.Dir(level) {
		names = append(names, path.Join(root, level, file))
		if level == "/" {
			return names
		}
	}
}
