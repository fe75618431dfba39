package check

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
)

// undefined adds variables that the content reads and nothing defines: where a name is near to
// one that is defined, and where nothing else can define it.
func (p *Project) undefined(u *Unit) {
	known, everywhere := u.known(), p.defined()
	guarded, elsewhere := u.guarded(), u.definesElsewhere() || p.options.Env["ANSIBLE_VARS_PLUGINS"] != ""
	places, sure := u.reads(func(name string) bool { return !known.Has(name) && !everywhere.Has(name) && !magic(name) })
	for _, name := range slices.Sorted(maps.Keys(places)) {
		meant := likely(name, known)
		if u.Variables.Open && strings.TrimSuffix(name, "s") == strings.TrimSuffix(meant, "s") {
			continue // The resource may have the list, and a loop's variable the name of one.
		}
		excused := elsewhere || guarded.Has(name) || u.Variables.Open
		if meant == "" && excused {
			continue
		}
		p.undefinedName(errorIf(sure[name] && !excused), name, meant, places[name])
	}
}

// guarded returns the variables that a text reads only if they are defined.
func (u *Unit) guarded() sets.Set[string] {
	names := sets.New[string]()
	for _, t := range u.Texts {
		names.Insert(t.Analysis.Guarded...)
	}
	return names
}

// reads returns the places, in their order, that read each variable of which wanted is true, and the
// variables that each run reads.
func (u *Unit) reads(wanted func(name string) bool) (places map[string][]source.Position, sure map[string]bool) {
	places, sure = map[string][]source.Position{}, map[string]bool{}
	for _, t := range u.Texts {
		if t.Where == "template" && u.givesTemplateVariables() {
			continue
		}
		for _, n := range t.Analysis.Names {
			if wanted(n.Name) {
				places[n.Name] = append(places[n.Name], t.At(n.Line))
				sure[n.Name] = sure[n.Name] || n.Sure && u.surely(t)
			}
		}
	}
	for _, all := range places {
		slices.SortStableFunc(all, func(a, b source.Position) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
	}
	return places, sure
}

// surely reports whether each run evaluates the text, as far as files tell, and fails if it cannot.
func (u *Unit) surely(t *source.Text) bool {
	if t.Task == nil || t.Definition != nil || !slices.Contains([]string{"args", "template", "loop", "when", "that", "environment"}, t.Where) {
		return false
	}
	for around := t.Task; around != nil; around = around.Parent {
		if around.Unsure || mayBeSkipped(around, t) || mayLoopOverNothing(around, t) ||
			around.Keys["ignore_errors"] != nil || around.Keys["tags"] != nil || around.Keys["rescue"] != nil {
			return false
		}
	}
	return !slices.ContainsFunc(u.Tasks, func(other *source.Task) bool {
		return source.Plain(other.Module) == "meta" && strings.HasPrefix(source.Scalar(other.Args), "end_")
	})
}

// mayBeSkipped reports whether the task or block has a condition that may keep it from evaluating the text. The text
// itself, as the condition or the first of a list, does not.
func mayBeSkipped(around *source.Task, t *source.Text) bool {
	when := around.Keys["when"]
	if when == nil {
		return false
	}
	own := around == t.Task && t.Where == "when" && (t.Node == when || len(when.Content) > 0 && t.Node == when.Content[0])
	return !own
}

// mayLoopOverNothing reports whether the task or block has a loop that may have no items, so that the text is not
// evaluated. The loop's own text is.
func mayLoopOverNothing(around *source.Task, t *source.Text) bool {
	if around.Loop == nil || around == t.Task && t.Where == "loop" {
		return false
	}
	return around.Loop.Kind != yaml.SequenceNode || len(around.Loop.Content) == 0
}

// likely returns the known name that somebody meant, "" if none is near.
func likely(name string, known sets.Set[string]) string {
	switch snake := schema.Snake(name); {
	case name == "meta":
		return "ansible_operator_meta" // So it was called in the first years of Ansible operators.
	case snake != name && known.Has(snake):
		return snake
	}
	meant, _ := suggest.Of(name, known.UnsortedList())
	return meant
}

func (p *Project) undefinedName(severity report.Severity, name, meant string, places []source.Position) {
	remedy := "define it: in the role's defaults, in the schema of the spec, or in vars of the watch"
	message := "nothing defines the variable " + name
	if meant != "" {
		message += "; did you mean " + meant + "?"
		remedy = "correct the name, or define the variable"
	}
	var others []string
	for _, at := range places[1:] {
		if other := p.at(at.File, at.Line); !slices.Contains(others, other) && other != p.at(places[0].File, places[0].Line) {
			others = append(others, other)
		}
	}
	if len(others) > 0 {
		message += fmt.Sprintf(" (also read at %s)", few(others))
	}
	why := "a run that gets here fails, or default() hides the wrong name"
	if severity == report.Error {
		why = "each run fails here"
	}
	p.add(finding{"undefined-variable", severity, places[0], message, why, remedy})
}

// defined returns the variables that the content of any watch defines: one of them may execute a
// part of a role alone, whose variables name results of another part.
func (p *Project) defined() sets.Set[string] {
	names := sets.New[string]()
	for _, u := range p.Units {
		for _, d := range u.Definitions {
			names.Insert(d.Name)
		}
	}
	return names
}

// known returns the variables that something defines for the unit.
func (u *Unit) known() sets.Set[string] {
	names := sets.KeySet(u.Variables.Fields).Union(sets.KeySet(u.Watch.Vars)).Insert(u.Variables.Whole()...)
	names.Insert("ansible_operator_meta", "services", "packages", "mounts") // The last three are facts.
	if u.Watch.Finalizer != nil {
		names = names.Union(sets.KeySet(u.Watch.Finalizer.Vars))
	}
	for _, d := range u.Definitions {
		names.Insert(d.Name)
	}
	for _, t := range u.Tasks {
		if source.Plain(t.Module) == "add_host" {
			addKeys(names, t.Args)
		}
	}
	for _, dir := range u.directories() {
		specs, _ := readSpecs(dir)
		for _, spec := range specs {
			addKeys(names, source.Field(spec, "options"))
		}
	}
	for _, dir := range []string{"group_vars", "host_vars"} {
		for _, parent := range []string{u.Dir, filepath.Dir(u.Dir)} {
			for _, path := range source.Below(filepath.Join(parent, dir)) { // A host's name may have any ending.
				documents, _ := source.ReadYAML(path)
				for _, document := range documents {
					addKeys(names, document)
				}
			}
		}
	}
	return names
}

// readSpecs returns the argument specs of a role by their names, and the file that has them.
func readSpecs(role string) (specs map[string]*yaml.Node, file string) {
	specs = map[string]*yaml.Node{}
	for _, name := range []string{"argument_specs.yml", "argument_specs.yaml", "main.yml"} {
		file = filepath.Join(role, "meta", name)
		documents, _ := source.ReadYAML(file)
		for _, document := range documents {
			for name, spec := range source.Pairs(source.Field(document, "argument_specs")) {
				specs[name.Value] = spec
			}
		}
		if len(specs) > 0 {
			break
		}
	}
	return specs, file
}

func addKeys(names sets.Set[string], n *yaml.Node) {
	for key := range source.Pairs(n) {
		names.Insert(key.Value)
	}
}

// definesElsewhere reports whether something that is not read may define variables: an include
// that only a run knows, a file of variables with such a name, a plugin that gives variables, or a
// module that returns facts.
func (u *Unit) definesElsewhere() bool {
	gives := func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "vars_plugins")); return err == nil }
	return slices.ContainsFunc(u.directories(), gives) || len(u.Unknown) > 0 || len(u.Missing) > 0 || len(u.Faults) > 0 || slices.ContainsFunc(u.Tasks, func(t *source.Task) bool {
		module := source.Plain(t.Module)
		return module == "include_vars" || strings.HasSuffix(module, "_facts") || strings.Contains(module, "{{")
	})
}

// givesTemplateVariables reports whether a lookup gives variables of its own to a template.
func (u *Unit) givesTemplateVariables() bool {
	return slices.ContainsFunc(u.Texts, func(t *source.Text) bool {
		for _, l := range t.Analysis.Lookups {
			if _, given := l.Options["template_vars"]; given {
				return true
			}
		}
		return false
	})
}
