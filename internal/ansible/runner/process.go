package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

const (
	// strayGrace is the time between TERM and KILL for what outlived a run that
	// ended by itself.
	strayGrace = time.Second
	// silence is how long a pipe is waited for, once no process of the run is left,
	// before it is given up: something unknown holds its other end.
	silence = 2 * time.Second
	// maxPipe is what a pipe holds at most, unless the machine's owner allows more;
	// those made here hold less.
	maxPipe = 1 << 20
	// maxTail is how much of the output that is no event is kept: less than an
	// outcome's message may hold, so that its end, which says the most, fits in.
	maxTail = 3 << 10
)

// process is a started run with the pipes to it: its standard output has job events
// and nothing else, its standard error has text.
type process struct {
	tree   *proctree.Tree
	stdout *stream
	stderr *stream
	// displayed and loose are the ends of what Ansible has displayed and of what was
	// written to a descriptor. Which of the two came first is not known.
	displayed, loose tail
	// tasks is true once a task has started; set before events is.
	tasks  bool
	exited chan int   // the leader's exit code, as proctree.Tree.Wait has it
	events chan error // the end of the job events
	noise  chan struct{}
	stack  []byte // of a panic while events were taken; set before events is
}

// start starts the command as the first process of a run that the owner owns.
func start(owner *proctree.Owner, c command, nonce int64) (*process, error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	stdout, toStdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, toStderr, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdout.Close(), toStdout.Close())
	}
	cmd.Stdout, cmd.Stderr = toStdout, toStderr
	tree, err := owner.Start(cmd, nonce)
	_ = errors.Join(toStdout.Close(), toStderr.Close()) // The run has its own.
	if err != nil {
		_ = errors.Join(stdout.Close(), stderr.Close())
		return nil, fmt.Errorf("start ansible-runner: %w; is it installed there? `make python` makes the environment, or `pip install ansible-core ansible-runner`", err)
	}
	p := &process{
		tree:   tree,
		stdout: &stream{file: stdout},
		stderr: &stream{file: stderr},
		exited: make(chan int, 1),
		events: make(chan error, 1),
		noise:  make(chan struct{}),
	}
	go func() { p.exited <- tree.Wait() }()
	return p, nil
}

// read takes up what the process prints; on gets its job events. The pipes are
// closed as soon as they have ended: to see that nothing is left of a run takes
// another file, and runs that all wait for one must not hold what they need.
func (p *process) read(on func(jobevent.Event)) {
	go func() {
		err := p.decode(on)
		p.events <- errors.Join(err, p.stdout.file.Close())
	}()
	go func() {
		defer close(p.noise)
		// An error ends the reading like the end of the stream.
		_, _ = io.Copy(&p.loose, p.stderr)
		_ = p.stderr.file.Close() // Nobody reads it any more.
	}()
}

// decode hands over the job events until the end of the stream. A panic on the
// way, which would end the manager and all other runs, ends the taking of events:
// the run goes on to its end and its outcome says what happened.
func (p *process) decode(on func(jobevent.Event)) (err error) {
	defer func() {
		if what := recover(); what != nil {
			p.stack = debug.Stack()
			err = fmt.Errorf("a defect of the manager, met at a job event: %v; its log has more, please report it", what)
			_, _ = io.Copy(io.Discard, p.stdout) // The run must not wait for a reader.
		}
	}()
	return jobevent.Decode(p.stdout, jobevent.Handler{
		Event: func(e jobevent.Event) {
			p.tasks = p.tasks || e.Task != ""
			on(e)
		},
		Output: func(line string) { p.displayed.write([]byte(line + "\n")) },
	})
}

// wait returns when no process of the run is left and all it said has been read.
func (p *process) wait(ctx context.Context, grace time.Duration) jobevent.Ending {
	var code int
	select {
	case code = <-p.exited:
	case <-ctx.Done():
		code = p.end(grace)
	}
	// A run that has exited may have been ended by who ended ctx.
	cause := context.Cause(ctx)
	log := logr.FromContextOrDiscard(ctx)
	if strays := p.tree.End(strayGrace); strays.Left > 0 {
		log.Info("processes of a run may not be ended, or are held by the kernel although they were killed", "count", strays.Left)
	}
	p.tree.Close()
	err := p.drain()
	if p.stack != nil {
		log.Error(err, "a run's events could not be taken to their end", "stack", string(p.stack))
	}
	return ending(code, cause, err, p.printed())
}

// printed is the end of all that was no event. Last is what Ansible says of its end.
func (p *process) printed() string {
	loose := p.loose.String()
	if p.tasks {
		loose = jobevent.SafeOutput(loose)
	}
	var all tail
	all.write([]byte(loose))
	if loose != "" && !strings.HasSuffix(loose, "\n") {
		all.write([]byte("\n"))
	}
	all.write([]byte(p.displayed.String()))
	return all.String()
}

// end ends the run's processes and gives the exit code of the first one, which is
// not waited for if it can't be ended.
func (p *process) end(grace time.Duration) int {
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

// drain waits until what is left in the pipes has been read.
func (p *process) drain() error {
	p.stdout.hurry()
	p.stderr.hurry()
	err := <-p.events
	<-p.noise
	return err
}

// ending says how a run ended. One that was told to end, and exited with 0, may have
// been through, which its stats tell: ansible-runner exits with 0 also where the same
// signal has ended ansible-playbook first.
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

// generated is the name of the playbook that ansible-runner makes for a role.
var generated = regexp.MustCompile(`/[0-9a-f]{32}\b`)

// withoutRandomNames makes the output of the same failure the same text.
// Ansible names the playbook that is at fault, which ansible-runner gave a
// random name in the project directory.
func withoutRandomNames(output, project string) string {
	parts := strings.Split(output, project)
	for i := range parts[1:] {
		if at := generated.FindStringIndex(parts[i+1]); at != nil && at[0] == 0 {
			parts[i+1] = "/play" + parts[i+1][at[1]:]
		}
	}
	return strings.Join(parts, project)
}
