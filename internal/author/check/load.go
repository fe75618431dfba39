package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/content"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/manual"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Project is the content of a directory and what is known of it.
type Project struct {
	Units []*Unit
	CRDs  []schema.CRD

	options     config.Options
	watchesFile string
	env         pyenv.Env
	info        pyenv.Info
	trees       []string
	findings    []report.Finding
	files       map[string]bool
	tasks       int
	// near has names that may be meant by plugins that are not there, as the reader found them.
	near map[string][]string
}

// Unit is the content of a watch with the variables of its kind.
type Unit struct {
	*content.Unit
	*content.Index

	Variables schema.Variables
	// Objects are what a chart renders for the samples of the kind, and with its own values.
	Objects []describe.Object
}

// Load reads the project in the directory o.Dir. What is wrong with the content becomes a
// finding; an error means that the project can't be read at all.
func Load(ctx context.Context, o config.Options) (*Project, error) {
	p := &Project{options: o, files: map[string]bool{}, watchesFile: o.WatchesFile}
	if !filepath.IsAbs(p.watchesFile) {
		p.watchesFile = filepath.Join(o.Dir, p.watchesFile)
	}
	if _, err := os.Stat(p.watchesFile); err != nil {
		return nil, fmt.Errorf("%s: there is no such file; name the project's directory, or the file by --watches-file", p.watchesFile)
	}
	var err error
	if p.env, err = pyenv.Find(pyenv.Search{Dir: o.Dir, Executable: o.Executable, Environ: o.Env.List()}); err != nil {
		return nil, err
	}
	if p.info, err = p.env.Inspect(ctx); err != nil {
		return nil, err
	}
	list, roles := p.loadWatches()
	p.CRDs = schema.Load(filepath.Join(o.Dir, "config"))
	p.files[p.watchesFile] = true
	for _, unit := range content.Walk(list, content.Search{Dir: o.Dir, Roles: roles, Trees: p.trees}) {
		u := &Unit{Unit: unit, Variables: schema.For(unit.Watch, p.CRDs)}
		p.Units = append(p.Units, u)
		if u.Watch.Chart != nil {
			p.chart(ctx, u)
		}
	}
	return p, p.analyse(ctx, roles)
}

// loadWatches returns the watches, and the directories with roles. Faults become findings.
// With one there are no watches, and the content is not checked.
func (p *Project) loadWatches() ([]watches.Watch, []string) {
	paths := p.options.SearchPaths()
	collections := slices.Concat(paths.DefaultCollections, paths.Collections, p.info.CollectionDirs)
	for _, dir := range collections {
		if filepath.Base(dir) != "ansible_collections" {
			dir = filepath.Join(dir, "ansible_collections")
		}
		p.trees = append(p.trees, dir)
	}
	list, err := watches.Load(p.watchesFile, watches.Search{
		Dir: p.options.Dir, RolesPath: paths.Roles, CollectionsPath: collections, LookupEnv: p.options.Env.Lookup,
	})
	if faults, ok := errors.AsType[watches.Faults](err); ok {
		for _, fault := range faults {
			p.add(finding{
				id: "watches", severity: report.Error, at: content.Position{File: p.watchesFile, Line: fault.Line, Column: min(fault.Line, 1)},
				message: fault.Message, why: "the manager does not start with this file", remedy: "see " + manual.Watches.URL(),
			})
		}
	}
	return list, paths.Roles
}

// analyse asks the Python environment about all texts, and about the templates that they name.
func (p *Project) analyse(ctx context.Context, roles []string) error {
	if err := p.ask(ctx, roles, func(u *Unit) []*content.Text { return u.Texts }); err != nil {
		return err
	}
	for _, u := range p.Units {
		u.Index = u.Unit.Index()
		u.FromCR = u.fromCR
		p.tasks += len(u.Tasks)
		for _, t := range u.Tasks {
			p.files[t.File] = true
		}
		for _, d := range u.Definitions {
			p.files[d.File] = true
		}
	}
	before := map[*Unit]int{}
	for _, u := range p.Units {
		before[u] = len(u.Texts)
		u.addTemplates()
	}
	return p.ask(ctx, roles, func(u *Unit) []*content.Text { return u.Texts[before[u]:] })
}

func (p *Project) ask(ctx context.Context, roles []string, which func(*Unit) []*content.Text) error {
	var question reader.Question
	var all []*content.Text
	for _, u := range p.Units {
		for _, t := range which(u) {
			all = append(all, t)
			question.Texts = append(question.Texts, reader.Text{Text: t.Value, Bare: t.Bare})
		}
	}
	if len(all) == 0 {
		return nil
	}
	answer, err := reader.Ask(ctx, p.env, question, p.trees, roles)
	if err != nil {
		return err
	}
	for i, t := range all {
		t.Analysis = answer.Texts[i]
		t.Analysis.Line = max(t.Analysis.Line, 1)
	}
	return nil
}

// addTemplates adds the files that template tasks, template arguments and lookups name.
func (u *Unit) addTemplates() {
	seen := map[string]bool{}
	add := func(task *content.Task, name string) {
		if path := u.templateFile(task, name); path != "" && !seen[path] {
			seen[path] = true
			if text, err := os.ReadFile(path); err == nil && len(text) < 1<<20 {
				u.Texts = append(u.Texts, &content.Text{Position: content.Position{File: path, Line: 1, Column: 1}, Value: string(text), Where: "template", Task: task})
			}
		}
	}
	for _, t := range u.Tasks {
		for _, name := range u.templates(t) {
			add(t, name)
		}
	}
	for _, t := range slices.Clone(u.Texts) {
		for _, l := range t.Analysis.Lookups {
			if content.Plain(l.Plugin) == "template" && len(l.Terms) > 0 {
				for _, name := range u.terms(l.Terms[0], t.Task) {
					add(cmp.Or(t.Task, u.anyTask()), name)
				}
			}
		}
	}
}

func (u *Unit) templateFile(task *content.Task, name string) string {
	switch {
	case name == "" || strings.Contains(name, "{{"):
		return ""
	case task != nil:
		return content.FindFile(task, "templates", name)
	default:
		return existing(filepath.Join(u.Dir, "templates", name))
	}
}

// anyTask stands for the role of a text that no task has.
func (u *Unit) anyTask() *content.Task {
	if len(u.Tasks) == 0 {
		return nil
	}
	return u.Tasks[0]
}

func existing(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path
	}
	return ""
}

// fromCR reports whether a name is a variable of the custom resource: of its schema or, where
// nothing says which fields there are, one that nobody defines, or that has a default alone.
func (u *Unit) fromCR(name string, defined []*content.Definition) bool {
	if u.Variables.Has(name) {
		return true
	}
	for _, d := range defined {
		if d.How != content.Default || u.Variables.Known {
			return false
		}
	}
	return u.Variables.Open && !magic(name) && u.Watch.Vars[name] == nil
}

// WatchFaults returns an error if watches.yaml has faults.
func (p *Project) WatchFaults() error {
	var faults []error
	for _, f := range p.findings {
		if f.ID == "watches" {
			faults = append(faults, fmt.Errorf("%s: %s", f.Place(), f.Message))
		}
	}
	return errors.Join(faults...)
}
