package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/faults/stub"
)

// finalizerPlaybook is the name of the playbook that finalizers run.
const finalizerPlaybook = "finalize.yml"

const (
	counts       = `"ok": {"localhost": 1}, "changed": {}, "dark": {}, "ignored": {}, "rescued": {}, "skipped": {}, "processed": {"localhost": 1}`
	goodStats    = `{` + counts + `, "failures": {}}`
	failedStats  = `{` + counts + `, "failures": {"localhost": 1}}`
	taskData     = `"play": "stub", "task": "work", "task_action": "work", "host": "localhost"`
	failedResult = `{` + taskData + `, "res": {"msg": "the script says so"}}`
)

// play is the playbook of one run.
type play struct {
	dir     string
	record  stub.Record
	failure stub.Failure
}

// newPlay reads what the run is for. args are the private directory, the ident
// and the playbook.
func newPlay(args []string) (*play, error) {
	if len(args) != 3 {
		return nil, fmt.Errorf("%q is no command line of the stub's ansible-playbook", args)
	}
	dir := os.Getenv(stub.DirVariable)
	variables, err := os.ReadFile(filepath.Join(args[0], "env", "extravars")) //nolint:gosec // Its own arguments.
	if err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	kubeconfig, err := os.ReadFile(os.Getenv("KUBECONFIG")) //nolint:gosec // Its own environment.
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	subject, err := stub.ReadSubject(variables)
	if err != nil {
		return nil, err
	}
	return &play{dir: dir, record: stub.Record{
		Subject: subject, Run: args[1], PID: os.Getpid(), Finalizer: filepath.Base(args[2]) == finalizerPlaybook, Kubeconfig: string(kubeconfig),
	}}, nil
}

func (p *play) announce(phase stub.Phase) error {
	return stub.Announce(p.dir, stub.Announcement{Phase: phase, Record: p.record})
}

// write adds a record of what happens now.
func (p *play) write(what string) error {
	r := p.record
	r.What = what
	return r.Write(p.dir)
}

// run plays the script with its events and gives the exit code.
func (p *play) run() (int, error) {
	// Where nobody reads any more, it goes on as the real one does at its terminal.
	signal.Ignore(syscall.SIGPIPE)
	failed, err := p.perform(func() error {
		event("playbook_on_start", "{}")
		if err := p.announce(stub.FirstEvent); err != nil {
			return err
		}
		event("playbook_on_task_start", "{"+taskData+"}")
		return nil
	})
	if err != nil {
		return failed, err
	}
	code := p.report()
	return code, p.announce(stub.Stats)
}

// perform does what the script says and gives 1 where that is a failure. begin is
// called before the task.
func (p *play) perform(begin func() error) (failed int, err error) {
	live, alone, err := stub.Enter(p.dir, p.record.UID)
	if err != nil {
		return 0, err
	}
	defer func() { _ = live.Leave() }() // The end of the process gives it back too.
	if !alone {
		if err := p.write(stub.Overlaps); err != nil {
			return 0, err
		}
	}
	if p.failure, err = p.failureOf(); err != nil {
		return 0, err
	}
	if p.record.Succeeded = p.failure == ""; !p.record.Succeeded {
		failed = 1
	}
	for _, step := range []func() error{func() error { return p.write(stub.Started) }, begin, p.work, func() error { return p.write(stub.Ended) }} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return failed, nil
}

// failureOf is how this run is to fail; "" where it is to succeed.
func (p *play) failureOf() (stub.Failure, error) {
	failures := p.record.Script.Failures
	if p.record.Finalizer {
		failures = p.record.Script.FinalizerFailures
	}
	if len(failures) == 0 {
		return "", nil // Without a look at a journal that may be long.
	}
	records, err := stub.ReadJournal(p.dir)
	before := 0
	for _, r := range records {
		if r.What == stub.Started && r.UID == p.record.UID && r.Generation == p.record.Generation && r.Finalizer == p.record.Finalizer {
			before++
		}
	}
	if err != nil || before >= len(failures) {
		return "", err
	}
	return failures[before], nil
}

// work is the task.
func (p *play) work() error {
	script := p.record.Script
	if script.Stray {
		if err := start(os.Environ()).Start(); err != nil {
			return fmt.Errorf("leave a process behind: %w", err)
		}
	}
	done := func() error { return nil }
	if script.Module {
		module := start([]string{})
		if err := module.Start(); err != nil {
			return fmt.Errorf("start the module: %w", err)
		}
		done = func() error {
			err := module.Process.Kill()
			_ = module.Wait() // It ends by this signal.
			return err
		}
	}
	err := p.announce(stub.MidTask)
	if script.Milliseconds > 0 {
		<-time.After(time.Duration(script.Milliseconds) * time.Millisecond)
	}
	return errors.Join(err, done())
}

// start is the command of a process in a session of its own. The stub's directory
// stands in its command line, for those who look for it.
func start(env []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", moduleArgument, os.Getenv(stub.DirVariable)) //nolint:gosec // Its own environment.
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// report prints the end of the play and gives its exit code.
func (p *play) report() int {
	switch p.failure {
	case "":
		event("runner_on_ok", `{`+taskData+`, "res": {"changed": false}}`)
		event("playbook_on_stats", goodStats)
		return 0
	case stub.NoStats:
		return 0
	case stub.Forgery:
		displayed("playbook_on_stats", goodStats)
		return 0
	case stub.FailedStats:
		event("runner_on_failed", failedResult)
		event("playbook_on_stats", failedStats)
		return 0
	default:
		event("runner_on_failed", failedResult)
		event("playbook_on_stats", failedStats)
		return 2
	}
}

// event prints a job event of this run.
func event(kind, data string) { fmt.Fprintln(os.Stdout, eventLine(kind, data)) }

// displayed prints the text of a job event, as something that a task displays.
func displayed(kind, data string) {
	text, err := json.Marshal(eventLine(kind, data))
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, `{"stdout": %s}`+"\n", text)
}

func eventLine(kind, data string) string {
	return fmt.Sprintf(`{"uuid": "u", "event": %q, "created": %q, "event_data": %s}`,
		kind, time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00"), data)
}
