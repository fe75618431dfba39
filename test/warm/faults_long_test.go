//go:build long

package warm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestWhateverComesOverAServer(t *testing.T) {
	all := []moment{between, asking, forked, inModule, itsEnding}
	some := []moment{between, asking, inModule}
	faults := map[string]struct {
		moments []moment
		fault   func(*victim)
	}{
		"killed":                      {all, kill},
		"frozen":                      {all, freeze},
		"its socket deleted":          {some, func(v *victim) { v.spoil(os.Remove) }},
		"its socket a file":           {some, func(v *victim) { v.spoil(os.Remove, func(path string) error { return os.WriteFile(path, nil, 0o600) }) }},
		"its socket another's":        {some, func(v *victim) { v.spoil(os.Remove, v.squat("ready 1\n")) }},
		"its socket a mute one's":     {some, func(v *victim) { v.spoil(os.Remove, v.squat("")) }},
		"its directory deleted":       {some, func(v *victim) { v.spoil(func(path string) error { return os.RemoveAll(filepath.Dir(path)) }) }},
		"without further descriptors": {all, func(v *victim) { v.limit(unix.RLIMIT_NOFILE, 4) }},
		"without further memory":      {all, func(v *victim) { v.limit(unix.RLIMIT_AS, 1) }},
		"without file sizes":          {some, func(v *victim) { v.limit(unix.RLIMIT_FSIZE, 0) }},
		"without processor time":      {some, func(v *victim) { v.limit(unix.RLIMIT_CPU, 1) }},
		"without further processes":   {all, func(v *victim) { v.confine("pids", "pids.max", "1") }},
		"without memory of its group": {all, func(v *victim) { v.confine("memory", "memory.limit_in_bytes", "4194304") }},
		"with its disk full":          {some, fill},
		"with all its forks killed":   {[]moment{inModule}, killForks},
		"without further stack":       {some, func(v *victim) { v.limit(unix.RLIMIT_STACK, 1) }},
	}
	for kind := range kindsOfServers() {
		t.Run(kind, func(t *testing.T) {
			var list []suffering
			for what, f := range faults {
				for _, when := range f.moments {
					list = append(list, suffering{kind, when, what, f.fault})
				}
			}
			endure(t, list)
		})
	}
}

func freeze(v *victim) {
	v.frozen = true
	v.signal(syscall.SIGSTOP)
}

// spoil does things to the server's socket.
func (v *victim) spoil(things ...func(path string) error) {
	v.t.Helper()
	path := v.socket()
	for _, do := range things {
		if err := do(path); err != nil {
			v.t.Fatal(err)
		}
	}
}

// squat listens in the server's place, and says a line to whoever connects.
func (v *victim) squat(line string) func(path string) error {
	return func(path string) error {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			return err
		}
		listener.SetUnlinkOnClose(false) // It is the next server's by then.
		v.t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					_, _ = io.WriteString(conn, line)
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}()
			}
		}()
		return nil
	}
}

func (v *victim) limit(resource int, most uint64) {
	v.t.Helper()
	var old unix.Rlimit
	if err := unix.Prlimit(v.pid, resource, nil, &old); err != nil {
		v.t.Fatal(err)
	}
	if err := unix.Prlimit(v.pid, resource, &unix.Rlimit{Cur: most, Max: old.Max}, nil); err != nil {
		v.t.Fatal(err)
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
		for deadline := time.Now().Add(patience); errors.Is(os.Remove(group), syscall.EBUSY) && time.Now().Before(deadline); {
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

// fill leaves no room where the servers have their temporary files, where this user may
// mount something there; it tells where not.
func fill(v *victim) {
	place := filepath.Join(filepath.Dir(v.socket()), "tmp")
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
