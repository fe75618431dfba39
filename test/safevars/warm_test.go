package safevars

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// stove has a server for the runs of one ansible-core.
type stove struct {
	c             cores.Core
	server        *warm.Server
	program, home string
	runs          int
}

func newStove(t *testing.T, c cores.Core) *stove {
	t.Helper()
	program := theProgram(t)
	server, err := warm.New(filepath.Join(scratch.Short(t), "warm"), c.Python, func() (string, error) { return program, nil }, &proctree.Reaper{}, warm.Options{
		Logger: logr.Discard(), Content: []string{"testdata"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stove{c: c, server: server, program: program, home: t.TempDir()}
	return s
}

func (s *stove) start(t *testing.T, content setup, args ...string) run {
	t.Helper()
	s.runs++
	r := content.lay(t, s.c)
	cmd := r.command(t, append(environ(s.c, s.home), "ANSIBLE_NOCOLOR=true", "JOB_ID="+strconv.Itoa(s.runs)), args)
	cmd.Args[1], cmd.Dir = s.program, r.dir
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	cmd.Stdout, cmd.Stderr = output, output
	s.server.Prepare(cmd.Env)
	leader, why := s.server.Start(cmd)
	for deadline := time.Now().Add(limit); why == "starting" && time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		leader, why = s.server.Start(cmd)
	}
	if why != "" {
		t.Fatalf("a run is cold: %s", why)
	}
	if code := leader.Wait(); code != 0 {
		r.err = fmt.Errorf("exit code %d", code)
	}
	printed, err := os.ReadFile(output.Name())
	if err != nil {
		t.Fatal(err)
	}
	r.output = string(printed)
	return r
}
