//go:build long

package safevars

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness/cores"
)

// ansible-core 2.18 is refused, with good reason: there a role that includes
// tasks by a name out of the object executes it, marked or not.
func TestAnsibleBefore219IsRefusedWithReason(t *testing.T) {
	env := cores.Find(t, ".dev/python/2.18")
	if _, err := env.Inspect(t.Context()); err == nil || !strings.Contains(err.Error(), "ansible-core 2.18.19 is older than 2.19") || errors.Is(err, pyenv.ErrUnsafe) {
		t.Errorf("got error %v, want one that refuses the version", err)
	}
	if code, said := startManager(t, env); code != 1 || !strings.Contains(said, "ansible-core 2.18.19 is older than 2.19") {
		t.Errorf("the manager ended with %d, want 1 and the reason:\n%s", code, said)
	}

	include := func(t *testing.T, c cores.Core) []string {
		object := func(markers string) map[string]any {
			return map[string]any{"spec": map[string]any{"state": texts(templates[:1], markers, "state")[0]}}
		}
		r := setup{object: object}.lay(t, c)
		newPlaybooks(t, c).run(t, &r, "state.yml") // The program of runs does not know 2.18.
		return r.executed(t)
	}
	if executed := include(t, cores.Core{Version: "2.18", Env: env}); !slices.Contains(executed, "state-0") {
		t.Error("ansible-core 2.18 did not execute a marked text; it may be refused no longer")
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		if executed := include(t, c); len(executed) > 0 {
			t.Errorf("the text was executed: %q", executed)
		}
	})
}
