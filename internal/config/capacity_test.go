package config

import (
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr/funcr"
)

func TestDefaultMaxConcurrentRuns(t *testing.T) {
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
		"a run needs 160 MiB beside the manager's part": {100, managerMemory + 5*runMemory, false, 5},
		"and beside the servers for warm runs":          {100, managerMemory + warmServerMemory + 5*runMemory, true, 5},
		"the next one needs its memory whole":           {100, managerMemory + 6*runMemory - 1, false, 5},
		"one is always possible":                        {100, 1, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := DefaultMaxConcurrentRuns(test.watches, test.memory, test.warm); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestAvailableMemory(t *testing.T) {
	machine := AvailableMemory(fstest.MapFS{})
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
			if got := AvailableMemory(files); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestOOMKills(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"version 2": {
			map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"}, 2,
		},
		"version 1": {
			map[string]string{"proc/self/cgroup": "4:memory:/pod\n", "sys/fs/cgroup/memory/pod/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 19\n"}, 19,
		},
		"version 1 in a container, where the path is the host's": {
			map[string]string{"proc/self/cgroup": "4:memory:/kubepods/x\n0::/\n", "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}, 4,
		},
		"its own group counts, not one above": {
			map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.events": "oom_kill 7\n", "sys/fs/cgroup/a/b/memory.events": "oom_kill 1\n"}, 1,
		},
		"no group that tells":    {map[string]string{"proc/self/cgroup": "0::/\n"}, 0},
		"a kernel without count": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for path, text := range test.files {
				files[path] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := OOMKills(files); got != test.want {
				t.Errorf("want %d, got %d", test.want, got)
			}
		})
	}
}

func TestWarnIfMemoryTooLow(t *testing.T) {
	for name, test := range map[string]struct {
		memory uint64
		warm   bool
		want   string // in what is said; "" for nothing
	}{
		"one run fits":                      {320 << 20, true, ""},
		"no run fits beside the servers":    {319 << 20, true, `"needed"="320Mi" "neededWithoutWarm"="224Mi"`},
		"without servers less is needed":    {224 << 20, false, ""},
		"no run fits, not even without any": {200 << 20, false, `"limit"="200Mi" "needed"="224Mi"`},
	} {
		t.Run(name, func(t *testing.T) {
			logged := ""
			WarnIfMemoryTooLow(funcr.New(func(_, line string) { logged = line }, funcr.Options{}), test.memory, test.warm)
			if (logged == "") != (test.want == "") || !strings.Contains(logged, test.want) {
				t.Errorf("got %q", logged)
			}
		})
	}
}
