package operator

import (
	"runtime"
	"testing"
	"testing/fstest"
)

func TestDefaultRuns(t *testing.T) {
	const plenty = 1 << 40
	cpus := runtime.GOMAXPROCS(0)
	for name, test := range map[string]struct {
		watches int
		memory  uint64
		warm    bool
		want    int
	}{
		"two for each processor":                        {1, plenty, true, 2 * cpus},
		"two for each watch, if those are more":         {cpus + 3, plenty, false, 2 * (cpus + 3)},
		"a run needs 160 MiB beside the manager's part": {100, ownMemory + 5*runMemory, false, 5},
		"and beside the servers for warm runs":          {100, ownMemory + serversMemory + 5*runMemory, true, 5},
		"the next one needs its memory whole":           {100, ownMemory + 6*runMemory - 1, false, 5},
		"one is always possible":                        {100, 1, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := defaultRuns(test.watches, test.memory, test.warm); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestAvailableMemory(t *testing.T) {
	machine := availableMemory(fstest.MapFS{})
	if machine == 0 {
		t.Fatal("this machine has no memory")
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"a container's own cgroup, version 2": {
			map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20,
		},
		"a limit of a group above counts": {
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1048576\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1 << 20,
		},
		"version 1": {
			map[string]string{"proc/self/cgroup": "4:memory:/pod\n3:cpuset:/\n", "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": "2097152\n"}, 2 << 20,
		},
		"version 1 in a container, where the path is the host's": {
			map[string]string{"proc/self/cgroup": "4:memory:/kubepods/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "3145728\n"}, 3 << 20,
		},
		"no limit is the machine's":           {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, machine},
		"version 1 writes no limit as a huge": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, machine},
		"lines that say nothing":              {map[string]string{"proc/self/cgroup": "\nx\n"}, machine},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for path, text := range test.files {
				files[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := availableMemory(files); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}
