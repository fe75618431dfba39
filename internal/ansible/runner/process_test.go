package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

type bench struct {
	t *testing.T
	*Runner
	ready string
	runs  string
}

// newBench returns a runner whose ansible-runner is the fake of that name. At the end it
// checks that no goroutine, descriptor or zombie is left.
func newBench(t *testing.T, fake string) *bench {
	t.Helper()
	before := openFiles(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, ready: filepath.Join(t.TempDir(), "ready"), runs: filepath.Join(t.TempDir(), "runs")}
	root, err := rundir.Open(b.runs)
	if err != nil {
		t.Fatal(err)
	}
	b.Runner = &Runner{Root: root, Binary: self, Python: self, Env: []string{"FAKE=" + fake, "READY=" + b.ready}, Grace: 500 * time.Millisecond}
	t.Cleanup(func() {
		_ = root.Close() // A test may have closed it already.
		goleak.VerifyNone(t)
		if after := openFiles(t); after != before {
			t.Errorf("got %d open files, %d before", after, before)
		}
		if left := zombies(t); len(left) > 0 {
			t.Errorf("zombies are left: %v", left)
		}
	})
	return b
}

// openFiles counts the descriptors of this process, without those that Go's runtime opens when it
// first waits for one.
func openFiles(t *testing.T) (count int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if target, _ := os.Readlink("/proc/self/fd/" + entry.Name()); !strings.HasPrefix(target, "anon_inode:[event") { // The one of this reading has gone.
			count++
		}
	}
	return count
}

func someSpec() Spec {
	return Spec{UID: "uid-1", ID: "run-1", Playbook: "/playbook.yml", ExtraVars: []byte("\t\n{}")}
}

func inputs() rundir.Inputs { return rundir.Inputs{ExtraVars: []byte("\t\n{}")} }

func ignore(jobevent.Event) {}

// runUntilReady runs the fake and cancels the run once the fake is ready. It returns how
// long the run took to end.
func (b *bench) runUntilReady(spec Spec) (Result, time.Duration) {
	b.t.Helper()
	return b.runUntilReadyAnd(spec, func(string) {})
}

// runUntilReadyAnd calls do with the pids of the fakes before it cancels the run.
func (b *bench) runUntilReadyAnd(spec Spec, do func(pids string)) (Result, time.Duration) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	told := make(chan time.Time, 1)
	go func() {
		b.awaitReady(ctx)
		do(readyPids(b.ready))
		told <- time.Now()
		cancel()
	}()
	result := b.Run(ctx, spec, ignore)
	cancel()
	return result, result.Ended.Sub(<-told)
}

func (b *bench) awaitReady(ctx context.Context) {
	for ctx.Err() == nil && readyPids(b.ready) == "" {
		time.Sleep(time.Millisecond)
	}
}

// wantGone checks that every process that was ready has ended.
func (b *bench) wantGone() {
	b.t.Helper()
	pids := strings.Fields(readyPids(b.ready))
	if len(pids) == 0 {
		b.t.Error("no process was ready, so the test shows nothing")
	}
	for _, pid := range pids {
		if alive(pid) {
			b.t.Errorf("process %s is left", pid)
		}
	}
}

func want(t *testing.T, got Result, verdict content.Verdict, reason content.Reason) {
	t.Helper()
	if got.Outcome.Verdict != verdict || got.Outcome.Reason != reason {
		t.Errorf("got outcome %+v, want %s, %s", got.Outcome, verdict, reason)
	}
}

func TestRun(t *testing.T) {
	tests := map[string]struct {
		verdict content.Verdict
		reason  content.Reason
		message string
	}{
		"success":       {content.Succeeded, content.ReasonSuccessful, ""},
		"longline":      {content.Succeeded, content.ReasonSuccessful, ""},
		"nothing":       {content.Failed, jobevent.ReasonNoStats, ""},
		"crash":         {content.Failed, jobevent.ReasonNoStats, "Traceback: on stderr"},
		"unknown error": {content.Failed, jobevent.ReasonNoStats, "OSError: [Errno 5] Input"},
		"noise":         {content.Failed, jobevent.ReasonNoStats, "the last words"},
		"killed":        {content.Failed, content.ReasonRunnerCrashed, ""},
	}
	for fake, test := range tests {
		t.Run(fake, func(t *testing.T) {
			got := newBench(t, fake).Run(t.Context(), someSpec(), ignore)
			want(t, got, test.verdict, test.reason)
			if strings.Contains(got.Outcome.Message, "pa55word") {
				t.Errorf("got message %q, with what a task was given", got.Outcome.Message)
			}
			if !strings.Contains(got.Outcome.Message, test.message) || len(got.Outcome.Message) > 4<<10 {
				t.Errorf("got message %q, want %q in it", got.Outcome.Message, test.message)
			}
		})
	}
}

// The process exits long before the slow observer has got the last events. The observer
// still gets all of them, in order, on one goroutine.
func TestEventsComeInOrderToASlowObserver(t *testing.T) {
	b := newBench(t, "many")
	var tasks []string
	got := b.Run(t.Context(), someSpec(), func(e jobevent.Event) {
		if len(tasks)%100 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		tasks = append(tasks, e.Task)
	})
	want(t, got, content.Succeeded, content.ReasonSuccessful)
	if len(tasks) != 5001 {
		t.Fatalf("got %d events, want 5001", len(tasks))
	}
	for i, task := range tasks[:5000] {
		if task != fmt.Sprintf("task %d", i) {
			t.Fatalf("got %q at %d", task, i)
		}
	}
}

func TestCancel(t *testing.T) {
	const long = time.Hour // Nothing that heeds TERM waits for it.
	tests := map[string]struct {
		fake    string
		grace   time.Duration
		verdict content.Verdict
		atLeast time.Duration
	}{
		"what heeds TERM ends at once":                               {fake: "sleep", grace: long, verdict: content.Canceled},
		"what takes its time on TERM gets it":                        {fake: "slow", grace: long, verdict: content.Canceled, atLeast: 300 * time.Millisecond},
		"what ignores TERM is killed after the grace time":           {fake: "stubborn", grace: 400 * time.Millisecond, verdict: content.Canceled, atLeast: 400 * time.Millisecond},
		"what is started while the rest ends is found too":           {fake: "respawn", grace: 400 * time.Millisecond, verdict: content.Canceled},
		"a child with an environment of its own is found by descent": {fake: "parent", grace: 400 * time.Millisecond, verdict: content.Canceled, atLeast: 400 * time.Millisecond},
		"a run that succeeds in spite of TERM has succeeded":         {fake: "finisher", grace: long, verdict: content.Succeeded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, test.fake)
			b.Grace = test.grace
			got, took := b.runUntilReady(someSpec())
			if got.Outcome.Verdict != test.verdict {
				t.Errorf("got outcome %+v, want %s", got.Outcome, test.verdict)
			}
			if took < test.atLeast || took > sleepTime {
				t.Errorf("it took %v, want %v and no more", took, test.atLeast)
			}
			b.wantGone()
		})
	}
}

// runOnceReady runs the fake with a limit that set sets, again with twice as much until the fake
// gets ready before: a busy machine takes long to start a process.
func (b *bench) runOnceReady(limit time.Duration, set func(spec *Spec, limit time.Duration)) Result {
	b.t.Helper()
	spec := someSpec()
	for {
		set(&spec, limit)
		got := b.Run(b.t.Context(), spec, ignore)
		if readyPids(b.ready) != "" || limit > scratch.WaitTimeout {
			return got
		}
		spec.ID, limit = spec.ID+"-again", 2*limit
	}
}

func TestTimeoutIsToldFromCancel(t *testing.T) {
	b := newBench(t, "sleep")
	var timeout time.Duration
	got := b.runOnceReady(200*time.Millisecond, func(spec *Spec, limit time.Duration) { timeout, spec.Timeout = limit, limit })
	want(t, got, content.Failed, content.ReasonTimeout)
	if !strings.HasPrefix(got.Outcome.Message, fmt.Sprintf("the run took longer than its timeout\nthe timeout of the watch is %s", timeout)) {
		t.Errorf("got message %q", got.Outcome.Message)
	}
	if took := got.Ended.Sub(got.Started); took > sleepTime {
		t.Errorf("it took %v", took)
	}
	b.wantGone()
}

// A deadline of the caller's context is not the timeout of the watch.
func TestDeadlineOfTheCallerIsACancel(t *testing.T) {
	b := newBench(t, "sleep")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	want(t, b.Run(ctx, someSpec(), ignore), content.Canceled, content.ReasonCanceled)
}

func TestNothingStartsForAContextThatHasEnded(t *testing.T) {
	b := newBench(t, "sleep")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the manager stops"))
	want(t, b.Run(ctx, someSpec(), ignore), content.Canceled, content.ReasonCanceled)
	if readyPids(b.ready) != "" {
		t.Error("something was started")
	}
}

func TestWhatIsLeftAfterARunThatEndedWell(t *testing.T) {
	for name, fake := range map[string]string{
		"a daemon that ignores TERM is killed":         "daemon",
		"a daemon that holds the output open is ended": "holder",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fake)
			want(t, b.Run(t.Context(), someSpec(), ignore), content.Succeeded, content.ReasonSuccessful)
			b.wantGone()
		})
	}
}

// A daemon without its parent and without its environment is not found. It keeps the pipe
// open, and the run ends all the same.
func TestAHiddenDaemonDoesNotBlockTheRun(t *testing.T) {
	b := newBench(t, "hidden")
	got := b.Run(t.Context(), someSpec(), ignore)
	want(t, got, content.Succeeded, content.ReasonSuccessful)
	if took := got.Ended.Sub(got.Started); took < process.PipeTimeout || took > sleepTime {
		t.Errorf("it took %v, want %v and no more than is needed", took, process.PipeTimeout)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(readyPids(b.ready)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon is gone (%v): the package comment says that it is not found", err)
	}
}

// The run also ends if the daemon goes on printing.
func TestAHiddenDaemonThatTalksDoesNotBlockTheRun(t *testing.T) {
	for _, fake := range []string{"hidden mumbler", "hidden babbler"} {
		t.Run(fake, func(t *testing.T) {
			b := newBench(t, fake)
			want(t, b.Run(t.Context(), someSpec(), ignore), content.Succeeded, content.ReasonSuccessful)
			pid, err := strconv.Atoi(strings.TrimSpace(readyPids(b.ready)))
			if err != nil {
				t.Fatal(err)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may have noticed that nobody listens any more.
		})
	}
}

// Checking that no process is left needs descriptors, and other runs may use all of them.
func TestTheOutputIsClosedAtItsEnd(t *testing.T) {
	b := newBench(t, "success")
	before := openPipes(t)
	p, _, err := b.start(someSpec(), command{path: b.Binary, env: append(b.Env, "JOB_ID=7"), dir: t.TempDir()}, 7, func(records io.Reader) error {
		_, err := io.Copy(io.Discard, records)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	scratch.Eventually(t, "the pipes to be closed", func() bool { return openPipes(t) <= before })
	if code, cause, err := p.Wait(t.Context(), time.Second); code != 0 || cause != nil || err != nil {
		t.Errorf("got %d, %v, %v, want that it has exited", code, cause, err)
	}
}

// openPipes counts the pipes that this process has open.
func openPipes(t *testing.T) (count int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.HasPrefix(target, "pipe:") {
			count++
		}
	}
	return count
}

// Whoever ends a context may end processes too, and Run may notice their exit first.
func TestARunThatExitedWithItsContextWasInterrupted(t *testing.T) {
	b := newBench(t, "killed")
	for range 10 { // Which of the two is seen first is left to chance.
		closed := make(chan struct{})
		p, _, err := b.start(someSpec(), command{path: b.Binary, env: append(b.Env, "JOB_ID=7"), dir: t.TempDir()}, 7, func(records io.Reader) error {
			defer close(closed)
			_, err := io.Copy(io.Discard, records)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		<-closed // The kernel closes its pipes when it ends it.
		ctx, end := context.WithCancelCause(t.Context())
		over := errors.New("over")
		end(over)
		code, cause, err := p.Wait(ctx, time.Second)
		if got := ending(code, cause, err, ""); got.Cause != jobevent.Interrupted || !errors.Is(got.Err, over) || got.ExitCode != -9 {
			t.Fatalf("got %+v, want a run that was interrupted", got)
		}
	}
}

// The context may end while Ready is waiting.
func TestNothingIsStartedOnceItsContextHasEnded(t *testing.T) {
	b := newBench(t, "")
	b.Python = "/nowhere" // An attempt to start it would show.
	ctx, end := context.WithCancel(t.Context())
	b.Ready = func(context.Context) error {
		end()
		return errors.New("not ready either")
	}
	want(t, b.Run(ctx, someSpec(), ignore), content.Canceled, content.ReasonCanceled)
}

func TestRunsDoNotEndEachOther(t *testing.T) {
	b := newBench(t, "sleep")
	other := &Runner{Root: b.Root, Binary: b.Binary, Python: b.Python, Env: []string{"FAKE=finisher", "READY=" + b.ready + "-other"}}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var result Result
	wg.Go(func() {
		spec := someSpec()
		spec.UID = "uid-2"
		result = other.Run(ctx, spec, ignore)
	})
	for readyPids(b.ready+"-other") == "" {
		time.Sleep(time.Millisecond)
	}
	canceled, _ := b.runUntilReady(someSpec())
	want(t, canceled, content.Canceled, content.ReasonCanceled)
	if !alive(strings.TrimSpace(readyPids(b.ready + "-other"))) {
		t.Error("the other run's process ended too")
	}
	cancel()
	wg.Wait()
	want(t, result, content.Succeeded, content.ReasonSuccessful)
}

func TestASecondRunOfTheSameCRIsRefused(t *testing.T) {
	b := newBench(t, "sleep")
	var second Result
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		b.awaitReady(ctx)
		second = b.Run(t.Context(), someSpec(), ignore)
		cancel()
	})
	want(t, b.Run(ctx, someSpec(), ignore), content.Canceled, content.ReasonCanceled)
	wg.Wait()
	want(t, second, content.Failed, content.ReasonRunnerCrashed)
	if !strings.Contains(second.Outcome.Message, rundir.ErrBusy.Error()) {
		t.Errorf("got message %q", second.Outcome.Message)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	dir := t.TempDir()
	plain, orphan := filepath.Join(dir, "plain"), filepath.Join(dir, "orphan")
	if err := errors.Join(os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600), os.WriteFile(orphan, []byte("#!/gone/python\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ binary, want string }{
		"ansible-runner is not there":        {filepath.Join(dir, "missing"), "no such file"},
		"it is not executable":               {plain, "permission denied"},
		"the Python that it names is gone":   {orphan, "no such file"},
		"what stands there is a directory":   {dir, "permission denied"},
		"every such message has the remedy":  {filepath.Join(dir, "missing"), "make python"},
		"every such message names the place": {filepath.Join(dir, "missing"), dir},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "")
			b.Python = test.binary
			got := b.Run(t.Context(), someSpec(), ignore)
			want(t, got, content.Failed, content.ReasonRunnerCrashed)
			if !strings.Contains(got.Outcome.Message, test.want) {
				t.Errorf("got message %q, want %q in it", got.Outcome.Message, test.want)
			}
		})
	}
}

func TestUnusableNamesAreAnOutcome(t *testing.T) {
	b := newBench(t, "success")
	spec := someSpec()
	spec.UID = "../../etc"
	want(t, b.Run(t.Context(), spec, ignore), content.Failed, content.ReasonRunnerCrashed)
}

// alive reports whether a process has not ended; a zombie has.
func alive(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')'):]), ") Z")
}

// zombies returns the children of this process that nobody has waited for.
func zombies(t *testing.T) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // It may have ended meanwhile.
		if strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), fmt.Sprintf(" Z %d ", os.Getpid())) {
			found = append(found, path)
		}
	}
	return found
}

// A panic of an observer must affect only its own run.
func TestAPanicAtAnEventEndsNothingButItsRunsEvents(t *testing.T) {
	b := newBench(t, "many")
	result := b.Run(t.Context(), someSpec(), func(jobevent.Event) { panic("no such host") })
	if result.Outcome.Reason != content.ReasonRunnerCrashed {
		t.Errorf("want reason %s, got %+v", content.ReasonRunnerCrashed, result.Outcome)
	}
	if message := result.Outcome.Message; !strings.Contains(message, "no such host") || strings.Contains(message, "goroutine") {
		t.Errorf("want what happened and no stack, got %q", message)
	}
}

func TestARunStartsOnlyWhenItMay(t *testing.T) {
	unready := errors.New("the environment is another")
	for name, test := range map[string]struct {
		ready      func(end func()) error
		want       content.Reason
		wantReason string
	}{
		"it may":                         {func(func()) error { return nil }, content.ReasonSuccessful, ""},
		"it may not, which fails it":     {func(func()) error { return unready }, content.ReasonRunnerCrashed, unready.Error()},
		"its context ends meanwhile":     {func(end func()) error { end(); return nil }, content.ReasonCanceled, ""},
		"its context ends while it asks": {func(end func()) error { end(); return context.Canceled }, content.ReasonCanceled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "success")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			b.Ready = func(context.Context) error { return test.ready(end) }
			got := b.Run(ctx, Spec{UID: "u", ID: "1", Role: "r"}, func(e jobevent.Event) {
				if test.want != content.ReasonSuccessful {
					t.Errorf("got event %+v of a run that must not start", e)
				}
			})
			if got.Outcome.Reason != test.want || !strings.Contains(got.Outcome.Message, test.wantReason) {
				t.Errorf("got %+v, want %s with %q", got.Outcome, test.want, test.wantReason)
			}
		})
	}
}

// A run that the manager ended is not a failure, whatever ansible-runner's exit code is.
func TestEndingOfARunThatWasToldToEnd(t *testing.T) {
	through := jobevent.Summary{StatsSeen: true, Hosts: 1}
	for why, test := range map[string]struct {
		code    int
		cause   error
		summary jobevent.Summary
		want    content.Reason
	}{
		"by itself, before its end":            {0, nil, jobevent.Summary{}, jobevent.ReasonNoStats},
		"by itself, through":                   {0, nil, through, content.ReasonSuccessful},
		"through, when it was told":            {0, context.Canceled, through, content.ReasonSuccessful},
		"as told":                              {254, context.Canceled, jobevent.Summary{}, content.ReasonCanceled},
		"by ansible-playbook's death, as told": {0, context.Canceled, jobevent.Summary{}, content.ReasonCanceled},
		"the same, for its timeout":            {0, fmt.Errorf("%w is 1m", process.ErrTimeout), jobevent.Summary{}, content.ReasonTimeout},
		"the same, for its silence":            {0, process.ErrIdle, jobevent.Summary{}, content.ReasonTimeout},
	} {
		t.Run(why, func(t *testing.T) {
			if got := jobevent.DetermineOutcome(ending(test.code, test.cause, nil, ""), test.summary); got.Reason != test.want {
				t.Errorf("got %+v", got)
			}
		})
	}
}
