package safevars

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/test/harness/cores"
)

func TestKeywordsAreThoseOfAnsible(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, core cores.Core) {
		const program = "from ansible.vars.reserved import get_reserved_names; print(*sorted(get_reserved_names()))"
		out, err := exec.CommandContext(t.Context(), core.Env.Python, "-c", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if !extravars.IsKeyword(name) {
				t.Errorf("%s is missing", name)
			}
		}
	})
	if extravars.IsKeyword("service_port") {
		t.Error("service_port is not reserved")
	}
}
