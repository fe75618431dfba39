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

	"github.com/ensign-operator/ensign/internal/ansible/cfgfile"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/reader"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/docslink"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Project is the content of a directory and the results of reading it.
type Project struct {
	Units []*Unit
	CRDs  []schema.CRD

	options     config.Options
	watchesFile string
	env         pyenv.Env
	info        pyenv.Info
	reader      *reader.Reader
	paths       config.Paths
	trees       []string
	findings    []report.Finding
	files       map[string]bool
	tasks       int

	links                              *links
	absentCollections, absentLibraries absences
	// near has names that may be meant by plugins that are not there, as the reader found them.
	near map[string][]string
	// samplesRead are the objects below config/samples.
	samplesRead []*customResource
	// rewrites are conditions of which the fix is not written yet.
	rewrites []rewrite
}

// Unit is the content of a watch with the variables of its kind.
type Unit struct {
	*source.Unit
	*source.Index

	Variables schema.Variables
	backend   backend
}

// newUnit returns the unit of which only the package source has read the content.
func newUnit(unit *source.Unit, crds []schema.CRD) *Unit {
	return &Unit{Unit: unit, Variables: schema.For(unit.Watch, crds), backend: newBackend(unit)}
}

// Load reads the project in the directory o.Dir. Faults of the content become findings; an error
// means that the project can't be read at all.
func Load(ctx context.Context, o config.Options) (*Project, error) {
	p, err := load(ctx, o)
	if p != nil {
		err = errors.Join(err, p.reader.Close())
	}
	return p, err
}

// load is Load with a reader that goes on. The caller closes it, also after an error.
func load(ctx context.Context, o config.Options) (*Project, error) {
	o.Project = true
	o = o.WithAnsibleSettings()
	const extensions = "ANSIBLE_JINJA2_EXTENSIONS" // The reader asks for the variable alone.
	if value, set := cfgfile.Find(o.Env, os.ReadFile).Value("jinja2_extensions", "defaults"); set && o.Env[extensions] == "" {
		o.Env[extensions] = value
	}
	p := &Project{options: o, files: map[string]bool{}, watchesFile: o.WatchesFile, links: newLinks(o.Dir), absentCollections: absences{}, absentLibraries: absences{}}
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
	if p.info, err = p.env.Look(ctx); err != nil {
		return nil, err
	}
	p.paths = o.SearchPaths()
	list := p.loadWatches()
	p.CRDs = schema.Load(filepath.Join(o.Dir, "config"))
	p.files[p.watchesFile] = true
	p.samplesRead = p.sampleFiles()
	for _, unit := range source.Walk(list, source.Search{Dir: o.Dir, Roles: p.paths.Roles, Trees: p.trees, Here: o.InProject}) {
		u := newUnit(unit, p.CRDs)
		p.Units = append(p.Units, u)
		u.backend.load(ctx, p, u)
	}
	for _, dir := range p.playbooks() {
		p.trees = append(p.trees, source.Beside(filepath.Join(dir, "any")))
	}
	if p.reader, err = reader.Start(ctx, p.env, p.trees, p.paths.Roles); err != nil {
		return nil, err
	}
	return p, p.analyse()
}

const noStart = "the manager does not start with this file"

// loadWatches returns the watches. Faults become findings; the other watches are checked. A project with
// a module in Go may reconcile all of its kinds there.
func (p *Project) loadWatches() []watches.Watch {
	collections := slices.Concat(p.paths.DefaultCollections, p.paths.Collections, p.info.CollectionDirs)
	p.trees = watches.Trees(collections)
	list, err := watches.Load(p.watchesFile, watches.Search{
		Dir: p.options.Dir, RolesPath: p.paths.Roles, CollectionsPath: collections, LookupEnv: p.options.Env.Lookup, Here: p.options.InProject,
		OnUnset: func(name string, line int) {
			p.add(finding{
				"watches", report.Info, source.Position{File: p.watchesFile, Line: line, Column: 1}, "the environment variable " + name + " is not set here, and its ${} stays as it is",
				"where the manager does not have it either, the content gets the text with ${}", "give it a default, ${" + name + ":-default}, or set it in config/manager",
			})
		},
	})
	if faults, ok := errors.AsType[watches.Faults](err); ok {
		for _, fault := range faults {
			p.add(finding{
				id: "watches", severity: report.Error, at: source.Position{File: p.watchesFile, Line: fault.Line, Column: min(fault.Line, 1)},
				message: fault.Message, why: noStart, remedy: "see " + docslink.Watches.URL(),
			})
		}
	}
	if err == nil && len(list) == 0 && !p.hasGo() {
		p.add(finding{
			id: "watches", severity: report.Error, at: source.Position{File: p.watchesFile, Line: 1, Column: 1},
			message: watches.EmptyList, why: noStart, remedy: "see " + docslink.Watches.URL(),
		})
	}
	return list
}

// hasGo reports whether the project has a module in Go.
func (p *Project) hasGo() bool {
	_, err := os.Stat(filepath.Join(p.options.Dir, "go.mod"))
	return err == nil
}

// analyse asks the Python environment about all texts, and about the templates that they name.
func (p *Project) analyse() error {
	if err := p.ask(func(u *Unit) []*source.Text { return u.Texts }); err != nil {
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
	const deepest = 10 // Templates may look up others.
	before := map[*Unit]int{}
	for more, depth := true, 0; more && depth < deepest; depth++ {
		more = false
		for _, u := range p.Units {
			before[u] = len(u.Texts)
			u.addTemplates()
			more = more || len(u.Texts) > before[u]
		}
		if err := p.ask(func(u *Unit) []*source.Text { return u.Texts[before[u]:] }); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) ask(which func(*Unit) []*source.Text) error {
	var question reader.Question
	var all []*source.Text
	asked := map[reader.Text]int{} // Many texts stand in several places, and in several units.
	for _, u := range p.Units {
		for _, t := range which(u) {
			text := asText(t)
			if _, known := asked[text]; !known {
				asked[text] = len(question.Texts)
				question.Texts = append(question.Texts, text)
			}
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	answer, err := p.reader.Ask(question)
	if err != nil {
		return err
	}
	for _, t := range all {
		t.Analysis = answer.Texts[asked[asText(t)]]
		t.Analysis.Line = max(t.Analysis.Line, 1)
	}
	return nil
}

func asText(t *source.Text) reader.Text {
	return reader.Text{Text: t.Value, Bare: t.Bare, Delimiters: t.Delimiters}
}

// addTemplates adds the files that template tasks, template arguments and lookups name.
func (u *Unit) addTemplates() {
	seen := map[string]bool{}
	for _, t := range u.Texts {
		seen[t.File] = seen[t.File] || t.Where == "template"
	}
	add := func(task *source.Task, r rendering) {
		for _, path := range r.files(task) {
			if seen[path] {
				continue
			}
			seen[path] = true
			if text, err := os.ReadFile(path); err == nil && len(text) < 1<<20 {
				u.Texts = append(u.Texts, &source.Text{
					Position: source.Position{File: path, Line: 1, Column: 1}, Value: string(text), Where: "template", Task: task, Delimiters: r.delimiters,
				})
			}
		}
	}
	for _, t := range u.Tasks {
		for _, r := range u.renderings(t) {
			add(t, r)
		}
	}
	for _, t := range slices.Clone(u.Texts) {
		for _, l := range t.Analysis.Lookups {
			if source.Plain(l.Plugin) == "template" && len(l.Terms) > 0 {
				literal := func(name string) string { text, _ := l.Options[name].Literal.(string); return text }
				names, _ := u.TermNames(l.Terms[0], t.Task)
				add(cmp.Or(t.Task, u.anyTask()), rendering{names, delimiters(literal)})
			}
		}
	}
}

// files returns the files that a template of the task may be; a text without a task has none.
func (r rendering) files(task *source.Task) (files []string) {
	for _, name := range r.names {
		if task != nil && name != "" && !strings.Contains(name, "{{") {
			files = append(files, source.FindFiles(task, "templates", name)...)
		}
	}
	return files
}

// anyTask stands for the role of a text that no task has.
func (u *Unit) anyTask() *source.Task {
	if len(u.Tasks) == 0 {
		return nil
	}
	return u.Tasks[0]
}

// fromCR reports whether a name is a variable of the custom resource: of its schema or, where
// nothing says which fields there are, one that nobody defines, or that has a default alone.
func (u *Unit) fromCR(name string, defined []*source.Definition) bool {
	if u.Variables.Has(name) {
		return true
	}
	for _, d := range defined {
		if d.How != source.Default || u.Variables.Known {
			return false
		}
	}
	return u.Variables.Open && !magic(name) && u.Watch.Vars[name] == nil
}

// WatchFaults returns an error if watches.yaml has faults.
func (p *Project) WatchFaults() error {
	var faults []error
	for _, f := range p.findings {
		if f.ID == "watches" && f.Severity == report.Error {
			faults = append(faults, fmt.Errorf("%s: %s", f.Place(), f.Message))
		}
	}
	return errors.Join(faults...)
}
