package warm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// maxSocket is the longest path of a socket that the kernel takes.
const maxSocket = 107

// Reasons why a run is cold that no server gives.
const (
	reasonStarting = "starting"
	reasonFailed   = "failed"
	reasonClosed   = "closed"
)

// Processes starts processes that belong to the manager; proctree.Reaper does.
type Processes interface {
	Keep(cmd *exec.Cmd) error
	Release(pid int)
}

// Programs are absolute paths: of the stand-in, and of the interpreter of a Python
// environment with Ansible, which executes runs and modules.
type Programs struct{ Standin, Python string }

// Pool has servers for the environments of runs. Its methods may be called at the
// same time.
type Pool struct {
	dir       string
	programs  Programs
	processes Processes
	limit     int
	log       logr.Logger
	refused   func(program, reason string)
	onFork    func(program string)

	lookPause time.Duration // between two looks at a server

	mu     sync.Mutex
	sets   map[string]*set
	old    map[*set]bool   // which end when no run is left in them
	recent []string        // keys, the one used last at the end
	count  int             // of all sets ever made
	live   map[string]bool // runs that were launched, by their number: whether they were forked
	closed bool
}

// Options are what a pool may do without.
type Options struct {
	// Limit is for how many environments there are servers at most; 4 when it is 0.
	Limit  int
	Logger logr.Logger
	// Refused is told of each program that was started cold in a warm run, and why; see
	// WithoutDetail. It must not block.
	Refused func(program, reason string)
	// Forked is told of each program that was forked. It must not block.
	Forked func(program string)
	// LookPause is the time between two looks at a server, and how long it may take to
	// answer: 10 s when it is 0, because a machine may be very busy.
	LookPause time.Duration
}

// NewPool makes a pool that keeps its files in dir, of which nothing that was there
// is left. No other pool may use it.
func NewPool(dir string, programs Programs, processes Processes, o Options) (*Pool, error) {
	p := &Pool{dir: dir, programs: programs, processes: processes, limit: o.Limit, log: o.Logger, refused: o.Refused, onFork: o.Forked, lookPause: cmp.Or(o.LookPause, lookPause), sets: map[string]*set{}, old: map[*set]bool{}, live: map[string]bool{}}
	if p.limit == 0 {
		p.limit = 4
	}
	if p.refused == nil {
		p.refused = func(string, string) {}
	}
	if p.onFork == nil {
		p.onFork = func(string) {}
	}
	if longest := filepath.Join(dir, "1000000", nameOf(runner)+".sock"); len(longest) > maxSocket {
		return nil, fmt.Errorf("the path %q is too long for a socket; choose a shorter one by --run-dir", longest)
	}
	if info, err := os.Stat(programs.Standin); err != nil || info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("%q is missing or no program; it belongs beside the manager: %w", programs.Standin, errors.Join(err))
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear what an earlier manager left: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return p, nil
}

// Prepare starts servers for runs with this environment, if there are none.
func (p *Pool) Prepare(env []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.use(env)
}

// Launch returns the program to start in Python's place for a run with this environment,
// or why it has to be Python: servers for it are being started, then, or could not be.
// A run that is started with the program must be Ended.
func (p *Pool) Launch(env []string) (program, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, why := p.use(env)
	if why != "" {
		return "", why
	}
	if why := s.hindrance(); why != "" {
		p.log.V(1).Info("a run is cold, because of its servers", "reason", why)
		return "", why
	}
	if !s.whole() {
		if err := s.fill(); err != nil {
			p.log.Error(err, "a run is cold, because the directory of its servers is not whole")
			return "", reasonFailed
		}
	}
	p.live[identity(env)] = false
	return s.standin(), ""
}

// Ended takes note of the end of a run with this environment, and reports whether it was
// forked.
func (p *Pool) Ended(env []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	number := identity(env)
	forked := p.live[number]
	delete(p.live, number)
	return forked
}

// forked takes note that the run of this number was forked.
func (p *Pool) forked(number string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, live := p.live[number]; live {
		p.live[number] = true
	}
}

// use returns the servers for an environment, which it starts if there are none, or why
// there are none. It is called with the lock held.
func (p *Pool) use(env []string) (s *set, why string) {
	if p.closed {
		return nil, reasonClosed
	}
	common := shared(env)
	k := key(common)
	if s := p.sets[k]; s != nil {
		p.touch(k)
		return s, ""
	}
	p.tellOf(common)
	for len(p.recent) >= p.limit {
		p.drop(p.recent[0])
	}
	p.count++
	s, err := newSet(p, filepath.Join(p.dir, strconv.Itoa(p.count)), common)
	if err != nil {
		p.log.Error(err, "no servers for warm runs could be started")
		return nil, reasonFailed
	}
	p.sets[k] = s
	p.touch(k)
	return s, ""
}

// tellOf logs that servers for an environment are started, and what in it they are
// needed for.
func (p *Pool) tellOf(common []string) {
	if len(p.recent) == 0 {
		p.log.V(1).Info("starting servers for warm runs")
		return
	}
	last := p.recent[len(p.recent)-1]
	p.log.V(1).Info("starting further servers for warm runs, because an environment differs", "variables", differing(p.sets[last].common, common))
}

func (p *Pool) touch(k string) {
	p.recent = slices.DeleteFunc(p.recent, func(other string) bool { return other == k })
	p.recent = append(p.recent, k)
}

// drop ends a set as soon as no run is left in it: its servers live that long.
func (p *Pool) drop(k string) {
	s := p.sets[k]
	delete(p.sets, k)
	p.recent = p.recent[1:]
	p.old[s] = true
	s.retire()
	go func() {
		s.remove()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.old, s)
	}()
}

// Close ends all servers, and whatever is left of what they forked. It returns when
// the servers are gone.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	sets := slices.Collect(maps.Keys(p.old))
	sets = slices.AppendSeq(sets, maps.Values(p.sets))
	p.sets, p.recent = nil, nil
	p.mu.Unlock()
	for _, s := range sets {
		s.end()
	}
	return os.RemoveAll(p.dir)
}
