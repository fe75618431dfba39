package check

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// rendering is a template, or several by a name with variables, and the delimiters that it has there.
type rendering struct {
	names      []string
	delimiters reader.Delimiters
}

// renderings returns the templates that a task renders: by the module template, or by the argument
// of that name, which is a text, a mapping with a path and delimiters, or a list of these.
func (u *Unit) renderings(t *source.Task) (found []rendering) {
	n := t.Arg("template")
	switch {
	case source.Plain(t.Module) == "template":
		names, _ := rights.Paths(u.Index, t.Arg("src"), t)
		return []rendering{{names, delimitersIn(t.Args)}}
	case rights.Module(t) == "" || n == nil:
		return nil
	}
	for _, element := range source.Each(n) {
		names, _ := rights.Paths(u.Index, element, t)
		found = append(found, rendering{names, delimitersIn(element)})
	}
	return found
}

// templates returns the names of the templates that a task renders.
func (u *Unit) templates(t *source.Task) (names []string) {
	for _, r := range u.renderings(t) {
		names = append(names, r.names...)
	}
	return names
}

func delimitersIn(n *yaml.Node) reader.Delimiters {
	return delimiters(func(name string) string { return source.Scalar(n, name) })
}

func delimiters(option func(name string) string) reader.Delimiters {
	return reader.Delimiters{
		BlockStart: option("block_start_string"), BlockEnd: option("block_end_string"),
		VariableStart: option("variable_start_string"), VariableEnd: option("variable_end_string"),
		CommentStart: option("comment_start_string"), CommentEnd: option("comment_end_string"),
	}
}

// command adds text of the custom resource that gets into a command line.
func (p *Project) command(u *Unit, t *source.Task) {
	switch module := source.Plain(t.Module); {
	case slices.Contains([]string{"shell", "raw", "win_shell", "script", "expect"}, module):
		p.line(u, t, commandArgument(t), "a line of "+module, inShell)
	case module == "command" && t.Args != nil:
		if n := commandArgument(t); n != nil && n.Kind == yaml.ScalarNode {
			p.line(u, t, n, "arguments of a command in one text", inShell)
		}
	case strings.HasSuffix(module, ".k8s_exec") && rights.Module(t) == "k8s_exec":
		p.line(u, t, t.Arg("command"), "the words of a command in a pod", inShell)
	case module == "add_host":
		p.line(u, t, t.Arg("name", "hostname", "host"), "the name of a host", harmless)
	case strings.HasSuffix(module, ".helm") && rights.Module(t) == "helm":
		p.line(u, t, t.Arg("name", "release_name"), "the name of a release, which is part of a command line", inShell)
	}
	p.keywords(u, t)
}

// keywords adds keywords of a task that get into a command line, and the names of facts.
func (p *Project) keywords(u *Unit, t *source.Task) {
	for _, keyword := range []string{"become_user", "remote_user", "delegate_to"} {
		p.line(u, t, t.Keys[keyword], keyword+", which is part of a command line", harmless)
	}
	if n := t.Keys["environment"]; n != nil {
		if text := u.Text(n); text != nil && text.Analysis.Whole {
			p.line(u, t, n, "names of environment variables, which are part of a shell's line", harmless)
		}
	}
	if source.Plain(t.Module) == "set_fact" {
		for key := range source.Pairs(t.Args) {
			p.line(u, t, key, "the name of a variable that set_fact makes", harmless)
		}
	}
}

func commandArgument(t *source.Task) *yaml.Node {
	if t.Args != nil && t.Args.Kind == yaml.ScalarNode {
		return t.Args
	}
	return t.Arg("cmd", "_raw_params", "command")
}

func (p *Project) line(u *Unit, t *source.Task, n *yaml.Node, what string, safe []string) {
	if n == nil {
		return
	}
	text := u.Text(n)
	if text == nil {
		return
	}
	for _, output := range text.Analysis.Outputs {
		for _, flow := range output.Flows {
			for _, s := range u.unsafe(flow, t, safe) {
				p.addCommand(u, text.At(output.Line), s, what, safe)
			}
		}
	}
}

func (p *Project) addCommand(u *Unit, at source.Position, s source.Source, what string, safe []string) {
	remedy := "check the text first: value is match('[A-Za-z0-9_][A-Za-z0-9_.-]*\\Z'), or give the field a pattern in the schema"
	if slices.Contains(safe, "quote") {
		remedy = "write | quote behind the value, use ansible.builtin.command with argv, or give the field a narrow pattern in the schema"
	}
	p.add(finding{
		"text-in-command", u.severity(s), at, "the resource's " + describeSource(s) + " gets into " + what,
		"everybody who may write the resource can add arguments, or run programs with the operator's rights", remedy,
	})
}

// termsOf adds files and roles that the custom resource chooses.
func (p *Project) termsOf(u *Unit, t *source.Task) {
	var n *yaml.Node
	switch module := source.Plain(t.Module); module {
	case "include_tasks", "include_vars", "import_tasks":
		if n = t.Arg("file", "_raw_params"); t.Args != nil && t.Args.Kind == yaml.ScalarNode {
			n = t.Args
		}
	case "include_role", "import_role":
		n = t.Arg("name", "role", "tasks_from")
	case "template", "copy", "script", "unarchive":
		n = t.Arg("src")
	}
	if n == nil || u.Text(n) == nil {
		return
	}
	for _, s := range u.textSources(u.Text(n), harmless) {
		p.add(finding{
			"text-as-expression", u.severity(s), u.Text(n).At(0), "the resource's " + describeSource(s) + " chooses a file or role of the operator",
			"../ in the value leads to other files of the operator's image", "give the field an enum in the schema, or choose from a map: {{ files[kind] }}",
		})
	}
}
