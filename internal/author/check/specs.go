package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// argumentSpec adds options of a role's argument specs that the definition of the kind can't
// give, or gives as something else.
func (p *Project) argumentSpec(u *Unit) {
	if !u.Variables.Known || u.Watch.Content.Role == "" || u.Finalizing {
		return
	}
	spec, file := readSpecs(u.Dir)
	own := u.givenAtStart()
	for key, option := range source.Pairs(source.Field(spec["main"], "options")) {
		at := source.Place(file, key)
		field, declared := u.Variables.Fields[key.Value]
		switch {
		case declared:
			p.compareOption(u, key.Value, field, option, at)
		case source.True(source.Field(option, "required")) && !u.Variables.Open && !own.Has(key.Value):
			p.add(finding{
				"argument-spec", report.Error, at, fmt.Sprintf("the role requires %s, and the schema of %s has no field that becomes it", key.Value, u.Watch.GVK.Kind),
				"each run fails before its first task", "add the field to " + p.relative(u.Variables.File) + ", give it a default, or set it in the watch's vars",
			})
		}
	}
}

// givenAtStart returns the variables that a role has before its first task, beside the fields of
// the spec.
func (u *Unit) givenAtStart() sets.Set[string] {
	given := sets.KeySet(u.Watch.Vars).Insert("ansible_operator_meta").Insert(u.Variables.Whole()...)
	for _, d := range u.Definitions {
		if d.How != source.SetFact && d.How != source.Register {
			given.Insert(d.Name)
		}
	}
	return given
}

// incompatible are the types of options that no value of a schema's type, or only some, can be.
var incompatible = map[string]string{ //nolint:gochecknoglobals // A table.
	"integer": "bool dict", "number": "bool dict int", "boolean": "dict", "array": "dict bool int float", "object": "list bool int float",
}

func (p *Project) compareOption(u *Unit, name string, field, option *yaml.Node, at source.Position) {
	kind := cmp.Or(source.Scalar(option, "type"), "str")
	key := u.Variables.Keys[name]
	where := fmt.Sprintf("spec.%s of %s (%s)", key.Value, u.Watch.GVK.Kind, p.at(u.Variables.File, key.Line))
	if is := schema.Type(field); slices.Contains(strings.Fields(incompatible[is]), kind) {
		p.add(finding{
			"argument-spec", report.Warning, at, fmt.Sprintf("the role takes %s as %s, and %s is of type %s", name, kind, where, is),
			"a run fails before its first task where Ansible can't convert the value", "give both the same type",
		})
	}
	choices := source.Items(source.Field(option, "choices"))
	for _, value := range source.Items(source.Field(field, "enum")) {
		if choices != nil && !slices.ContainsFunc(choices, func(c *yaml.Node) bool { return c.Value == value.Value }) && value.Tag != "!!null" {
			p.add(finding{
				"argument-spec", report.Warning, at, fmt.Sprintf("the role refuses %s for %s, which %s allows", quoted(value.Value), name, where),
				"the run of a resource with the value fails before its first task", "allow the same values in both",
			})
		}
	}
}
