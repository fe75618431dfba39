package warm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/cores"
)

// Another ansible-core may move what one mechanism needs. Then this one is off, and a play is the
// same, and warm with what the others do.
func TestAMechanismThatIsOffTurnsOffNoOther(t *testing.T) {
	for mechanism, other := range map[string]struct {
		always              bool
		file, text, instead string
	}{
		"run":         {file: "cli/playbook.py", text: "def main(args=None):", instead: "def main():\n    args = None"},
		"modules":     {always: true, file: "plugins/action/__init__.py", text: "    def _execute_module(\n", instead: "    def _execute_module(  #\n"},
		"directories": {file: "plugins/action/__init__.py", text: "    def _make_tmp_path(self,", instead: "    def _make_tmp_path( self,"},
		"parsed": {
			file:    "utils/collection_loader/_collection_finder.py",
			text:    "_meta_yml_to_dict(raw_routing, (collection_name, 'runtime.yml'))",
			instead: "_meta_yml_to_dict(yaml_string_data=raw_routing, content_id=(collection_name, 'runtime.yml'))",
		},
		"templates": {
			file:    "_internal/_templating/_jinja_bits.py",
			text:    "self.write(repr(value))",
			instead: "self.write(repr(value) + ('' if type(self.environment.filters).__name__ == 'SimpleNamespace' else ' if [1] else 0'))",
		},
	} {
		if !other.always && !everyPlay {
			continue
		}
		t.Run(mechanism, func(t *testing.T) {
			b := newBenchOf(t, cores.Find(t, ".venv", "PYTHONPATH="+otherAnsible(t, other.file, other.text, other.instead)), nil)
			p := named(t, "files")
			switch mechanism {
			case "run":
				p.python, p.cold = 0, []string{"ansible-runner: version"}
			case "modules":
				p.python = 0
			}
			b.expectOff = true
			b.lay([]play{p})
			b.compare(t, p)
			if diff := cmp.Diff([]string{mechanism}, b.off); diff != "" {
				t.Errorf("off are - wanted and + got:\n%s", diff)
			}
		})
	}
}

// otherAnsible returns a directory with the package of .venv in which a file has another text.
func otherAnsible(t *testing.T, file, text, instead string) string {
	t.Helper()
	dir := t.TempDir()
	find := exec.CommandContext(t.Context(), cores.Find(t, ".venv").Python, "-c", "import ansible; print(ansible.__path__[0])")
	installed, err := find.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "ansible"), os.DirFS(strings.TrimSpace(string(installed)))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "ansible", file)
	source, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(source), text) {
		t.Fatalf("%s has no %q (error %v)", path, text, err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(source), text, instead, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
