package warm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary plays Python, and a server, when FAKE says how.
func TestMain(m *testing.M) {
	if how := os.Getenv("FAKE"); how != "" {
		serve(how)
		scratch.Leave(0)
	}
	os.Exit(m.Run())
}

// owner starts processes and counts them.
type owner struct {
	mu    sync.Mutex
	alive map[int]bool
	all   int
}

func (o *owner) Keep(cmd *exec.Cmd) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	o.alive[cmd.Process.Pid] = true
	o.all++
	return nil
}

func (o *owner) Release(pid int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.alive, pid)
}

func (o *owner) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.alive)
}

// started counts those that have ended too.
func (o *owner) started() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all
}

func newPool(t *testing.T, limit int) (*Pool, *owner) {
	t.Helper()
	return newPoolWith(t, Options{Limit: limit, Logger: logr.Discard()})
}

func newPoolWith(t *testing.T, options Options) (*Pool, *owner) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{alive: map[int]bool{}}
	p, err := NewPool(filepath.Join(scratch.Short(t), "warm"), Programs{Standin: self, Python: self}, o, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if got := o.count(); got != 0 {
			t.Errorf("%d servers are left", got)
		}
	})
	return p, o
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// launched waits until runs with this environment are launched warm.
func launched(t *testing.T, p *Pool, env ...string) string {
	t.Helper()
	var program string
	await(t, "servers", func() bool {
		program, _ = p.Launch(env)
		return program != ""
	})
	return program
}

func TestRunsAreColdUntilServersAreThere(t *testing.T) {
	p, o := newPool(t, 2)
	if program, why := p.Launch([]string{"FAKE=server"}); program != "" || why != reasonStarting {
		t.Errorf("got %q, %q", program, why)
	}
	program := launched(t, p, "FAKE=server")
	if target, err := os.Readlink(program); err != nil || target != p.programs.Standin {
		t.Errorf("got %q (error %v)", target, err)
	}
	if again := launched(t, p, "FAKE=server", "JOB_ID=2"); again != program || o.count() != 2 {
		t.Errorf("got %q and %d servers", again, o.count())
	}
	if info, err := os.Stat(p.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v (error %v)", info.Mode(), err)
	}
}

func TestServersOfTheEnvironmentUsedLeastRecentlyEnd(t *testing.T) {
	p, o := newPool(t, 2)
	first := launched(t, p, "FAKE=server", "A=1")
	second := launched(t, p, "FAKE=server", "A=2")
	if again := launched(t, p, "FAKE=server", "A=1"); again != first {
		t.Errorf("got %q, want %q", again, first)
	}
	launched(t, p, "FAKE=server", "A=3")
	await(t, "the end of two servers", func() bool { return o.count() == 4 })
	await(t, "the end of their directory", func() bool { _, err := os.Lstat(second); return errors.Is(err, os.ErrNotExist) })
	if again := launched(t, p, "FAKE=server", "A=1"); again != first {
		t.Errorf("got %q, want %q", again, first)
	}
}

func TestAServerThatDiesIsReplaced(t *testing.T) {
	p, o := newPool(t, 1)
	launched(t, p, "FAKE=server")
	victim := 0
	o.mu.Lock()
	for victim = range o.alive {
		break
	}
	o.mu.Unlock()
	process, err := os.FindProcess(victim)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, "the runs to be cold", func() bool { program, _ := p.Launch([]string{"FAKE=server"}); return program == "" })
	launched(t, p, "FAKE=server")
	if got := o.count(); got != 2 {
		t.Errorf("got %d servers", got)
	}
}

func TestWhatServersStartIsTold(t *testing.T) {
	var told []string
	p := &Pool{onFork: func(program string) { told = append(told, program) }, refused: func(program, reason string) { told = append(told, program+" "+reason) }}
	newServer(nil, module, p).listen(strings.NewReader("ready\nwarm\ncold variable TZ\nwarm\n"))
	if want := []string{"python", "python variable TZ", "python"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
}

func TestNoPoolWithoutWhatItNeeds(t *testing.T) {
	long := "/tmp/" + strings.Repeat("x", maxSocket)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for why, test := range map[string]struct{ dir, standin string }{
		"no stand-in":                    {t.TempDir(), "/nowhere/warm-exec"},
		"a path too long for a socket":   {long, self},
		"a directory that can't be made": {"/dev/null/warm", self},
	} {
		t.Run(why, func(t *testing.T) {
			if _, err := NewPool(test.dir, Programs{Standin: test.standin}, &owner{}, Options{}); err == nil {
				t.Error("got no error")
			}
		})
	}
}
