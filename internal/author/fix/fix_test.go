package fix

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// at returns the node of the scalar with the value.
func at(t *testing.T, text, value string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	var found *yaml.Node
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Value == value {
			found = n
		}
		for _, child := range n.Content {
			visit(child)
		}
	}
	visit(&document)
	if found == nil {
		t.Fatalf("no %q in %q", value, text)
	}
	return found
}

func TestAScalarIsReplacedAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct{ text, from, to, want string }{
		"plain":                      {"when: a | length  # why\n", "a | length", "(a | length) is truthy", "when: (a | length) is truthy  # why\n"},
		"in a list, with odd layout": {"when:\n   -   a\n   - b\n", "a", "a is truthy", "when:\n   -   a is truthy\n   - b\n"},
		"in double quotes":           {"when: \"x == '{{ y }}'\"\n", "x == '{{ y }}'", `x == "y"`, "when: \"x == \\\"y\\\"\"\n"},
		"in single quotes":           {"when: 'x'  \n", "x", "x == 'y'", "when: 'x == ''y'''  \n"},
		"a number":                   {"data: {n: 3, m: 4}\n", "3", "3", "data: {n: \"3\", m: 4}\n"},
		"in a flow with a comma":     {"- {debug: , when: a}\n", "a", "(a | default([], b)) is truthy", "- {debug: , when: \"(a | default([], b)) is truthy\"}\n"},
		"a key":                      {"- name: A # it\n  community.kubernetes.k8s:\n    state: present\n", "community.kubernetes.k8s", "kubernetes.core.k8s", "- name: A # it\n  kubernetes.core.k8s:\n    state: present\n"},
		"behind wide characters":     {"{ü: é, when: a}\n", "a", "a is truthy", "{ü: é, when: a is truthy}\n"},
		"with the line's end of DOS": {"when: a\r\nb: c\r\n", "a", "a is truthy", "when: a is truthy\r\nb: c\r\n"},
		"in a second document":       {"a: b\n---\nwhen: x\n", "x", "x is truthy", "a: b\n---\nwhen: x is truthy\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			if _, second, two := strings.Cut(text, "---\n"); two {
				node := at(t, second, c.from)
				node.Line += 2
				got, err := replace(text, Edit{Node: node, Value: c.to})
				if err != nil || got != c.want {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			got, err := replace(text, Edit{Node: at(t, text, c.from), Value: c.to})
			if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text, from string
		want       error
	}{
		"a folded text":           {"when: >-\n  a\n  b\n", "a b", errLines},
		"a literal text":          {"when: |\n  a\n", "a\n", errLines},
		"a plain text of lines":   {"when: a and\n  b\n", "a and b", errLines},
		"quotes over lines":       {"when: \"a\n  b\"\n", "a b", errLines},
		"an anchor":               {"a: &x a\nb: *x\n", "a", errAnchor},
		"a tag":                   {"a: !unsafe b\n", "b", errAnchor},
		"what would mean another": {"a: [b, c]\n", "", errLines},
	} {
		t.Run(name, func(t *testing.T) {
			node := &yaml.Node{Kind: yaml.ScalarNode, Line: 1, Column: 4}
			if c.from != "" {
				node = at(t, c.text, c.from)
			}
			if name == "an anchor" {
				node = &yaml.Node{Kind: yaml.ScalarNode, Value: "a", Anchor: "x", Line: 1, Column: 4}
			}
			if _, err := replace(c.text, Edit{Node: node, Value: "x is truthy"}); err != c.want { //nolint:errorlint // Not wrapped.
				t.Errorf("want %v, got %v", c.want, err)
			}
		})
	}
	if _, err := replace("a: b\n", Edit{Node: &yaml.Node{Kind: yaml.ScalarNode, Value: "b", Line: 9, Column: 4}, Value: "c"}); err == nil {
		t.Error("a line that is not there: want an error")
	}
}

func TestPlanAndWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.yml")
	const text = "a: x\nb: y # kept\nc: |\n  z\n"
	if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	edit := func(value, to string) Edit { return Edit{file, at(t, text, value), to} }
	changes, refused := Plan([]Edit{edit("x", "x is truthy"), edit("y", "y2"), edit("y", "y is truthy"), edit("z\n", "no")})
	if len(changes) != 1 || changes[0].Edits != 2 || len(refused) != 1 || refused[0].Why != errLines.Error() {
		t.Fatalf("got %+v, refused %+v", changes, refused)
	}
	const want = "a: x is truthy\nb: y is truthy # kept\nc: |\n  z\n"
	if diff := changes[0].Diff("main.yml"); !strings.Contains(diff, "--- a/main.yml") || !strings.Contains(diff, "+b: y is truthy # kept") {
		t.Errorf("got the diff %q", diff)
	}
	if err := changes[0].Write(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(file)
	if info, err := os.Stat(file); err != nil || string(got) != want || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, %v, %v", got, info, err)
	}
	if err := changes[0].Write(filepath.Dir(file)); err == nil {
		t.Error("a file that has changed meanwhile: want an error")
	}
}
