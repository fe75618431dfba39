package source

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

var expression = regexp.MustCompile(`^\{\{ (\w+)([.\w]*)( \| \w+)? \}\}$`)

// indexed is the unit of a role whose templates are of the form {{ name.path | filter }}, in
// which spec_… are variables of the resource.
func indexed(t *testing.T, all map[string]string) *Index {
	t.Helper()
	u, _ := walked(t, all)
	for _, text := range u.Texts {
		found := expression.FindStringSubmatch(text.Value)
		if found == nil {
			t.Fatalf("%q is not of the form", text.Value)
		}
		flow := reader.Flow{Name: found[1]}
		if found[2] != "" {
			flow.Path = strings.Split(found[2][1:], ".")
		}
		if found[3] != "" {
			flow.Filters = []string{strings.TrimPrefix(found[3], " | ")}
		}
		text.Analysis = reader.Analysis{Whole: true, Outputs: []reader.Output{{Flows: []reader.Flow{flow}}}}
	}
	i := u.Index()
	i.FromCR = func(name string, _ []*Definition) bool { return strings.HasPrefix(name, "spec_") }
	return i
}

// last is the task whose argument kind is looked at.
func (i *Index) last() *Task { return i.unit.Tasks[len(i.unit.Tasks)-1] }

func TestWhatAnArgumentMayBe(t *testing.T) {
	const vars = "kinds: [{kind: A, size: 1}, {kind: B}]\nnames: [x, y]\nmap: {k: {kind: C}, l: {kind: D}}\none: '{{ two }}'\ntwo: '{{ one }}'\nalias: '{{ map.k }}'\nspoilt: '{{ names | upper }}'\nanchor: &a {kind: E}\nfollowed: *a\n"
	for name, test := range map[string]struct {
		tasks string
		want  []string // nil: it is known in a run only
	}{
		"a text":                              {"- k8s: {kind: Pod}\n", []string{"Pod"}},
		"the elements of a list":              {"- k8s: {kind: '{{ item }}'}\n  loop: '{{ names }}'\n", []string{"x", "y"}},
		"a part of them":                      {"- k8s: {kind: '{{ item.kind }}'}\n  loop: '{{ kinds }}'\n", []string{"A", "B"}},
		"a part that some lack is of others":  {"- k8s: {kind: '{{ item.size }}'}\n  loop: '{{ kinds }}'\n", nil},
		"the loop's variable by another name": {"- k8s: {kind: '{{ k.kind }}'}\n  loop: [{kind: F}]\n  loop_control: {loop_var: k}\n", []string{"F"}},
		"the values of a mapping":             {"- k8s: {kind: '{{ item.value.kind }}'}\n  with_dict: '{{ map }}'\n", []string{"C", "D"}},
		"the loop of a block":                 {"- block: [{k8s: {kind: '{{ item }}'}}]\n  loop: [G]\n", []string{"G"}},
		"a variable of a variable":            {"- k8s: {kind: '{{ alias.kind }}'}\n", []string{"C"}},
		"an alias of YAML":                    {"- k8s: {kind: '{{ followed.kind }}'}\n", []string{"E"}},
		"variables in a circle":               {"- k8s: {kind: '{{ one }}'}\n", nil},
		"what went through a filter":          {"- k8s: {kind: '{{ spoilt }}'}\n", nil},
		"a field of the resource":             {"- k8s: {kind: '{{ spec_kind }}'}\n", nil},
		"what nobody defines":                 {"- k8s: {kind: '{{ nobody }}'}\n", nil},
		"what a task has found out":           {"- {command: x, register: out}\n- k8s: {kind: '{{ out }}'}\n", nil},
		"what a task sets":                    {"- set_fact: {chosen: H}\n- k8s: {kind: '{{ chosen }}'}\n", []string{"H"}},
		"a variable of the task":              {"- k8s: {kind: '{{ own }}'}\n  vars: {own: I}\n", []string{"I"}},
		"a variable of the block":             {"- block: [{k8s: {kind: '{{ own }}'}}]\n  vars: {own: J}\n", []string{"J"}},
		"not that of another task":            {"- {debug: , vars: {own: K}}\n- k8s: {kind: '{{ own }}'}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := indexed(t, map[string]string{"roles/r/tasks/main.yml": test.tasks, "roles/r/vars/main.yml": vars})
			values, known := i.Values(i.last().Arg("kind"), i.last())
			var got []string
			for _, v := range values {
				got = append(got, Scalar(v.Node))
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" || known != (test.want != nil) {
				t.Errorf("known: %t (-want +got):\n%s", known, diff)
			}
		})
	}
}

func TestWhatOfTheResourceGetsIntoAnArgument(t *testing.T) {
	const vars = "whole: '{{ spec_users }}'\nmixed: {a: '{{ spec_a }}', b: [x, '{{ spec_b.c | quote }}']}\nself: '{{ self }}'\n"
	for name, test := range map[string]struct {
		value string
		want  []string
	}{
		"a field":                        {"{{ spec_a }}", []string{"spec_a [] []"}},
		"a field through a filter":       {"{{ spec_a | quote }}", []string{"spec_a [] [quote]"}},
		"the filters on the way":         {"{{ mixed.b | upper }}", []string{"spec_b [c] [quote upper]"}},
		"a part of what a variable is":   {"{{ whole.name }}", []string{"spec_users [name] []"}},
		"only the part that is meant":    {"{{ mixed.a }}", []string{"spec_a [] []"}},
		"all parts of a mapping":         {"{{ mixed }}", []string{"spec_a [] []", "spec_b [c] [quote]"}},
		"the elements that a loop is of": {"{{ item.name }}", []string{"spec_users [[] name] []"}},
		"nothing, of text":               {"{{ nobody }}", nil},
		"nothing, of itself":             {"{{ self }}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			i := indexed(t, map[string]string{
				"roles/r/tasks/main.yml": "- k8s: {kind: '" + test.value + "'}\n  loop: '{{ whole }}'\n", "roles/r/vars/main.yml": vars,
			})
			var got []string
			for _, s := range i.Sources(i.Text(i.last().Arg("kind")).Analysis.Outputs[0].Flows[0], i.last()) {
				got = append(got, strings.Join([]string{s.Name, "[" + strings.Join(s.Path, " ") + "]", "[" + strings.Join(s.Filters, " ") + "]"}, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesOfTexts(t *testing.T) {
	u, _ := walked(t, map[string]string{"roles/r/tasks/main.yml": "- debug:\n    msg: |\n      a\n      {{ b }}\n- debug:\n    msg: >-\n      a\n      {{ c }}\n"})
	if len(u.Texts) != 2 {
		t.Fatalf("got %d texts", len(u.Texts))
	}
	file := u.Tasks[0].File
	for name, test := range map[string]struct {
		text *Text
		line int
		want Position
	}{
		"a literal block keeps its lines":      {u.Texts[0], 2, Position{file, 4, 1}},
		"the beginning of one":                 {u.Texts[0], 0, Position{file, 2, 10}},
		"a folded block has but its beginning": {u.Texts[1], 1, Position{file, 6, 10}},
		"a template's file":                    {&Text{Position: Position{"f.j2", 1, 1}}, 7, Position{"f.j2", 7, 1}},
		"a template's file as a whole":         {&Text{Position: Position{"f.j2", 1, 1}}, 0, Position{"f.j2", 1, 1}},
	} {
		if got := test.text.At(test.line); got != test.want {
			t.Errorf("%s: want %s, got %s", name, test.want, got)
		}
	}
}
