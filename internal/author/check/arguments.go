package check

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// arguments asks whether the roles' argument specs accept the variables of the CRs. The function
// adds Ansible's answers.
func (p *Project) arguments(all []*customResource) (asked []reader.Arguments, add func([][]string)) {
	var about []*customResource
	for _, c := range all {
		for _, u := range p.Units {
			if c.faulty || u.Watch.GVK != c.gvk || u.Finalizing || u.Watch.Content.Role == "" {
				continue
			}
			if a, ok := u.asked(c); ok {
				asked, about = append(asked, a), append(about, c)
			}
		}
	}
	return asked, func(answers [][]string) {
		for n, messages := range answers {
			for _, message := range messages {
				p.add(finding{
					"sample", report.Error, about[n].option(message), "the role's argument specs refuse it: " + message,
					"the run fails before its first task", "correct the sample, or let the schema refuse such a value",
				})
			}
		}
	}
}

// asked returns the options of the role's argument specs whose values are known, with those of
// the CR.
func (u *Unit) asked(c *customResource) (reader.Arguments, bool) {
	spec := map[string]any{}
	specs, _ := readSpecs(u.Dir)
	if n := source.Field(specs["main"], "options"); n == nil || n.Decode(&spec) != nil {
		return reader.Arguments{}, false
	}
	variables, err := extravars.Build(c.object, extravars.Options{GVK: c.gvk, SnakeCase: u.Watch.SnakeCaseParameters, Vars: u.Watch.Vars})
	if err != nil {
		return reader.Arguments{}, false // A resource with such names is refused: see kinds.go.
	}
	text, err := variables.Encode()
	values := map[string]any{}
	if err != nil || json.Unmarshal(text, &values) != nil {
		return reader.Arguments{}, false
	}
	for _, d := range u.Definitions {
		if _, given := values[d.Name]; !given {
			delete(spec, d.Name) // The content has a value of its own, perhaps a template.
		}
	}
	for name := range spec {
		if text, err := json.Marshal(values[name]); err != nil || strings.Contains(string(text), "{{") {
			delete(spec, name)
		}
	}
	return reader.Arguments{Spec: spec, Values: values}, true
}

var word = regexp.MustCompile(`\w+`)

// option returns the position of the field that a message names.
func (c *customResource) option(message string) source.Position {
	spec, _ := c.object["spec"].(map[string]any)
	for _, name := range word.FindAllString(message, -1) {
		for key := range spec {
			if key == name || schema.Snake(key) == name {
				return c.at("spec." + key)
			}
		}
	}
	return c.at("spec")
}
