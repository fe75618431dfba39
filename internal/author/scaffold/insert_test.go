package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestInsert(t *testing.T) {
	for name, test := range map[string]struct {
		content, item, want string
		keys                []string
	}{
		"an empty list":              {"---\n# c\n[]\n", "a: 1\nb: 2", "---\n# c\n- a: 1\n  b: 2\n", nil},
		"an empty list of a key":     {"x: 1\nl: []\ny: 2\n", "a", "x: 1\nl:\n  - a\ny: 2\n", []string{"l"}},
		"a key without indentation":  {"l:\n- a # c\ny: 2\n", "b", "l:\n- a # c\n- b\ny: 2\n", []string{"l"}},
		"an item with a block text":  {"l:\n  - t: |\n      one\n\n      two\n# end\ny: 2\n", "b", "l:\n  - t: |\n      one\n\n      two\n  - b\n# end\ny: 2\n", []string{"l"}},
		"a list in one line":         {"l: [a]\n", "b", "", []string{"l"}},
		"no such key":                {"x: 1\n", "b", "", []string{"l"}},
		"a mapping where a list was": {"l: {}\n", "b", "", []string{"l"}},
		"no YAML":                    {"l: [\n", "b", "", []string{"l"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := insert([]byte(test.content), test.item, test.keys...)
			switch {
			case test.want == "" && err == nil:
				t.Errorf("want an error, got\n%s", got)
			case test.want != "" && (err != nil || string(got) != test.want):
				t.Errorf("want\n%s\ngot %v\n%s", test.want, err, got)
			}
		})
	}
}

func TestFilesThatNothingCanBeAddedTo(t *testing.T) {
	for path, test := range map[string]struct{ text, want string }{
		"watches.yaml":                   {"- group: g\n  version: v1\n   kind: K\n", "watches.yaml:3: invalid YAML: correct the file"},
		"config/rbac/kustomization.yaml": {"# nothing\n", "config/rbac/kustomization.yaml:1: the file is empty: write [] for"},
		"config/rbac/role.yaml":          {"kind: ClusterRole\nrules: {}\n", "config/rbac/role.yaml:2: a list is needed here, such as []; correct the file"},
		"PROJECT":                        {"a: b: c\n", "PROJECT:1: invalid YAML; correct the file"},
	} {
		t.Run(path, func(t *testing.T) {
			dir := newProject(t)
			scratch.Write(t, dir, map[string]string{path: test.text})
			if _, err := CreateAPI(dir, cluster()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
	dir := newProject(t)
	if err := os.Remove(filepath.Join(dir, "watches.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateAPI(dir, cluster()); err == nil || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("without watches.yaml: got %v", err)
	}
}

func valueNode(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}
