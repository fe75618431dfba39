package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

const (
	// strayGrace is the time between TERM and KILL for processes that are left after a run
	// ended by itself.
	strayGrace = time.Second
	// pipeTimeout is how long the manager waits for the end of a pipe after the run's last
	// process has ended. It gives up then: an unknown process has the other end open.
	pipeTimeout = 2 * time.Second
	// maxPipeBytes is the maximum capacity of a pipe, unless the machine's administrator
	// raised it. The pipes of runs have less.
	maxPipeBytes = 1 << 20
	// maxTailBytes is how much text without a job event is kept. It is less than the length
	// of an outcome's message, so that the end of the text, which says most, fits in.
	maxTailBytes = 3 << 10
)

// process is a started run and the pipes from it. The standard output carries only job
// events, the standard error carries text.
type process struct {
	tree   *proctree.Tree
	stdout *stream
	stderr *stream
	// displayedTail is the end of the text that Ansible displayed, printedTail the end of
	// the text that was written to the standard error. Their order is not known.
	displayedTail, printedTail tail
	// taskStarted is true once a task has started. It is written before eventsDone.
	taskStarted bool
	exited      chan int      // the exit code of the first process, as proctree.Leader.Wait returns it
	eventsDone  chan error    // the error of decode, after the end of stdout
	stderrDone  chan struct{} // closed after the end of stderr
	panicStack  []byte        // of a panic in handle; written before eventsDone
}

// newProcess returns the process that tree's first one is, and begins to wait for it.
func newProcess(tree *proctree.Tree, stdout, stderr *os.File) *process {
	p := &process{
		tree:       tree,
		stdout:     &stream{file: stdout},
		stderr:     &stream{file: stderr},
		exited:     make(chan int, 1),
		eventsDone: make(chan error, 1),
		stderrDone: make(chan struct{}),
	}
	go func() { p.exited <- tree.Wait() }()
	return p
}

// startReading reads the pipes in the background and calls handle with each job event. It
// closes each pipe at its end at once: checking that no process is left needs another file
// descriptor, and runs must not wait for descriptors that other waiting runs hold.
func (p *process) startReading(handle func(jobevent.Event)) {
	go func() {
		err := p.decode(handle)
		p.eventsDone <- errors.Join(err, p.stdout.file.Close())
	}()
	go func() {
		defer close(p.stderrDone)
		// An error ends the reading, as the end of the stream does.
		_, _ = io.Copy(&p.printedTail, p.stderr)
		_ = p.stderr.file.Close() // Nobody reads it any more.
	}()
}

// decode calls handle with the job events until the end of the stream. If handle panics,
// which would otherwise end the manager and all other runs, decode skips the remaining
// events. The run goes on to its end, and its outcome says what happened.
func (p *process) decode(handle func(jobevent.Event)) (err error) {
	defer func() {
		if what := recover(); what != nil {
			p.panicStack = debug.Stack()
			err = fmt.Errorf("a defect of the manager, met at a job event: %v; its log has more, please report it", what)
			_, _ = io.Copy(io.Discard, p.stdout) // The run must not wait for a reader.
		}
	}()
	return jobevent.Decode(p.stdout, jobevent.Handler{
		Event: func(e jobevent.Event) {
			p.taskStarted = p.taskStarted || e.Task != ""
			handle(e)
		},
		Output: func(line string) { p.displayedTail.write([]byte(line + "\n")) },
	})
}

// wait returns after the run's last process has ended and all its output has been read.
func (p *process) wait(ctx context.Context, grace time.Duration) jobevent.Ending {
	var code int
	select {
	case code = <-p.exited:
	case <-ctx.Done():
		code = p.terminate(grace)
	}
	// ctx may have ended before the run exited, and whoever ended ctx may have ended the run.
	cause := context.Cause(ctx)
	log := logr.FromContextOrDiscard(ctx)
	if strays := p.tree.End(strayGrace); strays.Left > 0 {
		log.Info("processes of a run may not be ended, or are held by the kernel although they were killed", "count", strays.Left)
	}
	p.tree.Close()
	err := p.drain()
	if p.panicStack != nil {
		log.Error(err, "a run's events could not be taken to their end", "stack", string(p.panicStack))
	}
	return ending(code, cause, err, p.output())
}

// output returns the end of all text without a job event. Text that Ansible displayed
// comes last, because it has the error that ended the run.
func (p *process) output() string {
	loose := p.printedTail.String()
	if p.taskStarted {
		loose = jobevent.SafeOutput(loose)
	}
	var all tail
	all.write([]byte(loose))
	if loose != "" && !strings.HasSuffix(loose, "\n") {
		all.write([]byte("\n"))
	}
	all.write([]byte(p.displayedTail.String()))
	return all.String()
}

// terminate ends the run's processes and returns the exit code of the first one, or -1 if
// it cannot be ended.
func (p *process) terminate(grace time.Duration) int {
	if p.tree.End(grace).Left == 0 {
		return <-p.exited
	}
	select {
	case code := <-p.exited:
		return code
	case <-time.After(strayGrace):
		return -1
	}
}

// drain waits until the rest of both pipes has been read.
func (p *process) drain() error {
	p.stdout.startDraining()
	p.stderr.startDraining()
	err := <-p.eventsDone
	<-p.stderrDone
	return err
}

// ending returns how a run ended. A run that was told to end and exited with 0 may or may
// not have completed, which its statistics tell: ansible-runner also exits with 0 if the
// signal ended ansible-playbook first.
func ending(code int, cause, readErr error, output string) jobevent.Ending {
	e := jobevent.Ending{ExitCode: code, Cause: jobevent.Exited, Output: output}
	switch {
	case readErr != nil:
		e.Cause, e.Err = jobevent.Crashed, readErr
	case cause == nil:
	case errors.Is(cause, errTimeout):
		e.Cause, e.Err = jobevent.TimedOut, cause
	case errors.Is(cause, errIdle):
		e.Cause, e.Err = jobevent.Idle, cause
	default:
		e.Cause, e.Err = jobevent.Interrupted, cause
	}
	return e
}

// generatedPlaybook matches the name of the playbook that ansible-runner makes for a role.
var generatedPlaybook = regexp.MustCompile(`/[0-9a-f]{32}\b`)

// withoutRandomNames replaces the random name of the generated playbook, which
// ansible-runner puts into the project directory, so that the same failure gives the same
// text.
func withoutRandomNames(output, project string) string {
	parts := strings.Split(output, project)
	for i := range parts[1:] {
		if at := generatedPlaybook.FindStringIndex(parts[i+1]); at != nil && at[0] == 0 {
			parts[i+1] = "/play" + parts[i+1][at[1]:]
		}
	}
	return strings.Join(parts, project)
}
