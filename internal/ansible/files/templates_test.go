package files_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/files"
)

func TestWhichTextsAreTemplates(t *testing.T) {
	text := func(s string) files.Template { return files.Template{Text: s} }
	expression := func(s string) files.Template { return files.Template{Text: s, Expression: true} }
	for name, test := range map[string]struct {
		path, content string
		want          []files.Template
	}{
		"texts of tasks, at any depth": {"tasks/main.yml", `
- name: Greet {{ who }}
  debug: {msg: ["{{ greeting }}", {deep: "{% if a %}b{% endif %}"}]}
  vars: {plain: text, number: 1}
`, []files.Template{text("Greet {{ who }}"), text("{{ greeting }}"), text("{% if a %}b{% endif %}")}},
		"block scalars, as YAML folds them": {"defaults/main.yaml", "a: >-\n  {{ one }}\n  two\nb: |\n  {# three #}\n",
			[]files.Template{text("{{ one }} two"), text("{# three #}\n")}},
		"conditions": {"handlers/main.yml", `
- assert: {that: [one is defined, "two == 'x'"]}
  when: three
  until: four
  failed_when: [five, "{{ six }}", false, 1]
  changed_when: false
- debug: {var: seven}
`, []files.Template{
			expression("one is defined"), expression("two == 'x'"), expression("three"), expression("four"), expression("five"),
			text("{{ six }}"), expression("seven"),
		}},
		"several documents":                {"a.yml", "a: '{{ b }}'\n---\nc: '{{ d }}'\n", []files.Template{text("{{ b }}"), text("{{ d }}")}},
		"each once":                        {"a.yml", "[\"{{ b }}\", \"{{ b }}\", {when: b}, {when: b}]", []files.Template{text("{{ b }}"), expression("b")}},
		"what is before a fault":           {"a.yml", "a: '{{ b }}'\n---\n[", []files.Template{text("{{ b }}")}},
		"anchors, and not their aliases":   {"a.yml", "a: &x '{{ b }}'\nwhen: *x\n", []files.Template{text("{{ b }}")}},
		"no keys":                          {"a.yml", "'{{ a }}': 1", nil},
		"no other types":                   {"a.yml", "a: !unsafe '{{ b }}'\nb: !vault '{{ c }}'\nwhen: !unsafe b\n", nil},
		"nothing with a backslash":         {"a.yml", `a: "{{ b | regex_replace('\\d') }}"`, nil},
		"whole files of templates":         {"templates/my.cnf", "[server]\nport = {{ port }}\n", []files.Template{text("[server]\nport = {{ port }}\n")}},
		"YAML that is a template":          {"templates/a.yml", "a: {{ b }}\n", []files.Template{text("a: {{ b }}\n")}},
		"templates elsewhere":              {"files/a.j2", "{{ b }}", []files.Template{text("{{ b }}")}},
		"templates in a directory of such": {"templates/etc/my.cnf", "{{ port }}", []files.Template{text("{{ port }}")}},
		"conditions without white space":   {"a.yml", "when: |\n  a\n", []files.Template{expression("a")}},
		"nothing that is evaluated before": {"a.yml", "a: \"{% autoescape 'no' | bool %}{{ b }}{% endautoescape %}\"", nil},
		"no long texts":                    {"templates/a", "{{ b }}" + strings.Repeat("#", 16<<10), nil},
		"a template that has nothing":      {"templates/a.conf", "a = 1\n", nil},
		"no other files":                   {"library/a.py", "'{{ b }}'", nil},
		"no large files":                   {"a.yml", "a: '{{ b }}'\n" + strings.Repeat("#", 64<<10), nil},
		"nothing that is hidden":           {".git/a.yml", "a: '{{ b }}'\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.path, test.content)
			if got := files.Templates(dir); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestTemplatesOfSeveralPlaces(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write(t, one, "a.yml", "- '{{ a }}'\n- '{{ b }}'\n")
	write(t, two, "a.yml", "- '{{ b }}'\n- '{{ c }}'\n")
	want := []files.Template{{Text: "{{ a }}"}, {Text: "{{ b }}"}, {Text: "{{ c }}"}}
	if got := files.Templates(one, filepath.Join(two, "a.yml"), filepath.Join(two, "none")); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTemplatesAreLimited(t *testing.T) {
	text := func(i int) string { return fmt.Sprintf("{{ a%06d }}", i) }
	one, two := t.TempDir(), t.TempDir()
	for file := range 10 {
		var lines strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&lines, "- '%s'\n", text(2000*file+i))
		}
		write(t, one, fmt.Sprintf("%d.yml", file), lines.String())
	}
	write(t, one, "a.yml", "- '{{ more }}'\n")
	write(t, two, "a.yml", "- '{{ more }}'\n")
	most := (128 << 10) / len(text(0))
	got := files.Templates(one, two)
	if len(got) != most || got[most-1].Text != text(most-1) {
		t.Errorf("got %d templates, and the last one %q", len(got), got[len(got)-1].Text)
	}
}
