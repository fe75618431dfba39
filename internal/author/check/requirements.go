package check

import (
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ensign-operator/ensign/internal/ansible/files"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
)

// oldestCore is the first kubernetes.core that renders templates with ansible-core 2.19.
const oldestCore = "5.3.0"

// requirements adds a kubernetes.core that is too old for this ansible-core: a pin of it in
// requirements.yml or, without one, the version that is found first. It is an error if a task needs
// a feature that the old one lacks.
func (p *Project) requirements() {
	severity, why := report.Warning, "it does not render what template: names with ansible-core 2.19 and later; no task of this project uses template:"
	if user := p.templating(); user != nil {
		severity, why = report.Error, "with ansible-core 2.19 and later objects get {{ … }} in their names and values: "+p.at(user.File, user.Line)+" uses template:"
	}
	path := filepath.Join(p.options.Dir, "requirements.yml")
	documents, _ := source.ReadYAML(path)
	pinned := false
	for _, document := range documents {
		list := source.Field(document, "collections")
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, element := range list.Content {
			pin := source.Field(element, "version")
			if source.Scalar(source.Field(element, "name")) == "kubernetes.core" && pin != nil && excludesNew(pin.Value) {
				pinned = true
				p.add(finding{
					"old-collection", severity, source.Position{File: path, Line: pin.Line, Column: pin.Column}, "kubernetes.core " + pin.Value + " is older than " + oldestCore, why,
					"raise the version to " + oldestCore + " or later, and install with --force",
				})
			}
		}
	}
	if found := files.FindCollection("kubernetes.core", p.trees...); !pinned && len(found) > 0 && excludesNew(found[0].Version) {
		p.add(finding{
			"old-collection", severity, source.Position{File: filepath.Join(found[0].Dir, "MANIFEST.json")}, "kubernetes.core " + found[0].Version + " is older than " + oldestCore, why,
			"remove it, or install a newer one with --force",
		})
	}
}

// templating returns a task that leaves rendering a template to kubernetes.core, nil if there is
// none.
func (p *Project) templating() *source.Task {
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			if rights.Module(t) == "k8s" && t.Arg("template") != nil {
				return t
			}
		}
	}
	return nil
}

// excludesNew reports whether the versions that a pin of kubernetes.core allows, such as
// ">=5.0.0,<5.2.0", are all older than the oldest that renders templates.
func excludesNew(pin string) bool {
	oldest := version.MustParseSemantic(oldestCore)
	for term := range strings.SplitSeq(pin, ",") {
		term = strings.TrimSpace(term)
		bound := strings.TrimLeft(term, "=<>! ")
		v, err := version.ParseGeneric(bound)
		if err != nil {
			continue
		}
		switch operator := strings.TrimSpace(strings.TrimSuffix(term, bound)); operator {
		case ">", ">=", "!=":
		case "<":
			if v.LessThan(oldest) || v.EqualTo(oldest) {
				return true
			}
		default:
			if v.LessThan(oldest) {
				return true
			}
		}
	}
	return false
}
