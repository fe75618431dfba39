package runner

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The test binary acts as ansible-runner, and as the programs that it starts, if FAKE is
// set. The other variables of its environment control what it does.
func TestMain(m *testing.M) {
	if name := os.Getenv("FAKE"); name != "" {
		fakes()[name]()
		scratch.Leave(0)
	}
	os.Exit(m.Run())
}

func fakes() map[string]func() {
	one := func() { event("playbook_on_task_start", `{"task": "one"}`) }
	return map[string]func(){
		"success": func() { one(); stats() },
		"nothing": func() {},
		"crash":   func() { fail(1, "Traceback: on stderr") },
		// An error that is not one of Ansible's, while a task is running.
		"unknown error": func() { one(); fail(1, "OSError: [Errno 5] Input/output error: 'pa55word'") },
		"killed":        func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
		"many":          many,
		"secrets":       secrets,
		"longline":      func() { repeat(100, 0, os.Stdout, strings.Repeat("x", 1<<20)); fmt.Println(); stats() },
		"noise":         func() { repeat(50, 0, os.Stderr, strings.Repeat("stderr ", 1<<15)); fail(3, "the last words") },
		"closed output": func() { _, _ = os.Stdout.Close(), os.Stderr.Close(); ready(); sleep() },
		// These say something twenty times in the time TALK, and succeed.
		"chatty": func() {
			for range 20 {
				one()
				time.Sleep(talk() / 20)
			}
			stats()
		},
		"noisy":     func() { repeat(20, talk()/20, os.Stdout, "."); fmt.Println(); stats() },
		"grumbling": func() { repeat(20, talk()/20, os.Stderr, "."); stats() },
		"sleep":     func() { ready(); sleep() },
		"stubborn":  func() { signal.Ignore(syscall.SIGTERM); ready(); sleep() },
		"finisher":  func() { onTerm(stats, 0) },
		"slow":      func() { onTerm(func() { time.Sleep(300 * time.Millisecond) }, 254) },
		"respawn":   func() { onTerm(func() { spawn("stubborn", nil, false) }, 254) },
		// A process with an unmarked child, which can be found only by descent.
		"parent":  func() { waitReady(spawn("stubborn", nil, true)); ready(); sleep() },
		"manager": manager,
		// These leave a process after a run that ended by itself.
		"daemon": func() { waitReady(spawn("stubborn", nil, false)); stats() },
		"holder": func() { waitReady(spawn("sleep", os.Stdout, false)); stats() },
		"hidden": func() { waitReady(spawn("sleep", os.Stdout, true)); stats() },
		// These leave a process that cannot be found and goes on writing to the manager's pipe,
		// until that is closed.
		"hidden mumbler": func() { waitReady(spawn("mumbler", os.Stdout, true)); stats() },
		"hidden babbler": func() { waitReady(spawn("babbler", os.Stdout, true)); stats() },
		"mumbler":        func() { ready(); repeat(math.MaxInt, 100*time.Millisecond, os.Stdout, "x\n") },
		"babbler":        func() { ready(); repeat(math.MaxInt, 0, os.Stdout, strings.Repeat("x", 4000)+"\n") },
	}
}

func event(kind, data string) {
	fmt.Printf(`{"uuid": "u", "counter": 1, "event": %q, "job_id": %s, "created": "2026-01-02T03:04:05.000006+00:00", "event_data": %s}`+"\n", kind, os.Getenv("JOB_ID"), data)
}

const goodStats = `{"ok": {"localhost": 1}, "changed": {}, "dark": {}, "failures": {}, "ignored": {}, "rescued": {}, "skipped": {}, "processed": {"localhost": 1}}`

func stats() { event("playbook_on_stats", goodStats) }

func fail(code int, words string) {
	fmt.Fprintln(os.Stderr, words)
	scratch.Leave(code)
}

// repeat prints words again and again, as long as somebody reads.
func repeat(times int, pause time.Duration, to *os.File, words string) {
	for range times {
		if _, err := to.WriteString(words); err != nil {
			return
		}
		time.Sleep(pause)
	}
}

// secrets fails and reports results as real modules do.
func secrets() {
	const facts = `"ansible_facts": {"ansible_env": {"PASSWORD": "hidden-environment"}}`
	event("runner_on_ok", `{"task": "read", "res": {"stdout": "hidden-environment", `+facts+`}}`)
	event("runner_on_failed", `{"task": "write", "res": {"msg": "no luck", "invocation": {"module_args": {"token": "hidden-token"}}, `+facts+`}}`)
	event("playbook_on_stats", strings.Replace(goodStats, `"failures": {}`, `"failures": {"localhost": 1}`, 1))
	scratch.Leave(2)
}

// many prints more than a pipe holds and exits at once.
func many() {
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, `{"uuid": "u", "counter": %d, "event": "playbook_on_task_start", "job_id": %s, "event_data": {"task": "task %d"}}`+"\n", i, os.Getenv("JOB_ID"), i)
	}
	fmt.Print(all.String())
	stats()
}

// ready tells the test that the process has reached its waiting point.
func ready() { scratch.Note("READY", os.Getpid()) }

// sleepTime is for how long fakes do nothing: longer than anybody waits for them. What takes less
// did not wait for their own end.
const sleepTime = scratch.WaitTimeout

func sleep() { time.Sleep(sleepTime) }

func talk() time.Duration {
	d, err := time.ParseDuration(os.Getenv("TALK"))
	if err != nil {
		panic(err)
	}
	return d
}

// onTerm waits for TERM, calls do and exits.
func onTerm(do func(), code int) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	ready()
	<-term
	do()
	scratch.Leave(code)
}

// spawn starts another fake in a session of its own, without waiting for it. If unmarked is
// set, the fake's environment has no mark of the run.
func spawn(name string, stdout *os.File, unmarked bool) int {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"FAKE=" + name, "READY=" + os.Getenv("READY")}
	if !unmarked {
		cmd.Env = append(cmd.Env, "JOB_ID="+os.Getenv("JOB_ID"))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid
}

// waitReady waits until a fake that was started is ready.
func waitReady(pid int) {
	for !strings.Contains(readyPids(os.Getenv("READY")), strconv.Itoa(pid)) {
		time.Sleep(time.Millisecond)
	}
}

func readyPids(path string) string {
	content, _ := os.ReadFile(path) // It may not be there yet.
	return string(content)
}

// manager takes over the run directory RUNS and runs the fake RUN until it is killed.
func manager() {
	root, reaper, err := process.TakeOver(os.Getenv("RUNS"), logr.Discard())
	if err != nil {
		panic(err)
	}
	self := os.Args[0]
	r := &Runner{Root: root, Reaper: reaper, Binary: self, Python: self, Env: []string{"FAKE=" + os.Getenv("RUN"), "READY=" + os.Getenv("READY")}}
	r.Run(context.Background(), someSpec(), ignore)
}
