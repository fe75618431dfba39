package warm

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/files"
)

const (
	// roomVariable and argumentsRoom reserve the memory that /proc/PID/environ and
	// /proc/PID/cmdline show: forks put the command and environment of their run there.
	roomVariable  = "ENSIGN_WARM_ROOM"
	room          = 64 << 10
	argumentsRoom = 8 << 10
	// maxComplaint is how much a process may say to its standard error at a time.
	maxComplaint = 4 << 10
	// lastWords is how long output of a process is taken after its end: a fork that hangs may hold
	// the other end of a pipe.
	lastWords = time.Second
	// unsettled is the exit code of a process whose files changed while it imported them.
	unsettled = 75
)

// Messages of a Server to a process through the control socket.
const (
	orderFork   = 'f' // with the run's end of a socket pair; see fork.go
	orderAnswer = 'p' // to say that it works
	orderRetire = 'r' // to end when no fork is left
)

// process is one server process.
type process struct {
	server  *Server
	cmd     *exec.Cmd
	control *net.UnixConn // its end ends the process and its forks
	temp    string        // its ANSIBLE_LOCAL_TEMP

	ended    chan struct{} // closed after the end
	outdated chan string   // why, once

	mu       sync.Mutex
	changed  time.Time // when it was started, or got ready
	ready    bool
	served   bool // it was ready
	retired  bool
	asked    bool // whether it works
	answered bool
}

// start starts a process and makes it the current one.
func (s *Server) start() (*process, error) {
	templates := files.Templates(s.Content...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New(reasonClosed)
	}
	program, err := s.program()
	if err != nil {
		return nil, err
	}
	home, temp, err := s.layOut()
	if err != nil {
		return nil, err
	}
	list := filepath.Join(temp, "templates.json")
	if err := writeTemplates(list, templates); err != nil {
		s.Logger.Error(err, "could not list the templates to compile in advance for warm runs; each run compiles its templates, and takes longer")
	}
	p := &process{server: s, temp: temp, ended: make(chan struct{}), outdated: make(chan string, 1), changed: time.Now()}
	control, theirs, err := socketPair()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	output, outputWriter, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, control.Close(), theirs.Close(), os.RemoveAll(temp))
	}
	p.control = control
	p.cmd = exec.Command(s.python, filepath.Join(s.dir, "server", "serve.py"), program, list, "room="+strings.Repeat(" ", argumentsRoom))
	p.cmd.Env = append([]string{"ANSIBLE_LOCAL_TEMP=" + temp, roomVariable + "=" + strings.Repeat(".", room)}, s.env...)
	p.cmd.Dir, p.cmd.WaitDelay = home, lastWords
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, outputWriter, &complaints{s}
	// A new session, so that neither a terminal nor a signal to the manager's process
	// group reaches it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = s.reaper.Keep(p.cmd)
	err = errors.Join(err, theirs.Close(), outputWriter.Close())
	if err != nil {
		return nil, errors.Join(err, control.Close(), output.Close(), os.RemoveAll(temp))
	}
	s.current = p
	s.running.Go(func() { p.wait(output) })
	return p, nil
}

// wait follows the process to its end.
func (p *process) wait(voice *os.File) {
	var listening sync.WaitGroup
	listening.Go(p.listen)
	listening.Go(func() { p.countModules(voice) })
	go p.watch()
	_ = p.cmd.Wait() // How it ended is in the state.
	p.server.reaper.Release(p.cmd.Process.Pid)
	_ = voice.SetReadDeadline(time.Now().Add(lastWords))
	_ = p.control.SetReadDeadline(time.Now().Add(lastWords))
	listening.Wait()
	_ = errors.Join(voice.Close(), p.control.Close(), os.RemoveAll(p.temp)) // The next Server clears up.
	close(p.ended)
}

// listen follows the messages of the process through the control socket until it ends.
func (p *process) listen() {
	for lines := bufio.NewScanner(p.control); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		switch word {
		case "ready":
			p.ready, p.served, p.changed = true, true, time.Now()
		case "alive":
			p.answered = true
		case "off":
			p.server.off(strings.Cut(rest, " "))
		}
		p.mu.Unlock()
	}
}

// countModules follows the messages of forks about the modules that they run: "module REASON".
func (p *process) countModules(voice io.Reader) {
	for lines := bufio.NewScanner(voice); lines.Scan(); {
		if reason, found := strings.CutPrefix(lines.Text(), "module "); found {
			p.server.OnModule(reason)
		}
	}
}

// isReady reports whether runs can be forked from the process.
func (p *process) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *process) hasServed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}

// gaveUp reports whether the process ended by itself for a reason that lasts.
func (p *process) gaveUp() bool {
	state := p.cmd.ProcessState
	return state != nil && state.Exited() && state.ExitCode() != unsettled
}

// hasEnded reports whether the process ends within the time.
func (p *process) hasEnded(within time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(within):
		return false
	}
}

// replace has another process started in the place of this one.
func (p *process) replace(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready {
		p.ready = false
		p.outdated <- why
	}
}

// retire lets the process end when no fork is left. It returns at once.
func (p *process) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.retired = false, true
	p.order(orderRetire)
	p.server.running.Go(func() {
		select {
		case <-p.ended:
		case <-p.server.closing:
			p.end()
		}
	})
}

// end ends the process, with its forks, and returns when it is gone.
func (p *process) end() {
	_ = p.control.CloseWrite() // This is the order to end.
	select {
	case <-p.ended:
		return
	case <-time.After(stopTimeout):
	}
	p.kill()
	<-p.ended
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // It may just have ended.
}

// complaints log the lines that a process writes to its standard error.
type complaints struct{ *Server }

// Write never fails.
func (c *complaints) Write(b []byte) (int, error) {
	c.Logger.V(level(c.hasFailed())).Info("a server for warm runs wrote to its standard error", "output", strings.TrimSpace(string(b[:min(len(b), maxComplaint)])))
	return len(b), nil
}

// socketPair returns two connected sockets; theirs is for a process to be started or forked.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(ends[1]), "socket")
	file := os.NewFile(uintptr(ends[0]), "socket")
	conn, err := net.FileConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil //nolint:forcetypeassert // It was made as one.
}
