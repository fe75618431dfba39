package check

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/report"
	definitions "github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// customResource is a CR that a file of the project has.
type customResource struct {
	file   string
	node   *yaml.Node
	gvk    schema.GroupVersionKind
	object map[string]any // as the API server would have it
	faulty bool           // the API server does not take it as it is
}

// at returns the position of a path such as spec.users[0].name, or of the nearest node.
func (c *customResource) at(path string) source.Position {
	return source.Place(c.file, source.At(c.node, path))
}

// customResources adds the faults of the CRs below config/samples and of those that Molecule's
// converge.yml applies, and returns them.
func (p *Project) customResources(ctx context.Context) []*customResource {
	validators := map[schema.GroupVersionKind]*definitions.Validator{}
	all := append(slices.Clone(p.samplesRead), p.converging()...)
	all = slices.DeleteFunc(all, func(c *customResource) bool { return !p.isDefined(c) })
	for _, c := range all {
		validator, asked := validators[c.gvk]
		if !asked {
			validator = p.validator(c.gvk)
			validators[c.gvk] = validator
		}
		if validator != nil {
			p.compare(ctx, c, validator)
		}
	}
	return all
}

// validator returns the validator of a kind; faults of its definition become a finding.
func (p *Project) validator(gvk schema.GroupVersionKind) *definitions.Validator {
	crd := definitions.Of(p.CRDs, gvk.GroupKind())
	validator, err := crd.Validator(gvk.Version)
	if err != nil {
		p.add(finding{
			"crd", report.Error, source.Position{File: crd.File, Line: crd.Line, Column: 1}, crd.Kind + ": " + err.Error(),
			"the API server refuses the CRD", "correct the schema",
		})
	}
	return validator
}

// isDefined reports whether the project defines the kind of a CR. It adds a CR of which the
// project defines the group alone.
func (p *Project) isDefined(c *customResource) bool {
	var kinds, versions []string
	for _, crd := range p.CRDs {
		if crd.Group != c.gvk.Group {
			continue
		}
		kinds = append(kinds, crd.Kind)
		if crd.Kind == c.gvk.Kind {
			if v := crd.Version(c.gvk.Version); v != nil && v.Served {
				return true
			}
			versions = append(versions, p.at(crd.File, crd.Line))
		}
	}
	switch {
	case kinds == nil:
	case versions != nil:
		p.add(finding{
			"sample", report.Error, c.at("apiVersion"), fmt.Sprintf("%s does not serve the version %s of %s", versions[0], c.gvk.Version, c.gvk.Kind),
			"the API server does not take it", "correct the version, or serve it in the CRD",
		})
	default:
		message := fmt.Sprintf("no CRD below config/ has the kind %s of %s", c.gvk.Kind, c.gvk.Group) + suggest.Slip(c.gvk.Kind, kinds)
		remedy := "correct the kind, or add its CRD"
		if p.hasGo() {
			remedy = "run `make manifests`, which writes the CRDs of the kinds in Go, or correct the kind"
		}
		p.add(finding{"sample", report.Error, c.at("kind"), message, "the API server does not take it", remedy})
	}
	return false
}

// compare adds the fields of a CR that the API server drops or refuses.
func (p *Project) compare(ctx context.Context, c *customResource, v *definitions.Validator) {
	templated := templated(c.node)
	problem := func(problem definitions.Problem, why, remedy string) {
		c.faulty = true
		p.add(finding{"sample", report.Error, c.at(problem.Path), problem.Message, why, remedy})
	}
	for _, dropped := range v.Dropped(c.object) {
		problem(dropped, "the API server drops the field, and the content never sees it", "correct the name, or add the field to the schema")
	}
	applied, _ := withoutNulls(c.object).(map[string]any)
	v.Complete(c.object)
	v.Complete(applied)
	refused := v.Problems(ctx, applied, len(templated) == 0)
	for _, one := range refused {
		if !slices.Contains(templated, one.Path) { // Else only a run knows the value.
			problem(one, "the API server refuses the resource", "correct the sample, or the schema")
		}
	}
	for _, one := range v.Problems(ctx, c.object, len(templated) == 0) {
		if len(refused) == 0 && !slices.Contains(templated, one.Path) {
			p.add(finding{
				"sample", report.Warning, c.at(one.Path), one.Message,
				"kubectl apply leaves null out; kubectl create, server-side apply and the module kubernetes.core.k8s send it, and the API server refuses it", "leave the field out of the sample",
			})
		}
	}
}

// withoutNulls returns a copy of a value without the keys that are null, as kubectl apply sends a new object.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			if inner != nil {
				kept[key] = withoutNulls(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutNulls(inner)
		}
		return kept
	}
	return value
}

// templated returns the paths of the values that have templates.
func templated(root *yaml.Node) (paths []string) {
	var visit func(n *yaml.Node, path string)
	visit = func(n *yaml.Node, path string) {
		switch n.Kind {
		case yaml.MappingNode:
			for key, value := range source.Pairs(n) {
				visit(value, strings.TrimPrefix(path+"."+key.Value, "."))
			}
		case yaml.SequenceNode:
			for i, element := range n.Content {
				visit(element, fmt.Sprintf("%s[%d]", path, i))
			}
		case yaml.ScalarNode:
			if strings.Contains(n.Value, "{{") || strings.Contains(n.Value, "{%") {
				paths = append(paths, path)
			}
		}
	}
	visit(root, "")
	return paths
}

// sampleFiles returns the objects of the files below config/samples.
func (p *Project) sampleFiles() []*customResource {
	var found []*customResource
	for _, path := range source.Below(filepath.Join(p.options.Dir, "config", "samples"), ".yaml", ".yml") {
		documents, fault := source.ReadYAML(path)
		if fault != nil {
			p.add(finding{"sample", report.Error, fault.Position, fault.Message, "nobody can apply the file", "correct the file"})
		}
		for _, document := range documents {
			found = append(found, objectsIn(path, document)...)
		}
	}
	return found
}

// converging returns the objects that the tasks of Molecule's converge.yml apply.
func (p *Project) converging() []*customResource {
	files, _ := filepath.Glob(filepath.Join(p.options.Dir, "molecule", "*", "converge.y*ml")) // The pattern is well-formed.
	var found []*customResource
	for _, file := range files {
		watch := watches.Watch{Content: watches.Content{Playbook: file}}
		for _, unit := range source.Walk([]watches.Watch{watch}, source.Search{Dir: p.options.Dir, Trees: p.trees}) {
			for _, t := range unit.Tasks {
				if !strings.HasPrefix(t.File, filepath.Dir(file)+string(filepath.Separator)) || source.Scalar(t.Arg("state")) == "absent" {
					continue
				}
				found = append(found, objectsIn(t.File, t.Arg("definition", "resource_definition", "inline"))...)
				if name := source.Scalar(t.Arg("src")); name != "" {
					file := source.FindFile(t, "files", name)
					documents, _ := source.ReadYAML(file)
					for _, document := range documents {
						found = append(found, objectsIn(file, document)...)
					}
				}
			}
		}
	}
	return found
}

var group = regexp.MustCompile(`^[a-z0-9.-]+/v[a-z0-9]+$`)

// objectsIn returns the objects of a document, or of a list of them, that may be CRs.
func objectsIn(file string, n *yaml.Node) []*customResource {
	var found []*customResource
	for _, element := range source.Items(n) {
		found = append(found, objectsIn(file, element)...)
	}
	version, kind := source.Scalar(n, "apiVersion"), source.Scalar(n, "kind")
	if !group.MatchString(version) || kind == "" {
		return found
	}
	c := &customResource{file: file, node: n, gvk: schema.FromAPIVersionAndKind(version, kind)}
	var err error
	if c.object, err = definitions.Object(n); err != nil {
		return nil
	}
	return []*customResource{c}
}
