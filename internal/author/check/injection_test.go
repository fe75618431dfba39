package check

import (
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// TestValuesOfOneTemplateAreOneFinding: a variable that may hold many values of the resource is
// pasted in one place.
func TestValuesOfOneTemplateAreOneFinding(t *testing.T) {
	p := project(t, thing(), map[string]string{
		"config/crd.yaml":        definition + closed,
		"roles/r/tasks/main.yml": "- kubernetes.core.k8s:\n    definition: |\n      a: {{ secret_name }}{{ users }}\n",
	})
	u := p.Units[0]
	u.FromCR = func(name string, _ []*source.Definition) bool { return u.Variables.Has(name) }
	for _, text := range u.Texts {
		text.Analysis = reader.Analysis{Outputs: []reader.Output{{Flows: []reader.Flow{{Name: "users", Lookup: -1}, {Name: "secret_name", Lookup: -1}, {Name: "users", Lookup: -1}}}}}
	}
	p.injections(u)
	want(t, p, "roles/r/tasks/main.yml:2 error yaml-text")
	if got := p.findings[0].Message; got != "the resource's secret_name, users are pasted into YAML text" {
		t.Errorf("got %q", got)
	}
}
