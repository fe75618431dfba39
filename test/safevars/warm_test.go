package safevars

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// stove has servers for the runs of one ansible-core.
type stove struct {
	c    core
	pool *warm.Pool
	home string
	runs int
}

func newStove(t *testing.T, c core) *stove {
	t.Helper()
	pool, err := warm.NewPool(filepath.Join(scratch.Short(t), "warm"), warm.Programs{
		Standin: filepath.Join(scratch.Repository(t), "bin", "warm-exec"), Python: c.env.Python,
	}, &proctree.Reaper{}, warm.Options{Logger: logr.Discard()})
	if err != nil {
		t.Fatalf("%v (run `make build`)", err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &stove{c: c, pool: pool, home: t.TempDir()}
	heat := setup{prepare: func(project string) {
		write(t, filepath.Join(project, "heat.yml"), []byte("- hosts: localhost\n  gather_facts: false\n"))
	}}
	s.start(t, heat, "-p", "heat.yml") // The first runs are cold.
	return s
}

// start runs content again and again until a run was warm, and gives that one.
func (s *stove) start(t *testing.T, content setup, args ...string) run {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		if r, warm := s.once(t, content.lay(t, s.c), args); warm {
			return r
		}
	}
	t.Fatal("no run is warm")
	return run{}
}

func (s *stove) once(t *testing.T, r run, args []string) (done run, warm bool) {
	t.Helper()
	s.runs++
	env := append(environ(s.c, s.home), "ANSIBLE_ROLES_PATH="+filepath.Join(r.dir, "project", "roles"), "ANSIBLE_NOCOLOR=true", "JOB_ID="+strconv.Itoa(s.runs))
	program := ""
	for deadline := time.Now().Add(limit); program == ""; <-time.After(20 * time.Millisecond) {
		if program, _ = s.pool.Launch(env); program == "" && time.Now().After(deadline) {
			t.Fatal("the servers are not ready")
		}
	}
	return r.by(t, program, env, args), s.pool.Ended(env)
}
