package warm

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

const (
	// firstPause and lastPause bound the time before a server that died is replaced.
	firstPause = time.Second
	lastPause  = time.Minute
	// servedPause bounds it after one that has served.
	servedPause = 8 * time.Second
	// steady is how long a server has to live for the next one to come soon.
	steady = time.Minute
	// stopTimeout is how long a server may take to end.
	stopTimeout = 5 * time.Second
	// lastWords is how long what a server has said is taken after its end.
	lastWords = time.Second
	// argumentsRoom is for the arguments of a program, which take the place of the
	// server's in the memory that /proc/PID/cmdline shows.
	argumentsRoom = 8 << 10
)

// server is one server process after the other, of one kind.
type server struct {
	kind kind
	set  *set
	pool *Pool
	env  []string
	log  logr.Logger

	closing chan struct{} // no further process is started
	gone    chan struct{} // none is left

	mu       sync.Mutex
	process  *process
	serving  bool
	leaving  bool      // the process ends when it has no fork left
	changed  time.Time // when the process was started, and began or ended to serve
	asked    bool      // whether it works
	answered bool      // what it was asked last
	served   bool      // the process has
	failed   bool      // the one before never did
}

// process is a server's process with the pipe that keeps it alive.
type process struct {
	cmd  *exec.Cmd
	life *os.File
}

func newServer(s *set, k kind, p *Pool) *server {
	return &server{
		kind: k, set: s, pool: p, log: p.log.WithValues("server", string(k)),
		closing: make(chan struct{}), gone: make(chan struct{}),
	}
}

// keep starts a process, and another one whenever that ends.
func (v *server) keep() {
	defer close(v.gone)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		started := time.Now()
		how, byItself := v.serve()
		if v.isClosing() {
			return
		}
		served, again := v.note()
		switch {
		case time.Since(started) > steady:
			pause = firstPause
		case served:
			pause = min(pause, servedPause)
		case byItself:
			pause = lastPause // What it lacks will hardly be there in a moment.
		}
		v.log.V(level(again)).Info("a server for warm runs ended; another one is started, runs are cold until then", "how", how, "pause", pause.String())
		select {
		case <-v.closing:
			return
		case <-time.After(pause):
		}
	}
}

// serve starts a process and returns when it has ended, with how, and whether it was
// not by a signal.
func (v *server) serve() (how string, byItself bool) {
	p, out, err := v.start()
	if err != nil {
		return err.Error(), false
	}
	ended := make(chan struct{})
	defer close(ended)
	go v.watch(ended)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		v.listen(out)
	}()
	_ = p.cmd.Wait() // How it ended is in the state.
	v.pool.processes.Release(p.cmd.Process.Pid)
	// A fork that hangs may hold the other end.
	_ = out.SetReadDeadline(time.Now().Add(lastWords))
	<-heard
	_ = out.Close() // Nothing is written to it.
	v.mu.Lock()
	v.process, v.serving, v.leaving = nil, false, false
	v.mu.Unlock()
	_ = p.life.Close() // Nobody reads it any more.
	return p.cmd.ProcessState.String(), p.cmd.ProcessState.Exited()
}

// start starts a process, and gives what it says.
func (v *server) start() (p *process, out *os.File, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.isClosing() {
		return nil, nil, errors.New(reasonClosed)
	}
	if err := v.set.layOut(v.kind); err != nil {
		return nil, nil, err
	}
	in, life, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	out, said, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, life.Close())
	}
	defer said.Close()
	cmd := v.command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, said, &complaints{v}
	if err := v.pool.processes.Keep(cmd); err != nil {
		return nil, nil, errors.Join(err, life.Close(), out.Close())
	}
	v.process, v.changed = &process{cmd: cmd, life: life}, time.Now()
	return v.process, out, nil
}

// command is what starts the server.
func (v *server) command() *exec.Cmd {
	s := v.set
	cmd := exec.Command(s.programs.Python, s.dir+"/server/serve.py", string(v.kind),
		"socket="+s.socket(v.kind),
		"standins="+s.dir+"/"+binName, "temporary="+s.temporary(v.kind),
		"room="+strings.Repeat(" ", argumentsRoom))
	cmd.Env, cmd.Dir = v.env, s.dir+"/"+homeName
	// A session of its own, so that neither a terminal nor a signal to the manager's
	// process group reaches it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = lastWords
	return cmd
}

func (v *server) ready() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.serving
}

func (v *server) hasFailed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed
}

func (v *server) isClosing() bool {
	select {
	case <-v.closing:
		return true
	default:
		return false
	}
}

// close lets no further process start.
func (v *server) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.isClosing() {
		close(v.closing)
	}
}

// retire lets the process end when it has no fork left.
func (v *server) retire() {
	v.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process != nil {
		_, _ = v.process.life.WriteString("r") // One that can't be told has ended.
	}
}

// end ends the process, with its forks, and returns when it is gone.
func (v *server) end() {
	v.close()
	v.mu.Lock()
	if v.process != nil {
		_ = v.process.life.Close() // This is the order to end.
	}
	v.mu.Unlock()
	select {
	case <-v.gone:
		return
	case <-time.After(stopTimeout):
	}
	v.kill()
	<-v.gone
}

func (v *server) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.process != nil {
		_ = v.process.cmd.Process.Kill() // It may just have ended.
	}
}
