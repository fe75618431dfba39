// Package stub stands in for a Python environment with Ansible, so that a manager
// starts in a moment and its runs do what a test says.
//
//	ENV/bin/{ansible-runner,ansible-playbook,python3}   one small program (program/)
//	DIR/journal.jsonl                                   what every run did
//	DIR/stage.sock                                      where runs ask to go on
//	DIR/live/UID                                        locked by the live run of a CR
//
// Build makes ENV. The manager finds it by VIRTUAL_ENV, and the runs find DIR by
// ENSIGN_STUB_DIR, which their environment has from the manager's.
//
// As with the real one, ansible-runner starts ansible-playbook in a session of
// its own, ends it on TERM, and leaves it alive when it is killed. The
// spec of its custom resource (Script) says what a play does. Each run writes a
// record when it starts and before it reports its stats; a second run beside
// another one of the same custom resource says so. Where DIR has a stage, a run
// reports every phase to it and waits until it may go on.
//
// With the real Ansible the same play runs as a task (Task): it keeps the same
// journal, and reports MidTask only.
package stub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// DirVariable is the environment variable that names the directory of a stub.
const DirVariable = "ENSIGN_STUB_DIR"

const taskName = "stub-task"

// Build compiles the program of the module in root and makes the environment env
// from it.
func Build(ctx context.Context, root, env string) error {
	bin := filepath.Join(env, "bin")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", filepath.Join(bin, "ansible-runner"), "./test/faults/stub/program")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the program of the stub: %w: %s", err, out)
	}
	var errs []error
	for _, name := range []string{"ansible-playbook", "python3", taskName} {
		errs = append(errs, os.Symlink("ansible-runner", filepath.Join(bin, name)))
	}
	return errors.Join(errs...)
}

// Task is the program of the environment that does what a play does, as a task of
// the real Ansible. Its argument is the name of the playbook.
func Task(env string) string { return filepath.Join(env, "bin", taskName) }

// Failure is how a run fails.
type Failure string

// The failures. Only the first one shows in the exit code.
const (
	// FailedTask is a failed task, as Ansible reports it.
	FailedTask Failure = "failed-task"
	// NoStats ends the play before its stats.
	NoStats Failure = "no-stats"
	// FailedStats reports a failed task in events and stats, and exits with 0.
	FailedStats Failure = "failed-stats"
	// Forgery prints good stats that are not this run's.
	Forgery Failure = "forgery"
)

// Script is what the play of a custom resource does, as its spec.play.
type Script struct {
	// Failures are how the first runs of a generation fail, one after the other, and
	// FinalizerFailures the same of the finalizer. Further runs succeed.
	Failures          []Failure `json:"failures,omitempty"`
	FinalizerFailures []Failure `json:"finalizerFailures,omitempty"`
	// Module lets the task run in a process of its own, in a session of its own,
	// without the run's environment. It ends with the task.
	Module bool `json:"module,omitempty"`
	// Stray leaves such a process behind, with the run's environment.
	Stray bool `json:"stray,omitempty"`
}

// Subject is the custom resource of a run, from its variables.
type Subject struct {
	UID        string `json:"uid"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Spec is its spec, as encoding/json has it.
	Spec   string `json:"spec"`
	Script Script `json:"-"`
}

// The values of Record.What.
const (
	Started  = "started"
	Ended    = "ended"
	Overlaps = "overlaps"
)

// Record is one line of the journal of runs.
type Record struct {
	Subject

	Time time.Time `json:"time"`
	// What is Started; Ended, when the play is through and its stats are about to
	// be reported; or Overlaps, when another run of the CR has not ended. A stage is
	// told the phase.
	What string `json:"what"`
	// Run is ansible-runner's ident.
	Run string `json:"run"`
	PID int    `json:"pid"`
	// Finalizer is true for the run of the finalizer's playbook.
	Finalizer bool `json:"finalizer"`
	// Succeeded is the play's end.
	Succeeded bool `json:"succeeded"`
	// Kubeconfig is what the run could reach the API with.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}
