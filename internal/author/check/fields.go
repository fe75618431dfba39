package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
)

// keepsShape are filters behind which a path still means the same fields.
//
//nolint:gochecknoglobals // A constant.
var keepsShape = strings.Fields(`default d string int float bool to_json to_nice_json tojson to_yaml to_nice_yaml lower upper trim quote
	length count list sort unique selectattr rejectattr first last b64encode hash join`)

// unknownFields adds fields that the content reads of the CR's values, and that the schema does
// not have.
func (p *Project) unknownFields(u *Unit) {
	if !u.Variables.Known {
		return
	}
	for _, t := range u.Texts {
		if t.Analysis.Error != "" || throughPlugin(t.Task) {
			continue
		}
		for _, output := range t.Analysis.Outputs {
			for _, flow := range output.Flows {
				if slices.ContainsFunc(flow.Filters, otherShape) {
					continue
				}
				for _, s := range u.Sources(flow, t.Task) {
					p.unknownField(u, t.At(output.Line), s)
				}
			}
		}
	}
}

func otherShape(filter string) bool { return !slices.Contains(keepsShape, filter) }

// throughPlugin reports whether a loop around the task goes through a lookup that makes other
// elements of a list, such as with_subelements.
func throughPlugin(t *source.Task) bool {
	for ; t != nil; t = t.Parent {
		if t.With != "" && t.With != "items" {
			return true
		}
	}
	return false
}

func (p *Project) unknownField(u *Unit, at source.Position, s source.Source) {
	if slices.ContainsFunc(s.Filters, otherShape) || !u.Variables.Has(s.Name) || len(s.Path) == 0 {
		return
	}
	path := make([]string, len(s.Path))
	for i, element := range s.Path {
		if _, err := strconv.Atoi(element); err == nil {
			element = reader.Element
		}
		path[i] = element
	}
	missing, siblings := u.Variables.Lacks(s.Name, path)
	if missing == "" {
		return
	}
	message := fmt.Sprintf("the schema of %s has no field %s", u.Watch.GVK.Kind, describeSource(s)) + suggest.Slip(missing, siblings)
	p.add(finding{
		"undefined-variable", report.Warning, at, message, "the API server drops such a field, so the content never gets its value", "correct the name, or add the field to the schema",
	})
}
