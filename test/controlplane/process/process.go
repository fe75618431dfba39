// Package process owns a group of child processes: their output goes to log
// files, an exit that nobody asked for is reported with the last lines of the
// log, and none of them outlives its owner, however that ends.
//
// It does not know what it runs, restart anything, or decide when a child is
// ready.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// quotedLines is how much of a log an error quotes.
const quotedLines = 8

// Group starts children and ends them together. A child gets a process group of
// its own, so that Ctrl-C in a terminal reaches the owner alone, which then ends
// the children in order. The kernel kills them when the owner dies.
type Group struct {
	failed chan error

	mu       sync.Mutex
	children []*Child
	stopping bool
}

// Command is what a child runs. Its output, both streams, is appended to Log.
type Command struct {
	Path  string
	Args  []string
	Env   []string // Nil: the owner's.
	Dir   string
	Input string // A file; empty: there is no input.
	Log   string
	// Credential is the user that the child runs as. Nil: the owner.
	Credential *syscall.Credential
}

// Child is one started process.
type Child struct {
	log     string
	logFrom int64 // Where this child's output begins.
	cmd     *exec.Cmd
	done    chan struct{}
}

// NewGroup returns a group without children.
func NewGroup() *Group { return &Group{failed: make(chan error, 1)} }

// Start starts a child. It fails when the group has been stopped.
func (g *Group) Start(c Command) (*Child, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return nil, fmt.Errorf("start %q: the group is stopped", c.Path)
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %q: %w", c.Path, err)
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("find the end of log %q: %w", c.Log, err)
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	if c.Input != "" {
		input, err := os.Open(c.Input)
		if err != nil {
			return nil, fmt.Errorf("open the input of %q: %w", c.Path, err)
		}
		defer func() { _ = input.Close() }()
		cmd.Stdin = input
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: c.Credential}
	child := &Child{log: c.Log, logFrom: info.Size(), cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go g.run(child, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	g.children = append(g.children, child)
	return child, nil
}

// run keeps the thread that starts the child until the child has ended: the kernel
// sends the parent-death signal when that thread ends, not the process, and the Go
// runtime ends threads as it likes. It reports an exit that Stop did not cause.
func (g *Group) run(c *Child, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = c.cmd.Wait()
	g.mu.Lock()
	stopping := g.stopping
	g.mu.Unlock()
	if !stopping {
		if err == nil {
			err = errors.New("nobody asked it to")
		}
		select {
		case g.failed <- fmt.Errorf("%s ended: %w; %s", filepath.Base(c.cmd.Path), err, c.Quote()):
		default: // One failure is enough to report: the others follow from it.
		}
	}
	close(c.done)
}

// Failed delivers the first exit that Stop did not cause. It is never closed.
func (g *Group) Failed() <-chan error { return g.failed }

// Stop ends the children, the last started first, and returns when none is left:
// each gets TERM, and KILL if it is still there after the grace. It may be
// called more than once.
func (g *Group) Stop(grace time.Duration) error {
	g.mu.Lock()
	g.stopping = true
	children := slices.Clone(g.children)
	g.mu.Unlock()
	var errs []error
	for _, child := range slices.Backward(children) {
		errs = append(errs, child.stop(grace))
	}
	return errors.Join(errs...)
}

// PID is the process id, which stays valid until Done is closed.
func (c *Child) PID() int { return c.cmd.Process.Pid }

// Done is closed when the process has ended and has been reaped.
func (c *Child) Done() <-chan struct{} { return c.done }

// ExitCode is the program's, or -1 when a signal ended it. It is of use once
// Done is closed.
func (c *Child) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// Quote returns the end of what the child printed, ready to stand in an error.
func (c *Child) Quote() string {
	text, _ := os.ReadFile(c.log) // Where there is none any more, nothing can be quoted.
	text = bytes.TrimSpace(text[min(c.logFrom, int64(len(text))):])
	if len(text) == 0 {
		return fmt.Sprintf("it printed nothing (log %s)", c.log)
	}
	lines := strings.Split(string(text), "\n")
	return fmt.Sprintf("the end of its log %s:\n  %s", c.log, strings.Join(lines[max(0, len(lines)-quotedLines):], "\n  "))
}

// stop ends the child's whole process group, and waits until the child is gone.
func (c *Child) stop(grace time.Duration) error {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case <-c.done:
			return nil
		default:
		}
		if err := syscall.Kill(-c.PID(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to %s: %w", sig, c.cmd.Path, err)
		}
		select {
		case <-c.done:
		case <-time.After(grace):
		}
	}
	<-c.done
	return nil
}
