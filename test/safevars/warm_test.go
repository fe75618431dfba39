package safevars

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
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
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s.runs++
	roles := filepath.Join(r.dir, "project", "roles")
	env := slices.Concat(environ(s.c, s.home), []string{"ANSIBLE_ROLES_PATH=" + roles, "ANSIBLE_NOCOLOR=true", "JOB_ID=" + strconv.Itoa(s.runs)})
	program := ""
	for program == "" {
		if program, _ = s.pool.Launch(env); program == "" {
			<-time.After(20 * time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Fatal("the servers are not ready")
		}
	}
	cmd := exec.CommandContext(ctx, program, append([]string{theProgram(t), "run", r.dir, "--json"}, args...)...)
	if slices.Contains(args, "--role") {
		cmd.Args = append(cmd.Args, "--roles-path", roles, "--hosts", "localhost", "--role-skip-facts")
	}
	cmd.Env = env
	output, err := cmd.CombinedOutput()
	r.output, r.err = string(output), err
	return r, s.pool.Ended(env)
}

// What holds for new interpreters holds for forks: the marks of untrusted texts are
// made of classes and switches that a server has had since before the run.
func TestNoTextOfAnObjectRunsInAFork(t *testing.T) {
	payloads := sample(append(slices.Clone(templates), other...), everyPayload)
	hostile := setup{object: func(markers string) map[string]any { return hostileObject(payloads, markers) }}
	control := setup{plain: true, object: func(markers string) map[string]any { return hostileObject(templates[:1], markers) }}
	onEachCore(t, func(t *testing.T, c core) {
		s := newStove(t, c)
		for _, test := range []struct {
			args  []string
			last  string
			plain int // how many places let a text run that has no mark
		}{
			{[]string{"--role", "hostile"}, "done", 6},
			{[]string{"-p", "play.yml"}, "played", 1},
		} {
			r := s.start(t, hostile, test.args...)
			r.finished(t, test.last)
			if executed := r.executed(t); len(executed) > 0 {
				t.Errorf("payloads were executed: %q", executed)
			}
			// Nothing of the run before has an effect: texts without marks are templates.
			r = s.start(t, control, test.args...)
			if executed := r.executed(t); len(executed) < test.plain {
				t.Errorf("without marks %q were executed (%v):\n%s", executed, r.err, r.tail())
			}
		}
	})
}
