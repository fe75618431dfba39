package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
)

const (
	// restartPause is the time before a guard that died is replaced.
	restartPause = time.Second
	// stopTimeout is how long a guard may take to end when no run is left.
	stopTimeout = 10 * time.Second
)

// ErrDeadline is why a permit ends.
var ErrDeadline = errors.New("the time for which runs were allowed is over")

// Guard is the manager's side: it keeps a guard alive and gives it orders. Its
// methods may be called at the same time.
type Guard struct {
	owner   *proctree.Owner
	log     logr.Logger
	closing chan struct{}
	closed  chan struct{}

	mu      sync.Mutex
	orders  orders
	process *process
	permit  context.Context //nolint:containedctx // It is handed out to runs, and is no caller's.
	revoke  context.CancelCauseFunc
}

// process is one guard.
type process struct {
	cmd    *exec.Cmd
	orders *os.File
}

// Start starts a guard for the runs of the owner, and another one whenever it
// dies, until Close. The program's main function must call Serve for Command.
func Start(owner *proctree.Owner, log logr.Logger) (*Guard, error) {
	g := &Guard{owner: owner, log: log, closing: make(chan struct{}), closed: make(chan struct{})}
	g.permit, g.revoke = context.WithCancelCause(context.Background())
	if err := g.start(); err != nil {
		return nil, fmt.Errorf("start the guard of runs: %w", err)
	}
	go g.keep()
	return g, nil
}

// start starts a guard and repeats the orders for it.
func (g *Guard) start() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.closing:
		return errors.New("no guard is needed any more")
	default:
	}
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	cmd := exec.Command(self(), Command, g.owner.Dir(), g.owner.Instance())
	cmd.Args[0] = os.Args[0]
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"GOMAXPROCS=1"}, in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := g.owner.Keep(cmd); err != nil {
		return errors.Join(err, out.Close())
	}
	g.process = &process{cmd: cmd, orders: out}
	g.process.tell(g.orders)
	return nil
}

// self is the program that runs, also when another one has taken its place on the
// disk.
func self() string {
	const link = "/proc/self/exe"
	if _, err := os.Readlink(link); err == nil {
		return link
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// keep replaces guards that die.
func (g *Guard) keep() {
	defer close(g.closed)
	for {
		how := g.wait()
		select {
		case <-g.closing:
			return
		default:
		}
		g.log.Info("the guard of runs died; another one is started", "how", how)
		if !g.restart() {
			return
		}
	}
}

// restart starts another guard, as soon as that succeeds. It is false when none is
// needed any more.
func (g *Guard) restart() bool {
	for {
		select {
		case <-g.closing:
			return false
		case <-time.After(restartPause):
		}
		err := g.start()
		if err == nil {
			return true
		}
		g.log.Error(err, "no guard of runs could be started; until one is, they may outlive the manager")
	}
}

// wait waits for the guard's end, and tells how it ended.
func (g *Guard) wait() string {
	g.mu.Lock()
	p := g.process
	g.mu.Unlock()
	_ = p.cmd.Wait() // How it ended is in the state.
	g.owner.Release(p.cmd.Process.Pid)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process = nil
	_ = p.orders.Close() // Nobody reads it any more.
	return p.cmd.ProcessState.String()
}

// Extend sets the deadline: at the instant term, as proctree.Now counts, all runs
// get TERM, and at kill KILL, whatever has become of the manager by then. It
// replaces the one before; 0 and 0 are none. Runs that are to have the new
// deadline must not be started before it returns.
func (g *Guard) Extend(term, kill time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lapse()
	g.orders = orders{term, kill}
	if g.permit.Err() != nil {
		g.permit, g.revoke = context.WithCancelCause(context.Background())
	}
	if g.process != nil {
		g.process.tell(g.orders)
	}
}

// Context returns the context of all runs. It ends, with ErrDeadline, when it is found
// that a deadline has passed: by then the guard may have ended them, so that what
// came out of them says nothing.
func (g *Guard) Context() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lapse()
	return g.permit
}

func (g *Guard) lapse() {
	if g.orders.term > 0 && proctree.Now() >= g.orders.term {
		g.revoke(ErrDeadline)
	}
}

// Close ends the guard, which ends what is left of runs.
func (g *Guard) Close() error {
	close(g.closing)
	g.mu.Lock()
	if g.process != nil {
		_ = g.process.orders.Close() // This is the order to end.
	}
	g.mu.Unlock()
	select {
	case <-g.closed:
		return nil
	case <-time.After(stopTimeout):
	}
	g.mu.Lock()
	if g.process != nil {
		_ = g.process.cmd.Process.Kill() // It may just have ended.
	}
	g.mu.Unlock()
	<-g.closed
	return fmt.Errorf("the guard of runs did not end within %s", stopTimeout)
}

// tell gives orders. A guard that does not take them up is none, and is killed so
// that another one is started.
func (p *process) tell(o orders) {
	var failure error
	conn, err := p.orders.SyscallConn()
	if err == nil {
		err = conn.Write(func(fd uintptr) bool {
			// The pipe does not block, and takes a line of this size whole or not at all.
			_, failure = unix.Write(int(fd), []byte(o.line()))
			return true
		})
	}
	if err := errors.Join(err, failure); err != nil {
		_ = p.cmd.Process.Kill() // It may have ended, which is as good.
	}
}
