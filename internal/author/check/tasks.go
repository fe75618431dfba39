package check

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/fix"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// ofTasks adds tasks that cannot work as they are written.
func (p *Project) ofTasks(u *Unit) {
	for _, t := range u.Tasks {
		if source.Plain(t.Module) == "import_playbook" {
			p.add(finding{
				"syntax", report.Error, t.Position, "import_playbook is a task here; a playbook is imported beside plays, at the top of another playbook",
				"the task fails", "put the tasks into a file or a role, and use ansible.builtin.include_tasks or include_role",
			})
		}
		p.shortName(t)
		if source.Plain(t.Module) == "pause" && t.Arg("seconds", "minutes") == nil {
			p.add(finding{
				"prompt", report.Warning, t.Position, "the task " + cmp.Or(t.Name, t.Module) + " waits for input",
				"nobody can answer in a run: it waits until its timeout", "give it seconds or minutes, or remove it",
			})
		}
		if source.Scalar(t.Keys["poll"]) == "0" && t.Keys["async"] != nil && source.Scalar(t.Keys["async"]) != "0" && !u.awaited(t) {
			p.add(finding{
				"async", report.Warning, t.Position, "the task " + cmp.Or(t.Name, t.Module) + " has poll: 0, and no ansible.builtin.async_status waits for it",
				"the run waits for the job until its own timeout, and nothing in the content sees whether the job failed", "register its result and wait for it by ansible.builtin.async_status, or give it a poll of some seconds",
			})
		}
	}
	for _, t := range u.Texts {
		for _, output := range t.Analysis.Outputs {
			if slices.ContainsFunc(output.Flows, splitsInventory) {
				p.add(finding{
					"inventory-path", report.Info, t.At(output.Line), "parts of the inventory's path are used in " + quoted(t.Value),
					"the path of the inventory may change: in a directory of another depth, the expression takes other parts", "read the kind and its version from _GROUP_KIND, such as {{ _example_com_memcached.kind }}, and the name from ansible_operator_meta",
				})
				break
			}
		}
	}
}

// shortName adds a module of kubernetes.core by its short name with an argument for which its action plugin is
// needed: ansible-core redirects the name to the module alone.
func (p *Project) shortName(t *source.Task) {
	if !slices.Contains([]string{"k8s", "k8s_scale", "k8s_service"}, t.Module) || slices.Contains(t.Collections, "kubernetes.core") {
		return
	}
	src := source.Scalar(t.Arg("src"))
	var what, why string
	switch {
	case t.Arg("template") != nil:
		what, why = "does not render template", "the module gets no text of the template: it creates an object without a name, or fails"
	case src != "" && !filepath.IsAbs(src) && source.FindFile(t, "files", src) != "":
		what, why = "does not find src in the directory files", "the task fails: the module looks for the file in its working directory"
	default:
		return
	}
	name := "kubernetes.core." + t.Module
	p.addFixable(finding{
		"short-name", report.Error, t.Position, t.Module + " " + what + ": ansible-core redirects the short name to the module without its action plugin",
		why, "write " + name,
	}, []*fix.Edit{renamedTo(t, name)})
}

func splitsInventory(flow reader.Flow) bool {
	name := flow.Name
	if len(flow.Path) > 0 && (name == "hostvars" || name == "vars") {
		name = flow.Path[len(flow.Path)-1]
		for _, part := range flow.Path {
			if strings.HasPrefix(part, "inventory_") {
				name = part
			}
		}
	}
	return (name == "inventory_file" || name == "inventory_dir") && slices.ContainsFunc(flow.Filters, func(f string) bool { return f == ".split" || f == "split" || f == "regex_search" || f == "dirname" })
}

// awaited reports whether a task async_status reads the result of the task.
func (u *Unit) awaited(t *source.Task) bool {
	name := source.Scalar(t.Keys["register"])
	return name != "" && slices.ContainsFunc(u.Texts, func(text *source.Text) bool {
		return text.Task != nil && source.Plain(text.Task.Module) == "async_status" && u.reaches(text, name, 0)
	})
}

// reaches reports whether a text reads the variable, or another that does.
func (u *Unit) reaches(text *source.Text, name string, depth int) bool {
	const most = 5
	return depth < most && slices.ContainsFunc(text.Analysis.Names, func(read reader.Named) bool {
		return read.Name == name || slices.ContainsFunc(u.Defined(read.Name, text.Task), func(d *source.Definition) bool {
			other := u.Text(d.Value)
			return d.Value != nil && other != nil && u.reaches(other, name, depth+1)
		})
	})
}
