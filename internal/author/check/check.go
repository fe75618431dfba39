package check

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/fix"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/config"
)

// Run checks the project in the directory o.Dir, without a cluster. The error means that it could
// not be checked.
func Run(ctx context.Context, o config.Options) (report.Report, error) { return RunWith(ctx, o, nil) }

// RunWith checks the project also against a cluster, if there is one.
func RunWith(ctx context.Context, o config.Options, c *Cluster) (r report.Report, err error) {
	p, err := load(ctx, o)
	if p != nil {
		defer func() { err = errors.Join(err, p.reader.Close()) }()
	}
	if err != nil {
		return report.Report{}, err
	}
	loaded, err := p.installed(ctx)
	if err != nil {
		return report.Report{}, err
	}
	for _, u := range p.Units {
		p.faults(u)
		p.ofTasks(u)
		p.expressions(u)
		p.injections(u)
		p.convertedKeys(u)
		p.reservedNames(u)
		p.variables(u)
		p.undefined(u)
		p.unknownFields(u)
		p.argumentSpec(u)
		p.missingFiles(u)
		p.hosts(u)
		p.objects(u)
		p.handlers(u)
		p.deletes(u)
		p.ready(u)
		p.kinds(u)
		p.namespaces(u)
	}
	p.openSchemas()
	p.syntax(loaded)
	p.requirements()
	p.grants()
	if c != nil {
		if err := p.cluster(ctx, *c); err != nil {
			return report.Report{}, err
		}
	}
	if err := p.rewriteConditions(); err != nil {
		return report.Report{}, err
	}
	r = report.New(p.findings)
	read := map[string]bool{}
	for file := range p.files {
		read[p.links.name(file)] = true
	}
	r.Files, r.Tasks = len(read), p.tasks
	return r, nil
}

// errorIf returns the severity of a finding that is an error where that is certain.
func errorIf(certain bool) report.Severity {
	if certain {
		return report.Error
	}
	return report.Warning
}

// finding is a report.Finding in the making.
type finding struct {
	id       string
	severity report.Severity
	at       source.Position
	message  string
	why      string
	remedy   string
}

func (p *Project) add(f finding) {
	words := strings.Fields(f.message)
	for n, word := range words {
		path := strings.TrimRight(word, ",;:")
		if filepath.IsAbs(path) {
			words[n] = p.relative(p.links.name(path)) + word[len(path):]
		}
	}
	p.findings = append(p.findings, report.Finding{
		ID: f.id, Severity: f.severity, File: p.links.name(f.at.File), Line: f.at.Line, Column: f.at.Column,
		Message: strings.Join(words, " "), Why: f.why, Remedy: f.remedy,
	})
}

// addFixable adds a finding that edits of scalars end.
func (p *Project) addFixable(f finding, edits []*fix.Edit) {
	p.add(f)
	p.findings[len(p.findings)-1].Fix = edits
}

// faults adds the faults that the walk and Jinja's parser found.
func (p *Project) faults(u *Unit) {
	for _, f := range u.Faults {
		p.add(finding{
			"syntax", report.Error, f.Position, f.Message,
			"a run that gets here ends with it", "correct the file; ansible-playbook --syntax-check says the same",
		})
	}
	for _, f := range u.Missing {
		p.add(finding{
			"missing-file", report.Warning, f.Position, f.Message,
			"a run that gets here fails", "correct the name, or add the file",
		})
	}
	for _, f := range slices.Concat(u.Unknown, u.Guessed) {
		p.add(finding{
			"include", report.Info, f.Position, f.Message,
			"a run may include other files than those that were checked, and rbac does not see the rights that they need", "name the files literally, for example in a loop over a list",
		})
	}
	for _, t := range u.Texts {
		if t.Analysis.Error != "" && slices.Contains(conditions, t.Where) && strings.Contains(t.Value, "{{") {
			continue // See condition.
		}
		if t.Analysis.Error != "" && t.Where != "template" {
			p.add(finding{
				"jinja", report.Error, t.At(t.Analysis.Line), "Jinja cannot read this: " + t.Analysis.Error,
				"the task fails as soon as it is reached", "correct the template",
			})
		} else if t.Analysis.Error != "" {
			p.add(finding{
				"jinja", report.Warning, t.At(t.Analysis.Line), "Jinja cannot read this with its usual delimiters: " + t.Analysis.Error,
				"the template fails unless the task sets other delimiters", "correct the template",
			})
		}
	}
}

// magic reports whether Ansible or Jinja itself defines the name.
func magic(name string) bool {
	return strings.HasPrefix(name, "ansible_") || strings.HasPrefix(name, "_ansible") || slices.Contains(magicNames, name)
}

//nolint:gochecknoglobals // A constant.
var magicNames = strings.Fields(`item inventory_hostname inventory_hostname_short inventory_dir inventory_file group_names groups hostvars
	omit lookup query q now undef playbook_dir play_hosts role_name role_names role_path role_uuid vars environment range dict lipsum
	cycler joiner namespace loop true false none True False None self super caller varargs kwargs template_path template_fullpath
	template_host template_uid template_run_date template_destpath ansible_managed template_mtime`)
