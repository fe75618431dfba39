package check

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

func (p *Project) relative(file string) string {
	if path, err := filepath.Rel(p.options.Dir, file); err == nil && !strings.HasPrefix(path, "..") {
		return path
	}
	return file
}

// kinds adds what is wrong with a watch and the CRD of its kind.
func (p *Project) kinds(u *Unit) {
	at := source.Position{File: p.watchesFile, Line: u.Watch.Line, Column: 1}
	u.wing.watch(p, u, at)
	var found *schema.CRD
	for i := range p.CRDs {
		if p.CRDs[i].Group == u.Watch.GVK.Group && p.CRDs[i].Kind == u.Watch.GVK.Kind {
			found = &p.CRDs[i]
		}
	}
	if found == nil {
		p.add(finding{
			"no-crd", report.Info, at, "no file below config/ has the CustomResourceDefinition of " + u.Watch.GVK.GroupKind().String(),
			"what depends on the schema of its spec is not checked", "add the CRD, with a schema, to config/crd",
		})
		return
	}
	p.version(u, found, at)
	u.wing.definition(p, u, found, at)
	for _, reference := range u.Watch.References {
		p.path(u, reference.Name, at, ofReference)
		p.path(u, reference.Namespace, at, ofReference)
	}
	p.path(u, u.Watch.ServiceAccount.Path, at, ofAccount)
}

// use is what a path of watches.yaml is for.
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
		if status := source.Field(source.Field(version.Root, "properties"), "status"); source.Field(source.Field(status, "default"), "observedGeneration") == nil {
			p.add(finding{
				"crd", report.Info, source.Position{File: crd.File, Line: version.Line, Column: 1}, "the status of " + crd.Kind + " has no default",
				"helm --wait, Flux and others that use kstatus take a new resource for ready until its first run begins", "add default: {observedGeneration: -1} to the status in the schema",
			})
		}
	}
}

// fields adds fields of the spec that can be no variables.
func (p *Project) fields(u *Unit) {
	v := u.Variables
	for _, name := range slices.Sorted(maps.Keys(v.Keys)) {
		at := source.Position{File: v.File, Line: v.Keys[name].Line, Column: v.Keys[name].Column}
		switch {
		case strings.HasPrefix(name, "ansible_"), strings.HasPrefix(name, "_ansible_"), strings.HasPrefix(name, "__ansible_"), strings.HasPrefix(name, "inventory_"), name == "group_names", name == "omit":
			p.add(finding{
				"refused-name", report.Error, at, "the field " + v.Keys[name].Value + " becomes the variable " + name + ", which controls Ansible itself",
				"a resource with the field is refused: Failure, reason InvalidSpec", "rename the field",
			})
		case slices.Contains(strings.Fields("groups hostvars vars environment playbook_dir play_hosts role_name role_names role_path role_uuid"), name):
			p.add(finding{
				"refused-name", report.Warning, at, "the field " + v.Keys[name].Value + " becomes the variable " + name + ", which Ansible sets itself",
				"the content never sees the field's value under that name", "rename the field, or read it from the variable with the whole spec",
			})
		}
	}
	for _, twice := range v.Twice {
		p.add(finding{
			"refused-name", report.Error, source.Position{File: v.File, Line: twice.Line, Column: twice.Column}, "the field " + twice.Value + " becomes the same variable as another one",
			"a resource with both is refused: Failure, reason InvalidSpec", "rename one of them, or set snakeCaseParameters: false",
		})
	}
}

// path adds a path that the schema does not have.
func (p *Project) path(u *Unit, path watches.Path, watch source.Position, to use) {
	if len(path) == 0 || !u.Variables.Known {
		return
	}
	at := p.referenceLine(path, watch)
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
			"a slip in the path shows only by what does not happen", "name the field in the schema",
		})
	case kind != "" && kind != "string":
		p.add(finding{
			to.id, report.Error, at, fmt.Sprintf("%s of %s is of type %s, and no text", path, u.Watch.GVK.Kind, kind),
			to.empty, "write the path to the name itself" + to.hint,
		})
	}
}

// referenceLine returns the line of a path below the line of its watch.
func (p *Project) referenceLine(path watches.Path, watch source.Position) source.Position {
	documents, _ := source.ReadYAML(p.watchesFile)
	at := watch
	var visit func(n *yaml.Node)
	visit = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && n.Value == path.String() && n.Line >= watch.Line && at == watch {
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
