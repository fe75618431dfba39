package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// takeNone are filters that treat None as a role's author means it.
//
//nolint:gochecknoglobals // A constant.
var takeNone = strings.Fields("default d bool from_yaml from_yaml_all to_json to_nice_json tojson to_yaml to_nice_yaml type_debug ternary")

// operands adds values that a text's filters and operators cannot take: None of a template that may
// render nothing, and a number beside a text.
func (p *Project) operands(u *Unit, t *source.Text) {
	for _, o := range t.Analysis.Operands {
		if slices.Contains(takeNone, o.Operator) {
			continue
		}
		for _, flow := range o.Flows {
			if what := u.mayBeEmpty(flow, t); what != "" {
				p.add(finding{
					"empty-template", report.Warning, t.At(o.Line), what + " may render nothing and is None then; " + operation(o.Operator),
					"since ansible-core 2.19 that is not the empty text: the task fails, or the text has the word None", "write | default('', true) before it",
				})
				break
			}
		}
	}
	for _, s := range t.Analysis.Sums {
		left, leftCertain := u.typeOfAll(s.Left, t.Task)
		right, rightCertain := u.typeOfAll(s.Right, t.Task)
		if left == right || !slices.Contains([]string{left, right}, "a text") || !slices.Contains([]string{left, right}, "a number") {
			continue
		}
		p.add(finding{
			"native-type", errorIf(leftCertain && rightCertain), t.At(s.Line), fmt.Sprintf("+ joins %s and %s in %s", left, right, quoted(t.Value)),
			"the task fails: a template that is a whole value keeps its type since ansible-core 2.19", "write ~ instead of +, or | string or | int behind one of them",
		})
	}
}

func operation(operator string) string {
	switch operator {
	case "+", "~":
		return operator + " joins it to a text"
	default:
		return "the " + map[bool]string{true: "method ", false: "filter "}[operator[0] == '.'] + strings.TrimPrefix(operator, ".") + " wants a text"
	}
}

// mayBeEmpty names the template that a flow is, and that may render nothing; "" if there is none.
func (u *Unit) mayBeEmpty(flow reader.Flow, t *source.Text) string {
	if len(flow.Path) > 0 || len(flow.Filters) > 0 {
		return ""
	}
	if flow.Lookup >= 0 {
		return u.emptyFile(t, flow.Lookup)
	}
	if u.fromCR(flow.Name, u.Defined(flow.Name, t.Task)) {
		return ""
	}
	for _, d := range u.Defined(flow.Name, t.Task) {
		text := u.Text(d.Value)
		switch {
		case text == nil:
		case text.Analysis.MayBeEmpty:
			return fmt.Sprintf("%s (%s)", flow.Name, u.place(text))
		case text.Analysis.Whole && len(text.Analysis.Outputs) == 1 && len(text.Analysis.Outputs[0].Flows) == 1:
			if f := text.Analysis.Outputs[0].Flows[0]; f.Lookup >= 0 && len(f.Filters) == 0 {
				if file := u.emptyFile(text, f.Lookup); file != "" {
					return flow.Name + ", which is " + file + ","
				}
			}
		}
	}
	return ""
}

// emptyFile names the template of a lookup that may render nothing.
func (u *Unit) emptyFile(t *source.Text, lookup int) string {
	if lookup >= len(t.Analysis.Lookups) {
		return ""
	}
	for _, file := range u.lookedUp(t.Analysis.Lookups[lookup], t.Task) {
		if file.Analysis.MayBeEmpty {
			return "the template " + file.File
		}
	}
	return ""
}

func (u *Unit) place(t *source.Text) string { return fmt.Sprintf("%s:%d", t.File, t.Line) }

// typeOfAll returns the type that all of the types are, "" if there is none.
func (u *Unit) typeOfAll(types []reader.Type, task *source.Task) (what string, certain bool) {
	certain = true
	for n, kind := range types {
		this, sure := u.typeOf(kind, task, 0)
		if n > 0 && this != what {
			return "", false
		}
		what, certain = this, certain && sure
	}
	return what, certain
}
