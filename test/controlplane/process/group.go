package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Group starts children and ends them together. A child gets a process group of
// its own, so that Ctrl-C in a terminal reaches the owner alone, which then ends
// the children in order. On Linux the kernel kills them when the owner dies.
type Group struct {
	starts chan func()
	failed chan error

	mu       sync.Mutex
	children []*Child
	stopping bool
}

// Command is what a child runs. Its output, both streams, is appended to Log.
type Command struct {
	Path string
	Args []string
	Env  []string // Nil: the owner's.
	Dir  string
	Log  string
}

// NewGroup returns a group without children. Stop must be called to free it.
func NewGroup() *Group {
	g := &Group{starts: make(chan func()), failed: make(chan error, 1)}
	go g.forkFromOneThread()
	return g
}

// forkFromOneThread runs every start on one thread, which lives as long as the
// group. The kernel sends the parent-death signal when the thread that forked
// ends, not the process, and the Go runtime ends threads as it likes.
func (g *Group) forkFromOneThread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for start := range g.starts {
		start()
	}
}

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
	began, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("find the end of log %q: %w", c.Log, err)
	}

	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	cmd.SysProcAttr = attributes()
	started := make(chan error)
	g.starts <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}

	child := &Child{name: filepath.Base(c.Path), log: c.Log, logFrom: began, cmd: cmd, done: make(chan struct{})}
	g.children = append(g.children, child)
	go g.watch(child)
	return child, nil
}

// watch reaps the child and reports its exit unless Stop caused it.
func (g *Group) watch(c *Child) {
	err := c.cmd.Wait()
	g.mu.Lock()
	stopping := g.stopping
	g.mu.Unlock()
	if !stopping {
		select {
		case g.failed <- c.exitError(err):
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
	again := g.stopping
	g.stopping = true
	children := slices.Clone(g.children)
	g.mu.Unlock()
	if again {
		for _, child := range children {
			<-child.done
		}
		return nil
	}
	var errs []error
	for _, child := range slices.Backward(children) {
		errs = append(errs, child.stop(grace))
	}
	close(g.starts)
	return errors.Join(errs...)
}
