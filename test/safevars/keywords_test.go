package safevars

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/test/harness/cores"
)

func TestKeywordsAreThoseOfAnsible(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, core cores.Core) {
		const program = "import keyword; from ansible.vars.reserved import get_reserved_names; print(*get_reserved_names(), *keyword.kwlist)"
		out, err := exec.CommandContext(t.Context(), core.Env.Python, "-c", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if !schema.Reserved(name) {
				t.Errorf("%s is missing", name)
			}
		}
	})
	if schema.Reserved("item") || schema.Reserved("service_port") {
		t.Error("other names are not reserved")
	}
}
