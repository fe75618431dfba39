package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

const (
	// strayGrace is the time between TERM and KILL for what outlived a run that
	// ended by itself.
	strayGrace = time.Second
	// silence is how long a pipe may stay empty, once no process of the run is
	// left, before it is given up: something unknown holds its other end.
	silence = 2 * time.Second
	// maxTail is how much of the output that is no event is kept: less than an
	// outcome's message may hold, so that its end, which says the most, fits in.
	maxTail = 3 << 10
)

// process is a started ansible-runner with the pipes to it.
type process struct {
	tree   *tree
	nonce  int64
	stdout *stream
	stderr *stream
	tail   tail
	exited chan int   // the leader's exit code, -1 after a signal
	events chan error // the end of the job events
	noise  chan struct{}
}

// start starts the command in a session of its own, so that neither a terminal
// nor a signal to the manager's group reaches it.
func start(c command, nonce int64) (_ *process, err error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, toStdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stderr, toStderr, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdout.Close(), toStdout.Close())
	}
	cmd.Stdout, cmd.Stderr = toStdout, toStderr
	err = errors.Join(cmd.Start(), toStdout.Close(), toStderr.Close())
	if err != nil {
		return nil, errors.Join(err, stdout.Close(), stderr.Close())
	}
	p := &process{
		nonce:  nonce,
		stdout: &stream{file: stdout},
		stderr: &stream{file: stderr},
		exited: make(chan int, 1),
		events: make(chan error, 1),
		noise:  make(chan struct{}),
	}
	p.tree = newTree(cmd.Process.Pid, nonce)
	go func() {
		_ = cmd.Wait() // How it ended is in the exit code.
		p.exited <- cmd.ProcessState.ExitCode()
	}()
	return p, nil
}

// read takes up what the process prints; on gets its job events.
func (p *process) read(on func(jobevent.Event)) {
	go func() {
		p.events <- jobevent.Decode(p.stdout, p.nonce, jobevent.Handler{
			Event:  on,
			Output: func(line string) { p.tail.write([]byte(line + "\n")) },
		})
	}()
	go func() {
		defer close(p.noise)
		// An error ends the reading like the end of the stream.
		_, _ = io.Copy(&p.tail, p.stderr)
	}()
}

// wait returns when no process of the run is left and all it said has been read.
func (p *process) wait(ctx context.Context, grace time.Duration, known *leaders) jobevent.Ending {
	var cause error
	var code int
	select {
	case code = <-p.exited:
	case <-ctx.Done():
		cause = context.Cause(ctx)
		p.tree.end(grace)
		code = <-p.exited
	}
	p.tree.end(strayGrace)
	known.ended(p.tree.leader.pid)
	known.reap()
	err := p.drain()
	return ending(code, cause, err, p.tail.String())
}

// drain reads what is left in the pipes and closes them.
func (p *process) drain() error {
	p.stdout.hurry()
	p.stderr.hurry()
	err := <-p.events
	<-p.noise
	return errors.Join(err, p.stdout.file.Close(), p.stderr.file.Close())
}

// ending says how a run ended. One that exited with 0 ended by itself, even if
// it was being told to end: ansible-runner reports 254 otherwise.
func ending(code int, cause, readErr error, output string) jobevent.Ending {
	e := jobevent.Ending{ExitCode: code, Cause: jobevent.Exited, Output: output}
	switch {
	case readErr != nil:
		e.Cause, e.Err = jobevent.Crashed, readErr
	case cause == nil || code == 0:
	case errors.Is(cause, errTimeout):
		e.Cause, e.Err = jobevent.TimedOut, cause
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

// stream reads a pipe until its end or, after hurry, until it has been silent.
type stream struct {
	file    *os.File
	hurried atomic.Bool
}

func (s *stream) Read(b []byte) (int, error) {
	if s.hurried.Load() {
		s.limit()
	}
	n, err := s.file.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}

func (s *stream) hurry() {
	s.hurried.Store(true)
	s.limit()
}

func (s *stream) limit() {
	// Pipes made by this process always support deadlines.
	_ = s.file.SetReadDeadline(time.Now().Add(silence))
}

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.write(b)
	return len(b), nil
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) > maxTail {
		b = b[len(b)-maxTail:]
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxTail; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// String is the tail without a partial character at its beginning.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	for len(b) > 0 && b[0]&0xc0 == 0x80 {
		b = b[1:]
	}
	return string(b)
}
