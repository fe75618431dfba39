package check

import (
	"path/filepath"
	"strings"

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
	for _, u := range p.Units {
		for _, t := range u.Tasks {
			if severity == report.Warning && rights.Module(t) == "k8s" && t.Arg("template") != nil {
				severity, why = report.Error, "with ansible-core 2.19 and later objects get {{ … }} in their names and values: "+p.at(t.File, t.Line)+" uses template:"
			}
		}
	}
	pinned := false
	add := func(at source.Position, version, remedy string) {
		if excludesNew(version) {
			pinned = true
			p.add(finding{"old-collection", severity, at, "kubernetes.core " + version + " is older than " + oldestCore, why, remedy})
		}
	}
	path := filepath.Join(p.options.Dir, "requirements.yml")
	documents, _ := source.ReadYAML(path)
	for _, document := range documents {
		for _, element := range source.Items(source.Field(document, "collections")) {
			if pin := source.Field(element, "version"); pin != nil && source.Scalar(element, "name") == "kubernetes.core" {
				add(source.Place(path, pin), pin.Value, "raise the version to "+oldestCore+" or later, and install with --force")
			}
		}
	}
	if found := files.FindCollection("kubernetes.core", p.trees...); !pinned && len(found) > 0 {
		add(source.Position{File: filepath.Join(found[0].Dir, "MANIFEST.json")}, found[0].Version, "remove it, or install a newer one with --force")
	}
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
