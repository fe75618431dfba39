package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

func (p *Project) relative(file string) string { return report.Relative(p.options.Dir, file) }

// kinds adds faults of a watch and the CRD of its kind.
func (p *Project) kinds(u *Unit) {
	at := source.Position{File: p.watchesFile, Line: u.Watch.Line, Column: 1}
	for _, d := range u.Watch.Dangers() {
		p.add(finding{"mark-unsafe", report.Warning, at, d.Setting + " for " + u.Watch.GVK.Kind, d.Effect, d.Remedy})
	}
	if f := u.Watch.Finalizer; f != nil && !strings.Contains(f.Name, "/") {
		p.add(finding{
			"finalizer-name", report.Info, at, fmt.Sprintf("the name of the finalizer of %s, %s, has no domain", u.Watch.GVK.Kind, f.Name),
			"the API server warns of it, and another operator may choose the same name", "for a new kind write a domain first, as in myapp.example.com/finalizer; resources that have the present name keep it until they are deleted",
		})
	}
	p.statusFrom(u, at)
	found := schema.Of(p.CRDs, u.Watch.GVK.GroupKind())
	if found == nil {
		p.add(finding{
			"no-crd", report.Info, at, "no file below config/ has the CustomResourceDefinition of " + u.Watch.GVK.GroupKind().String(),
			"what depends on the schema of its spec is not checked", "add the CRD, with a schema, to config/crd",
		})
		return
	}
	p.version(u, found, at)
	u.backend.definition(p, u, found, at)
	for _, reference := range u.Watch.References {
		p.path(u, reference.Name, at, ofReference)
		p.path(u, reference.Namespace, at, ofReference)
	}
	p.path(u, u.Watch.ServiceAccount.Path, at, ofAccount)
}

// statusFrom adds children by the plural of their kind.
func (p *Project) statusFrom(u *Unit, watch source.Position) {
	for _, key := range slices.Sorted(maps.Keys(u.Watch.StatusFrom)) {
		child := u.Watch.StatusFrom[key]
		if meant := rights.OfPlural(child.Kind, p.CRDs); meant != "" {
			p.add(finding{
				"watches", report.Warning, p.lineOf(child.Kind+"/"+child.Name, watch), fmt.Sprintf("statusFrom.%s: there is no kind %s; did you mean %s?", key, child.Kind, meant),
				"the status never has the field", "write the kind as manifests have it: " + meant + "/" + child.Name,
			})
		}
	}
}

// use is the use of a path of watches.yaml.
type use struct{ id, empty, hint string }

//nolint:gochecknoglobals // Constants.
var (
	ofReference = use{"reference-path", "the reference is always empty, so that a change of the object triggers nothing", "; [*] stands for the elements of a list"}
	ofAccount   = use{"account-path", "no resource can name its service account, so that each is refused or has the account of serviceAccountName", ""}
)

func (p *Project) version(u *Unit, crd *schema.CRD, at source.Position) {
	version := crd.Version(u.Watch.GVK.Version)
	switch {
	case version == nil || !version.Served:
		p.add(finding{
			"crd", report.Error, at, fmt.Sprintf("%s does not serve the version %s of %s", p.at(crd.File, crd.Line), u.Watch.GVK.Version, crd.Kind),
			"the manager looks for the kind again and again, and nothing runs", "correct the version, or serve it in the CRD",
		})
	case u.Watch.ManageStatus && !version.Status:
		p.add(finding{
			"crd", report.Warning, source.Position{File: crd.File, Line: version.Line, Column: 1}, crd.Kind + " has no status subresource",
			"no outcome of a run is written anywhere but in the log", "add subresources: {status: {}} to the version, or set manageStatus: false",
		})
	case version.Root == nil:
	case u.Watch.ManageStatus:
		if _, found, open := schema.Find(version.Root, []string{"status", "conditions"}, schema.Same); !found && !open {
			p.add(finding{
				"crd", report.Warning, source.Position{File: crd.File, Line: version.Line, Column: 1}, "the schema of " + crd.Kind + " has no status.conditions",
				"the API server drops what the manager writes there, and nobody sees the outcome of a run", "add status with x-kubernetes-preserve-unknown-fields: true, or with conditions",
			})
		}
		if lost := lostOfConditions(version.Root); len(lost) > 0 {
			p.add(finding{
				"crd", report.Warning, source.Position{File: crd.File, Line: version.Line, Column: 1},
				"the schema of " + crd.Kind + " drops fields of status.conditions: " + strings.Join(lost, ", "),
				"the API server drops what the manager writes there, so that a condition says less than it should", "add them to the items of conditions, or x-kubernetes-preserve-unknown-fields: true",
			})
		}
		if source.Field(version.Root, "properties", "status", "default", "observedGeneration") == nil {
			p.add(finding{
				"crd", report.Info, source.Position{File: crd.File, Line: version.Line, Column: 1}, "the status of " + crd.Kind + " has no default",
				"helm --wait, Flux and others that use kstatus take a new resource for ready until its first run begins", "add default: {observedGeneration: -1} to the status in the schema",
			})
		}
	}
}

// lostOfConditions returns the fields of the manager's conditions that objects of the schema cannot have.
func lostOfConditions(root *yaml.Node) (lost []string) {
	if _, found, _ := schema.Find(root, []string{"status", "conditions"}, schema.Same); !found {
		return nil
	}
	for _, field := range []string{"lastTransitionTime", "message", "reason", "status", "type"} {
		if _, found, open := schema.Find(root, []string{"status", "conditions", watches.EachElement, field}, schema.Same); !found && !open {
			lost = append(lost, field)
		}
	}
	return lost
}

// fields adds fields of the spec that cannot be variables: the manager's objections to a resource
// that has all fields of the schema, twins too.
func (p *Project) fields(u *Unit) {
	if !u.Variables.Known {
		return
	}
	probe := u.Variables.Probe()
	var object map[string]any
	if probe.Decode(&object) != nil {
		return
	}
	at := func(path string) source.Position { return source.Place(u.Variables.File, source.At(probe, path)) }
	o := extravars.Options{GVK: u.Watch.GVK, SnakeCase: u.Watch.SnakeCaseParameters, RefuseSops: p.info.HasCollection("community.sops", p.trees...)}
	_, err := extravars.Build(object, o)
	if invalid, ok := errors.AsType[*extravars.InvalidSpecError](err); ok {
		for _, problem := range invalid.Problems {
			paths, _, _ := strings.Cut(problem, ": ")
			p.add(finding{
				"refused-name", report.Error, at(paths[strings.LastIndex(paths, " ")+1:]), problem,
				"a resource with such fields is refused: Failure, reason InvalidSpec", "rename the field; where two names become one, snakeCaseParameters: false helps, too",
			})
		}
	}
	o.Finalizing = true
	dropped, _ := extravars.Build(object, o) // It refuses nothing.
	for _, path := range dropped.Dropped {
		if err == nil || !strings.Contains(err.Error(), path) {
			p.add(finding{
				"refused-name", report.Warning, at(path), path + " becomes a variable that Ansible sets itself",
				"the content never sees the field's value under that name", "rename the field, or read it from the variable with the whole spec",
			})
		}
	}
}

// path adds a path that the schema does not have.
func (p *Project) path(u *Unit, path watches.Path, watch source.Position, to use) {
	if len(path) == 0 || !u.Variables.Known {
		return
	}
	at := p.lineOf(path.String(), watch)
	found, ok, open := u.Variables.Path(path)
	if path[0] == "metadata" {
		return
	}
	kind := schema.Type(found)
	switch {
	case !ok && !open:
		p.add(finding{
			to.id, report.Error, at, fmt.Sprintf("%s has no field %s", u.Watch.GVK.Kind, path),
			to.empty, "correct the path, as the schema in " + p.relative(u.Variables.File) + " names the fields" + to.hint,
		})
	case !ok:
		p.add(finding{
			to.id, report.Warning, at, fmt.Sprintf("the schema of %s does not name the field %s", u.Watch.GVK.Kind, path),
			"nothing reports a wrong path: the field is empty then", "name the field in the schema",
		})
	case kind != "" && kind != "string":
		p.add(finding{
			to.id, report.Error, at, fmt.Sprintf("%s of %s is of type %s, not a string", path, u.Watch.GVK.Kind, kind),
			to.empty, "write the path to the name itself" + to.hint,
		})
	}
}

// lineOf returns the place of a text of watches.yaml below the line of its watch.
func (p *Project) lineOf(text string, watch source.Position) source.Position {
	documents, _ := source.ReadYAML(p.watchesFile)
	at := watch
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Value == text && n.Line >= watch.Line && at == watch {
			at.Line, at.Column = n.Line, n.Column
		}
		for _, child := range n.Content {
			visit(child)
		}
	}
	for _, document := range documents {
		visit(document)
	}
	return at
}
