package safevars

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// playbooks is a process that runs ansible-playbook often.
type playbooks struct {
	in  *json.Encoder
	out *json.Decoder
}

// newPlaybooks starts a process that lives as long as the test.
func newPlaybooks(t *testing.T, c cores.Core) playbooks {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Python, "testdata/playbooks.py")
	cmd.Env = environ(c, t.TempDir())
	in, out := pipes(t, cmd)
	return playbooks{in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// pipes starts a program that ends when the input does, with the test.
func pipes(t *testing.T, cmd *exec.Cmd) (io.Writer, io.Reader) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // The program reads to the end.
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("%v: %v\n%s", cmd.Args, err, stderr.String())
		}
	})
	return in, out
}

// run runs a playbook of what a setup has laid, and gives the exit code.
func (p playbooks) run(t *testing.T, r *run, playbook string) int {
	t.Helper()
	output := filepath.Join(r.dir, "output")
	err := p.in.Encode(map[string]any{"output": output, "argv": []string{
		"-i", filepath.Join(r.dir, "inventory"), "-e", "@" + filepath.Join(r.dir, "env", "extravars"),
		filepath.Join(r.dir, "project", playbook),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var code int
	if err := p.out.Decode(&code); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	r.output = string(text)
	return code
}
