package check

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/fix"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// rewrite is a condition with the edit that takes its place. The edit has the expression without templates;
// whether that is a boolean the reader says at the end.
type rewrite struct {
	unit *Unit
	text *source.Text
	edit *fix.Edit
}

// rewritten returns the edit of a condition, nil if its templates cannot be taken out.
func (p *Project) rewritten(u *Unit, t *source.Text) []*fix.Edit {
	expression, ok := withoutTemplates(strings.TrimSpace(t.Value))
	if !ok || t.Node == nil {
		return nil
	}
	edit := &fix.Edit{File: t.File, Node: t.Node, Value: expression}
	p.rewrites = append(p.rewrites, rewrite{u, t, edit})
	return []*fix.Edit{edit}
}

// rewriteConditions makes booleans of the rewritten conditions that are none. A condition that
// Jinja cannot read is not rewritten.
func (p *Project) rewriteConditions() error {
	if len(p.rewrites) == 0 {
		return nil
	}
	var question reader.Question
	for _, r := range p.rewrites {
		question.Texts = append(question.Texts, reader.Text{Text: r.edit.Value, Bare: true})
	}
	answer, err := p.reader.Ask(question)
	if err != nil {
		return err
	}
	for n, r := range p.rewrites {
		analysis := answer.Texts[n]
		what, _ := r.unit.notBoolean(analysis.Types, r.text.Task)
		switch {
		case analysis.Error != "" || r.edit.Value == r.text.Value && what == "":
			r.edit.Value = ""
		case what != "":
			r.edit.Value = grouped(r.edit.Value) + " is truthy"
		}
	}
	return nil
}

// path is a variable, or a part of one.
var path = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)

// grouped returns the expression as an operand.
func grouped(expression string) string {
	if path.MatchString(expression) {
		return expression
	}
	return "(" + expression + ")"
}

// withoutTemplates returns a condition as one expression: a template in it becomes a part of the
// expression, and one in a text that stands in quotes is joined to the text. ok is false for
// statements, and for templates without an end.
func withoutTemplates(text string) (expression string, ok bool) {
	if strings.Contains(text, "{%") || strings.Contains(text, "{#") {
		return "", false
	}
	if match := wholeTemplate.FindStringSubmatch(text); match != nil {
		return strings.TrimSpace(match[1]), true
	}
	return withoutParts(text)
}

// withoutParts does so for a condition that has templates as parts, and no statements.
func withoutParts(text string) (expression string, ok bool) {
	var out strings.Builder
	var inner []string // The pieces of a text in quotes, of which each second one is a template.
	quote, begin := byte(0), 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "{{"):
			length := strings.Index(text[i:], "}}")
			if length < 0 {
				return "", false
			}
			template := strings.TrimSpace(strings.Trim(text[i+2:i+length], "-"))
			if quote == 0 {
				out.WriteString(grouped(template))
			} else {
				inner = append(inner, text[begin:i], template)
			}
			i += length + 1
			begin = i + 1
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			out.WriteString(joined(append(inner, text[begin:i]), string(quote)))
			quote, inner = 0, nil
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begin = c, i+1
		case quote == 0:
			out.WriteByte(c)
		}
	}
	return out.String(), quote == 0
}

// joined returns a text in quotes and the templates in it, of which each second piece is one, as an expression.
func joined(pieces []string, quote string) string {
	if len(pieces) == 1 {
		return quote + pieces[0] + quote
	}
	var parts []string
	for i, piece := range pieces {
		switch {
		case i%2 == 1:
			parts = append(parts, grouped(piece))
		case piece != "":
			parts = append(parts, quote+piece+quote)
		}
	}
	if len(parts) == 1 {
		return "(" + parts[0] + " | string)"
	}
	return "(" + strings.Join(parts, " ~ ") + ")"
}

var wholeTemplate = regexp.MustCompile(`^\{\{([^-{}][^{}]*[^-{}])\}\}$`)

// asTextOf returns the edit that makes a text of a literal or of a template that is the whole value.
func asTextOf(file string, n *yaml.Node) []*fix.Edit {
	value := n.Value
	if strings.Contains(value, "{{") {
		match := wholeTemplate.FindStringSubmatch(strings.TrimSpace(value))
		if match == nil {
			return nil
		}
		value = "{{ " + grouped(strings.TrimSpace(match[1])) + " | string }}"
	}
	return []*fix.Edit{{File: file, Node: n, Value: value}}
}

// renamedModules are modules that have another name now, and the same arguments.
//
//nolint:gochecknoglobals // A constant.
var renamedModules = map[string]string{
	"include": "ansible.builtin.include_tasks", "ansible.builtin.include": "ansible.builtin.include_tasks",
	"k8s_facts": "kubernetes.core.k8s_info", "community.kubernetes.k8s_facts": "kubernetes.core.k8s_info",
	"k8s_raw": "kubernetes.core.k8s", "openshift_raw": "kubernetes.core.k8s",
}

// renamed returns the present name of a module that is not there, "" if it has none that is installed.
func (p *Project) renamed(module string) string {
	name := renamedModules[module]
	if own, old := strings.CutPrefix(module, "community.kubernetes."); old && name == "" && own != "k8s_auth" {
		name = "kubernetes.core." + own
	}
	if strings.HasPrefix(name, "kubernetes.core.") && len(files.FindCollection("kubernetes.core", p.trees...)) == 0 {
		return ""
	}
	return name
}

// renames returns the edits that give each task with the module its present name.
func (p *Project) renames(module string) (edits []*fix.Edit) {
	name := p.renamed(module)
	if name == "" {
		return nil
	}
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			if t.Module == module {
				edits = append(edits, renamedTo(t, name))
			}
		}
	}
	return edits
}

// renamedTo returns the edit that gives a task another module.
func renamedTo(t *source.Task, name string) *fix.Edit {
	return &fix.Edit{File: t.File, Node: &yaml.Node{Kind: yaml.ScalarNode, Value: t.Module, Line: t.Line, Column: t.Column}, Value: name}
}

// Fixes returns the files of the project in dir with the rewrites that the findings of a report
// allow, and the refused rewrites. Findings without a fix are refused too if other findings of
// their kind have fixes.
func Fixes(r report.Report, dir string) (changes []fix.Change, refused []fix.Refusal) {
	var edits []fix.Edit
	for _, f := range r.Findings {
		for _, edit := range f.Fix {
			why := ""
			if path, err := filepath.Rel(dir, edit.File); err != nil || strings.HasPrefix(path, "..") {
				why = "the file is not in the project"
			}
			if edit.Value == "" {
				why = "what it should be is not mechanical: " + f.Remedy
			}
			if why != "" {
				refused = append(refused, fix.Refusal{Edit: *edit, Why: why})
			} else {
				edits = append(edits, *edit)
			}
		}
		if f.Fix == nil && slices.Contains([]string{"non-boolean-condition", "templated-condition", "native-type"}, f.ID) {
			at := &yaml.Node{Line: f.Line, Column: f.Column}
			refused = append(refused, fix.Refusal{Edit: fix.Edit{File: f.File, Node: at}, Why: "what it should be is not mechanical: " + f.Remedy})
		}
	}
	changes, more := fix.Plan(edits)
	return changes, append(refused, more...)
}
