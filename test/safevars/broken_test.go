package safevars

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// withTrailingComma makes an object that JSON refuses and YAML takes.
func withTrailingComma(text []byte) []byte {
	return append(bytes.TrimSuffix(bytes.TrimRight(text, "\n"), []byte("}")), []byte(",}\n")...)
}

// TestARunWithABrokenFileRefusesIt: no task runs, and nothing of the file is
// said, by ansible-playbook itself and by ansible-runner.
func TestARunWithABrokenFileRefusesIt(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		p := newPlaybooks(t, c)
		source := documentSource{rand: rand.New(rand.NewPCG(5, 6)), prefix: secret}
		for range brokenRuns {
			r := setup{}.lay(t, c)
			write(t, filepath.Join(r.dir, "env", "extravars"), broken(source.rand, encode(t, source.object(t), thing(true))))
			if code := p.run(t, &r, "control.yml"); code != 4 {
				t.Errorf("got exit code %d, want 4:\n%s", code, r.output)
			}
			r.saysNothing(t)
		}

		r := setup{object: oneText}.lay(t, c)
		write(t, filepath.Join(r.dir, "env", "extravars"), withTrailingComma(encode(t, oneText(r.markers), thing(true))))
		r = r.byRunner(t, c, "-p", "control.yml")
		if exit := (*exec.ExitError)(nil); !errors.As(r.err, &exit) || exit.ExitCode() != 4 {
			t.Errorf("ansible-runner ended with %v, want exit code 4:\n%s", r.err, r.tail())
		}
		r.saysNothing(t)
		if executed := r.executed(t); len(executed) > 0 {
			t.Errorf("the text was executed: %q", executed)
		}
	})
}

// Without the two bytes in front, the same file is read, and what it marks is
// executed.
func TestARunWithABrokenFileThatIsNotProtected(t *testing.T) {
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		r := setup{}.lay(t, c)
		text := withTrailingComma(encode(t, oneText(r.markers), thing(true)))
		write(t, filepath.Join(r.dir, "env", "extravars"), bytes.TrimLeft(text, "\t\n"))
		r.rewritePlaybook(t, `[{"hosts": "localhost", "gather_facts": false, "tasks": [{"debug": {"msg": "{{ p0 }}"}}]}]`)
		code := newPlaybooks(t, c).run(t, &r, "names.yml")
		if executed := r.executed(t); len(executed) != 1 {
			t.Errorf("got exit code %d and %q, want the text executed:\n%s", code, executed, r.output)
		}
	})
}

// oneText is an object with one text that may be executed.
func oneText(markers string) map[string]any {
	return map[string]any{"spec": named("p", texts([]string{templates[0] + secret}, markers, "broken"))}
}

func (r run) saysNothing(t *testing.T) {
	t.Helper()
	for _, text := range []string{secret, "TASK [", "PLAY ["} {
		if strings.Contains(r.output, text) {
			t.Errorf("got %q in what the run said:\n%s", text, r.tail())
		}
	}
}
