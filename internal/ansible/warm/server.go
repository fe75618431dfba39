package warm

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/process/proctree"
)

// Reasons why a run is cold that the server process does not give.
const (
	reasonStarting = "starting"
	reasonFailed   = "failed"
	reasonClosed   = "closed"
	reasonSilent   = "no answer"
	reasonEnded    = "server ended"
)

const (
	// firstPause and lastPause bound the time before another process is started.
	firstPause = time.Second
	lastPause  = time.Minute
	// servedPause bounds it after a process that has served.
	servedPause = 8 * time.Second
	// steady is how long a process has to live for the next one to come soon.
	steady = time.Minute
	// lookPause is the time between two questions to a process, and how long it may take to
	// answer: a machine may be very busy.
	lookPause = 10 * time.Second
	// startTimeout is how long a process may take to import the modules that it serves.
	startTimeout = 5 * time.Minute
	// stopTimeout is how long a process may take to end.
	stopTimeout = 5 * time.Second
)

// Options are the optional settings of a Server.
type Options struct {
	Logger logr.Logger
	// Content is files and directories with templates that runs have, which a process compiles ahead.
	Content []string
	// OnCold is called with the reason for each run that Start could not start. It must not block.
	OnCold func(reason string)
	// OnModule is called for each module of a run: with "" if it was a fork, and with the
	// reason if it was started in a new interpreter. It must not block.
	OnModule func(reason string)
	// OnOff is called at the start of a process for each mechanism that is off, because the
	// installed packages lack something that it needs. It must not block.
	OnOff func(mechanism string)
	// LookPause replaces lookPause.
	LookPause time.Duration
}

// Server is one server process after the other. Its methods may be called concurrently.
type Server struct {
	dir, python string
	program     func() (path string, err error)
	reaper      *proctree.Reaper
	Options

	mu      sync.Mutex
	env     []string // of the first run, without the variables that differ from run to run
	current *process // nil while none is started
	failed  bool     // the process before never served
	closing chan struct{}
	closed  bool
	running sync.WaitGroup // processes, and the goroutines that keep them
}

// New returns a Server that keeps its files in dir, of which nothing that was there is left. No
// other Server may use it. python is the absolute path of the interpreter of an environment with
// Ansible, program provides ensign_run.py. The first process is started by Prepare.
func New(dir, python string, program func() (path string, err error), reaper *proctree.Reaper, o Options) (*Server, error) {
	o.LookPause = cmp.Or(o.LookPause, lookPause)
	if o.OnCold == nil {
		o.OnCold = func(string) {}
	}
	if o.OnModule == nil {
		o.OnModule = func(string) {}
	}
	if o.OnOff == nil {
		o.OnOff = func(string) {}
	}
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	return &Server{dir: dir, python: python, program: program, reaper: reaper, Options: o, closing: make(chan struct{})}, nil
}

// Prepare starts the server for runs with this environment, "NAME=value". Only the first call
// does something: the environments of a manager's runs differ in nothing that the server imports by.
func (s *Server) Prepare(env []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.env != nil || s.closed {
		return
	}
	s.env = shared(env)
	s.running.Go(s.keep)
}

// serving returns the process that runs are forked from, or why there is none.
func (s *Server) serving() (p *process, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, reasonClosed
	case s.current != nil && s.current.isReady():
		return s.current, ""
	case s.failed:
		return nil, reasonFailed
	}
	return nil, reasonStarting
}

// keep starts a process, and another one whenever that has ended or is outdated. An outdated one
// goes on beside it until the last run that it has forked has ended.
func (s *Server) keep() {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		started := time.Now()
		p, how := s.serve()
		served := p != nil && p.hasServed()
		repeated := s.note(served)
		switch {
		case time.Since(started) > steady:
			pause = firstPause
		case served:
			pause = min(pause, servedPause)
		case p != nil && p.gaveUp():
			pause = lastPause // A missing package will hardly be there in a moment.
		}
		if s.isClosing() {
			return
		}
		s.Logger.V(level(repeated)).Info("a server for warm runs ended or is outdated; starting another one after the pause. Runs are cold until it is ready", "how", how, "pause", pause.String())
		select {
		case <-s.closing:
			return
		case <-time.After(pause):
		}
	}
}

// serve starts a process and follows it. p is nil if it could not be started.
func (s *Server) serve() (p *process, how string) {
	p, err := s.start()
	if err != nil {
		return nil, err.Error()
	}
	return p, s.follow(p)
}

// follow returns when the process has ended or is outdated, with which of it.
func (s *Server) follow(p *process) string {
	select {
	case <-p.ended:
		return p.cmd.ProcessState.String()
	case why := <-p.outdated:
		if why == reasonEnded && p.hasEnded(lastWords) {
			return p.cmd.ProcessState.String()
		}
		p.retire()
		return why
	case <-s.closing:
		p.end()
		return reasonClosed
	}
}

// note takes note of the end of the current process, and reports whether it is the second one in
// a row that never served.
func (s *Server) note(served bool) (repeated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repeated = s.failed && !served
	s.current, s.failed = nil, !served
	return repeated
}

// off reports a mechanism that is off, and why.
func (s *Server) off(mechanism, cause string, _ bool) {
	s.OnOff(mechanism)
	s.Logger.Info("WARNING: a mechanism of warm runs is off, because something that it needs is not installed; runs take longer", "mechanism", mechanism, "cause", cause)
}

// level is the verbosity of a message that may be repeated many times.
func level(repeated bool) int {
	if repeated {
		return 1
	}
	return 0
}

func (s *Server) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *Server) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// Close ends all processes and their forks, and returns when they are gone.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.running.Wait()
	return os.RemoveAll(s.dir)
}
