package warm

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// lasting is a run that ends when it is killed.
const lasting = "exec sleep 600"

// scene is a Server with a fake Python.
type scene struct {
	t *testing.T
	*Server

	place string
	mu    sync.Mutex
	lines []string // of the log, and of modules
}

func newScene(t *testing.T, fake string, pause time.Duration) *scene {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, place: t.TempDir()}
	if err := os.MkdirAll(s.place+"/warm/home/left", 0o755); err != nil {
		t.Fatal(err)
	}
	keep := func(line string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lines = append(s.lines, line)
	}
	s.Server, err = New(s.place+"/warm", self, func() (string, error) { return "/ensign_run.py", nil }, &proctree.Reaper{}, Options{
		Logger:    funcr.New(func(_, line string) { keep(line) }, funcr.Options{Verbosity: 1}),
		OnModule:  func(reason string) { keep("module " + reason) },
		OnOff:     func(mechanism string) { keep("off " + mechanism) },
		LookPause: pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, why := s.start(""); why != reasonStarting {
		t.Errorf("got %q before the first process", why)
	}
	s.Prepare([]string{"FAKE=" + fake, "NOTES=" + s.place + "/notes", "JOB_ID=1"})
	s.Prepare([]string{"FAKE=of another environment"})
	t.Cleanup(s.close)
	return s
}

// close closes the Server, and looks whether anything is left.
func (s *scene) close() {
	if err := s.Close(); err != nil {
		s.t.Error(err)
	}
	if _, err := os.Lstat(s.dir); !errors.Is(err, os.ErrNotExist) || slices.ContainsFunc(s.pids("started"), alive) {
		s.t.Error("the directory is left, or a process")
	}
}

// logged returns the lines of the log that have all of these texts.
func (s *scene) logged(texts ...string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.lines), func(line string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// noted returns what fakes noted after a word.
func (s *scene) noted(word string) (found []string) {
	content, _ := os.ReadFile(s.place + "/notes") // There is none yet.
	for line := range strings.Lines(string(content)) {
		if rest, is := strings.CutPrefix(line, word); is {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

func (s *scene) pids(word string) (found []int) {
	for _, text := range s.noted(word) {
		pid, _ := strconv.Atoi(text) // 0 is alive.
		found = append(found, pid)
	}
	return found
}

// start starts a run that does what answer knows.
func (s *scene) start(does string, env ...string) (leader proctree.Leader, why string) {
	s.t.Helper()
	out, errOut := os.Create(s.place + "/out")
	complaints, err := os.Create(s.place + "/errors")
	if err = errors.Join(err, errOut); err != nil {
		s.t.Fatal(err)
	}
	defer func() { _, _ = out.Close(), complaints.Close() }()
	return s.Start(&exec.Cmd{Args: []string{"python", does, "more"}, Env: env, Dir: "/somewhere", Stdout: out, Stderr: complaints})
}

// fork starts a run once there is a server that serves.
func (s *scene) fork(does string, env ...string) proctree.Leader {
	s.t.Helper()
	var leader proctree.Leader
	s.await("a run", func() bool {
		var why string
		leader, why = s.start(does, env...)
		return why == ""
	})
	return leader
}

// end checks how a run ends.
func (s *scene) end(leader proctree.Leader, want int) {
	s.t.Helper()
	if code := leader.Wait(); code != want {
		s.t.Errorf("got exit code %d, want %d", code, want)
	}
	s.await("the end of the run", func() bool { return !alive(leader.PID) })
}

func (s *scene) awaitReady() {
	s.t.Helper()
	s.await("a server that serves", func() bool { _, why := s.serving(); return why == "" })
}

func (s *scene) await(what string, condition func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(scratch.WaitTimeout); !condition(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain for %s: %q", what, s.logged())
		}
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return pid == 0 || err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestRunsAreColdUntilTheServerIsReady(t *testing.T) {
	slow := newScene(t, "slow", 0)
	slow.await("a process", func() bool { return len(slow.pids("started")) == 1 })
	if _, why := slow.start(""); why != reasonStarting {
		t.Errorf("got %q", why)
	}
	s := newScene(t, "server", 0)
	s.end(s.fork("exit 0"), 0)
	info, err := os.Stat(s.dir)
	if left, errLeft := os.ReadDir(s.dir + "/home"); err != nil || errLeft != nil || info.Mode().Perm() != 0o700 || len(left) > 0 {
		t.Errorf("got %v with %v (errors %v, %v)", info, left, err, errLeft)
	}
	s.close()
	s.Prepare([]string{"FAKE=server"})
	if _, why := s.start(""); why != reasonClosed || len(s.pids("started")) != 1 {
		t.Errorf("got %q, and processes %v", why, s.pids("started"))
	}
	if _, err := New("/dev/null/warm", "", nil, nil, Options{}); err == nil {
		t.Error("got no error where there can be no directory")
	}
}

func TestWhatNeverServesIsToldOfOnceAndTriedAgainLater(t *testing.T) {
	for how, pauses := range map[string][]string{"broken": {"1m0s"}, "killed": {"1s", "2s"}, "unsettled": {"1s", "2s"}} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, how, 0)
			for i, pause := range pauses {
				level := `"level"=` + strconv.Itoa(i)
				s.await("the log", func() bool { return len(s.logged("starting another one", level, `"pause"="`+pause+`"`)) == 1 })
				if got := s.logged("no such module", level); (len(got) == 1) != (how != "unsettled") {
					t.Errorf("at level %d: %q", i, got)
				}
			}
			if _, why := s.start(""); why != reasonFailed || len(s.pids("started")) != len(pauses) {
				t.Errorf("got %q after %v", why, s.pids("started"))
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsKilledAndReplaced(t *testing.T) {
	t.Parallel()
	s := newScene(t, "frozen", time.Second)
	s.await("an answer", func() bool { return len(s.noted("asked")) > 0 })
	run := s.fork(lasting)
	s.await("another server", func() bool { return len(s.pids("started")) > 1 && len(s.logged("does not answer, and is killed")) > 0 })
	s.end(run, -9)
	// One that takes too long to start is silent as well.
	if begun := time.Now().Add(-startTimeout); !(&process{changed: begun}).isSilent() || (&process{changed: begun.Add(time.Minute)}).isSilent() {
		t.Error("a process has another time to start")
	}
}

func TestAServerThatAnswersStays(t *testing.T) {
	t.Parallel()
	started := 0
	for pause := time.Second / 2; pause < time.Minute && started != 1; pause *= 2 { // It may be slow to answer.
		s := newScene(t, "server", pause)
		s.await("questions", func() bool { return len(s.noted("asked")) >= 2 })
		started = len(s.pids("started"))
	}
	if started != 1 {
		t.Errorf("a server that answers is replaced, %d were started", started)
	}
}

func TestARunGoesOnInAnOutdatedServerBesideItsSuccessor(t *testing.T) {
	t.Parallel()
	s := newScene(t, "server", 0)
	run := s.fork(lasting)
	if _, why := s.start("say cold outdated imports\n"); why != "imports" {
		t.Fatalf("got %q", why)
	}
	if _, why := s.start("exit 0"); why == "" {
		t.Error("the outdated server has another fork")
	}
	s.end(s.fork("exit 3"), 3)
	servers := s.pids("started")
	if got := s.pids("retired"); len(servers) != 2 || !slices.Equal(got, servers[:1]) || !alive(servers[0]) || !alive(run.PID) {
		t.Errorf("started %v, retired %v", servers, got)
	}
	if len(s.logged(`"how"="imports"`, `"level"=0`, `"pause"="1s"`)) != 1 {
		t.Errorf("got %q", s.logged())
	}
	if err := syscall.Kill(run.PID, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.end(run, -15)
	s.await("the end of the outdated server", func() bool { return !alive(servers[0]) })
}

func TestAServerThatDiesTakesItsRunsAlong(t *testing.T) {
	t.Parallel()
	s := newScene(t, "server", 0)
	run := s.fork(lasting)
	serve := filepath.Join(s.dir, "server", "serve.py")
	if err := errors.Join(os.WriteFile(serve, []byte("spoilt"), 0o600), syscall.Kill(s.pids("started")[0], syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	s.end(run, -9)
	s.await("another process", func() bool { return len(s.pids("started")) == 2 })
	s.end(s.fork("exit 0"), 0)
	if len(s.logged(`"how"="signal: killed"`, `"pause"="1s"`)) != 1 {
		t.Errorf("got %q", s.logged())
	}
	if got, err := os.ReadFile(serve); err != nil || string(got) != python(t, "server/serve.py") {
		t.Errorf("got the source %q (error %v)", got, err)
	}
	if left, err := filepath.Glob(s.dir + "/tmp*"); err != nil || len(left) != 1 {
		t.Errorf("got temporary directories %q (error %v)", left, err)
	}
}

func TestCloseEndsAllServersAndRuns(t *testing.T) {
	t.Parallel()
	s := newScene(t, "server", 0)
	old := s.fork(lasting)
	s.start("say cold outdated imports\n")
	young := s.fork(lasting)
	s.close()
	s.end(old, -9)
	s.end(young, -9)
	frozen := newScene(t, "frozen", time.Hour)
	frozen.awaitReady()
	frozen.close()
}
