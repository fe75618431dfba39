//go:build long

package warm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/test/harness"
)

func TestWhateverComesOverAServer(t *testing.T) {
	all := []moment{between, forked, inModule, itsEnding}
	some := []moment{between, inModule}
	faults := map[string]struct {
		moments []moment
		fault   func(*victim)
	}{
		"killed":                      {all, kill},
		"frozen":                      {all, freeze},
		"its directory deleted":       {some, func(v *victim) { v.deleteDirectory() }},
		"without further descriptors": {all, func(v *victim) { v.limit(unix.RLIMIT_NOFILE, 4) }},
		"without further memory":      {all, func(v *victim) { v.lack(unix.RLIMIT_AS, 1) }},
		"without file sizes":          {some, func(v *victim) { v.lack(unix.RLIMIT_FSIZE, 0) }},
		"without processor time":      {some, func(v *victim) { v.limit(unix.RLIMIT_CPU, 1) }},
		"without further processes":   {all, func(v *victim) { v.confine("pids", "pids.max", "1") }},
		"without memory of its group": {all, func(v *victim) { v.confine("memory", "memory.limit_in_bytes", "4194304") }},
		"with its disk full":          {some, fill},
		"with all its forks killed":   {[]moment{inModule}, killForks},
		"without further stack":       {some, func(v *victim) { v.lack(unix.RLIMIT_STACK, 1) }},
	}
	var list []suffering
	for what, f := range faults {
		for _, when := range f.moments {
			list = append(list, suffering{when, what, f.fault})
		}
	}
	endure(t, list)
}

func (v *victim) deleteDirectory() {
	v.t.Helper()
	if err := os.RemoveAll(filepath.Join(v.Runs, ".warm")); err != nil {
		v.t.Fatal(err)
	}
}

func (v *victim) limit(resource int, most uint64) {
	v.t.Helper()
	if _, err := harness.Limit(v.pid, resource, most); err != nil {
		v.t.Fatal(err)
	}
}

// lack limits the server and its forks for a while, as where all that the machine has is used up:
// a run fails then and says why. A successor would lack it just as well.
func (v *victim) lack(resource int, most uint64) {
	v.t.Helper()
	v.limit(resource, most)
	v.undo = func() {
		none := &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(v.pid, resource, none, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			v.t.Error(err)
		}
	}
}

// confine puts the server into a control group of its own that has a limit, where this
// user may make one; it tells where not.
func (v *victim) confine(controller, name, limit string) {
	v.t.Helper()
	group := filepath.Join("/sys/fs/cgroup", controller, fmt.Sprintf("ensign-test-%d", v.pid))
	if err := os.Mkdir(group, 0o755); err != nil {
		v.t.Logf("not performed: %v", err)
		return
	}
	v.t.Cleanup(func() {
		// What has survived goes back to where it was.
		left, _ := os.ReadFile(filepath.Join(group, "cgroup.procs")) // No process may be left.
		for pid := range strings.FieldsSeq(string(left)) {
			_ = os.WriteFile(filepath.Join("/sys/fs/cgroup", controller, "cgroup.procs"), []byte(pid), 0o600) // It may end meanwhile.
		}
		for deadline := time.Now().Add(waitTimeout); errors.Is(os.Remove(group), syscall.EBUSY) && time.Now().Before(deadline); {
			<-time.After(time.Millisecond)
		}
	})
	for _, setting := range [][2]string{{name, limit}, {"cgroup.procs", strconv.Itoa(v.pid)}} {
		if err := os.WriteFile(filepath.Join(group, setting[0]), []byte(setting[1]), 0o600); err != nil {
			v.t.Logf("not performed: %s: %v", setting[0], err)
			return
		}
	}
}

// fill leaves no room where the server has its files, where this user may
// mount something there; it tells where not.
func fill(v *victim) {
	place := filepath.Join(v.Runs, ".warm")
	if err := unix.Mount("none", place, "tmpfs", 0, "size=4k,nr_inodes=1"); err != nil {
		v.t.Logf("not performed: %v", err)
		return
	}
	v.signal(syscall.SIGKILL) // The next one is to start with it.
	v.undo = func() {
		if err := unix.Unmount(place, unix.MNT_DETACH); err != nil {
			v.t.Error(err)
		}
	}
}

func killForks(v *victim) {
	for _, pid := range childrenOf(v.t, v.pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			v.t.Error(err)
		}
	}
}
