package stub

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness/script"
)

const (
	// finalizerPlaybook is the name of the playbook that finalizers run.
	finalizerPlaybook = "finalize.yml"
	// canceled is what ansible-runner exits with when it is told to end.
	canceled = 254
	// moduleArgument makes the program a process that a play started, and maxModule
	// ends those of which nobody takes care.
	moduleArgument = "module"
	maxModule      = 2 * time.Minute
)

// play is the playbook of one run.
type play struct {
	*script.Run
	dir     string
	record  Record
	failure Failure
}

func newPlay(r *script.Run) (*play, error) {
	kubeconfig, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	whole, err := r.Resource()
	if err != nil {
		return nil, err
	}
	var cr struct {
		Metadata Subject `json:"metadata"`
		Spec     struct {
			Play Script `json:"play"`
		} `json:"spec"`
	}
	text, err := json.Marshal(whole)
	if err = errors.Join(err, json.Unmarshal(text, &cr)); err != nil {
		return nil, fmt.Errorf("read the custom resource: %w", err)
	}
	p := &play{Run: r, dir: os.Getenv(DirVariable), record: Record{
		Subject: cr.Metadata, Run: r.Ident, PID: os.Getpid(), Finalizer: filepath.Base(r.Playbook) == finalizerPlaybook, Kubeconfig: string(kubeconfig),
	}}
	p.record.Script = cr.Spec.Play
	spec, err := json.Marshal(whole["spec"])
	p.record.Spec = string(spec)
	return p, err
}

func (p *play) announce(phase plan.Point) error {
	p.record.What = string(phase)
	return announce(p.dir, p.record)
}

// write adds a record of what happens now.
func (p *play) write(what string) error {
	p.record.What = what
	return p.record.Write(p.dir)
}

// perform does what the script of a run's custom resource says, as the playbook with
// its events or as a task, and gives its exit code.
func perform(private, ident, playbook string, asTask bool) (int, error) {
	r, err := script.Read(private, ident, playbook)
	if err != nil {
		return 0, err
	}
	p, err := newPlay(r)
	if err != nil {
		return 0, err
	}
	alone, err := enter(p.dir, p.record.UID)
	if err == nil && !alone {
		err = p.write(Overlaps)
	}
	if err != nil {
		return 0, err
	}
	if p.failure, err = p.failureOf(); err != nil {
		return 0, err
	}
	p.record.Succeeded = p.failure == ""
	begin, end := p.begin, p.report
	if asTask {
		begin, end = func() error { return nil }, func() (int, error) { return min(len(p.failure), 1), nil }
	}
	for _, step := range []func() error{func() error { return p.write(Started) }, begin, p.work, func() error { return p.write(Ended) }} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	return end()
}

// enter takes the lock of a custom resource for the life of this process, and reports
// whether no other run has it. The kernel gives the lock back however the process ends.
func enter(dir, uid string) (alone bool, err error) {
	locks := filepath.Join(dir, "live")
	if err := os.MkdirAll(locks, 0o700); err != nil {
		return false, fmt.Errorf("keep the lock of %q: %w", uid, err)
	}
	// No *os.File, which would be closed when nobody refers to it.
	fd, err := unix.Open(filepath.Join(locks, uid), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// failureOf is how this run is to fail; "" where it is to succeed.
func (p *play) failureOf() (Failure, error) {
	failures := p.record.Script.Failures
	if p.record.Finalizer {
		failures = p.record.Script.FinalizerFailures
	}
	if len(failures) == 0 {
		return "", nil // Without a look at a journal that may be long.
	}
	records, err := ReadJournal(p.dir)
	before := 0
	for _, r := range records {
		if r.What == Started && r.UID == p.record.UID && r.Generation == p.record.Generation && r.Finalizer == p.record.Finalizer {
			before++
		}
	}
	if err != nil || before >= len(failures) {
		return "", err
	}
	return failures[before], nil
}

func (p *play) work() error {
	if p.record.Script.Stray {
		if err := startModule(os.Environ()).Start(); err != nil {
			return fmt.Errorf("leave a process behind: %w", err)
		}
	}
	if p.record.Script.Module {
		module := startModule([]string{})
		if err := module.Start(); err != nil {
			return fmt.Errorf("start the module: %w", err)
		}
		defer func() {
			_ = module.Process.Kill() // Others may have ended it.
			_ = module.Wait()         // It ends by this signal.
		}()
	}
	return p.announce(plan.MidTask)
}

// startModule is the command of a process in a session of its own. The stub's directory
// stands in its command line, for those who look for it.
func startModule(env []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", moduleArgument, os.Getenv(DirVariable)) //nolint:gosec // Itself.
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// task are the data of the events of the only task.
func task(result map[string]any) map[string]any {
	return map[string]any{"play": "stub", "task": "work", "task_action": "work", "host": "localhost", "res": result}
}

func (p *play) begin() error {
	p.Event("playbook_on_start", nil)
	err := p.announce(plan.FirstEvent)
	p.Event("playbook_on_task_start", task(nil))
	return err
}

// report prints the end of the play and gives its exit code.
func (p *play) report() (code int, err error) {
	switch p.failure {
	case "":
		p.Event("runner_on_ok", task(map[string]any{"changed": false}))
		p.Stats(1, 0)
	case NoStats:
	case Forgery: // What a task displays.
		forged, _ := json.Marshal(map[string]any{"uuid": "u", "event": "playbook_on_stats", "event_data": script.Counts(1, 0)})
		shown, _ := json.Marshal(map[string]string{"stdout": string(forged)})
		_, _ = p.Out.Write(append(shown, '\n'))
		_ = p.Out.Flush()
	case FailedTask:
		code = 2
		fallthrough
	case FailedStats:
		p.Event("runner_on_failed", task(map[string]any{"msg": "the script says so"}))
		p.Stats(1, 1)
	}
	return code, p.announce(plan.Stats)
}
