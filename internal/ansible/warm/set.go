package warm

import (
	"embed"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

// kind is what a server's forks become.
type kind string

const (
	runner kind = "runner" // with the playbook
	module kind = "module"
)

func kinds() []kind { return []kind{runner, module} }

// nameOf is the name of a kind's stand-in.
func nameOf(k kind) string {
	return map[kind]string{runner: "ansible-runner", module: "python"}[k]
}

//go:embed server/serve.py server/ensign_warm/*.py
var source embed.FS

const (
	binName  = "bin"  // the stand-ins
	realName = "real" // links to what they stand in for, which is Python
	tempName = "tmp"  // the servers' own ANSIBLE_LOCAL_TEMP
	homeName = "home" // the servers' working directory
)

// set is the servers for one environment, in a directory of their own.
type set struct {
	dir      string
	programs Programs
	common   []string // the environment
	log      logr.Logger
	servers  []*server
	removing sync.Once

	laying sync.Mutex // held while the directory is laid out
}

// newSet lays out the directory and starts the servers.
func newSet(p *Pool, dir string, common []string) (*set, error) {
	s := &set{dir: dir, programs: p.programs, common: common, log: p.log}
	if err := s.fill(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for _, k := range kinds() {
		v := newServer(s, k, p)
		v.env = append([]string{"ANSIBLE_LOCAL_TEMP=" + s.temporary(k), roomVariable + "=" + strings.Repeat(".", room)}, common...)
		s.servers = append(s.servers, v)
		go v.keep()
	}
	return s, nil
}

// standin is the program that a run starts with.
func (s *set) standin() string { return filepath.Join(s.dir, binName, nameOf(runner)) }

// temporary is the ANSIBLE_LOCAL_TEMP of a server.
func (s *set) temporary(k kind) string { return filepath.Join(s.dir, tempName, nameOf(k)) }

func (s *set) socket(k kind) string { return filepath.Join(s.dir, nameOf(k)+".sock") }

// hindrance says why runs can't be warm; "" if they can.
func (s *set) hindrance() string {
	why := ""
	for _, v := range s.servers {
		if v.hasFailed() {
			return reasonFailed
		}
		if !v.ready() {
			why = reasonStarting
		}
	}
	return why
}

// retire lets the servers end when no run is left in them. The directory stays until
// then: the run that one of them has forked may still need a real program.
func (s *set) retire() {
	for _, v := range s.servers {
		v.retire()
	}
}

// end ends the servers and what they have forked, and returns when they are gone.
func (s *set) end() {
	for _, v := range s.servers {
		v.end()
	}
	s.remove()
}

func (s *set) remove() {
	for _, v := range s.servers {
		<-v.gone
	}
	s.removing.Do(func() { _ = os.RemoveAll(s.dir) }) // The next pool tries again.
}
