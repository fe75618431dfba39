package watches

import (
	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// AnsibleAnnotations is the prefix of the annotations of CRs whose content is a role or playbook.
const AnsibleAnnotations = "ansible.sdk.operatorframework.io/"

const defaultMaxRunnerArtifacts = 20

var ansibleKind = ContentKind{ //nolint:gochecknoglobals // A constant that Go cannot write as one.
	Heading:          "Ansible Run",
	Once:             true,
	AnnotationPrefix: AnsibleAnnotations,
	Annotations:      []string{"max-runner-artifacts", "verbosity"},
	marks: func(cr *unstructured.Unstructured) bool {
		conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
		for _, c := range conditions {
			if condition, ok := c.(map[string]any); ok && condition["ansibleResult"] != nil {
				return true
			}
		}
		return false
	},
}

type rawContent struct {
	role, playbook textField
}

type rawFinalizer struct {
	line    int
	name    textField
	content rawContent
	vars    map[string]any
}

// ansibleFields declares the fields of a watch whose content is a role or playbook.
func (p *parser) ansibleFields(d *rawWatch) contentFields {
	d.SnakeCaseParameters, d.MarkUnsafe, d.Warm, d.MaxRunnerArtifacts, d.verbosity = true, true, true, defaultMaxRunnerArtifacts, -1
	return contentFields{
		has:     "role or playbook",
		chooses: []string{"role", "playbook"},
		parsers: map[string]fieldParser{
			"role":                    p.text(&d.content.role),
			"playbook":                p.text(&d.content.playbook),
			"vars":                    p.vars(&d.Vars),
			"finalizer":               p.finalizer(d),
			"manageStatus":            p.boolean(&d.ManageStatus),
			"blacklist":               p.list(p.blacklisted(d)),
			"watchAnnotationsChanges": p.boolean(&d.WatchAnnotationsChanges),
			"snakeCaseParameters":     p.boolean(&d.SnakeCaseParameters),
			"markUnsafe":              p.boolean(&d.MarkUnsafe),
			"maxRunnerArtifacts":      p.integer(&d.MaxRunnerArtifacts, 0, -1),
			"verbosity":               p.integer(&d.verbosity, 0, 7),
			"warm":                    p.boolean(&d.Warm),
		},
		complete: func(search Search) {
			if d.verbosity >= 0 {
				d.Verbosity = &d.verbosity
			}
			d.Content = p.findContent(search, "the watch", d.Line, d.content)
			d.Finalizer = p.buildFinalizer(d, search)
		},
	}
}

func (p *parser) finalizer(d *rawWatch) fieldParser {
	return func(field string, n *yaml.Node) {
		f := &rawFinalizer{line: n.Line}
		if followAlias(n).Kind == yaml.MappingNode {
			d.finalizer = f
		}
		p.mapping("a finalizer", map[string]fieldParser{
			"name":     p.text(&f.name),
			"role":     p.text(&f.content.role),
			"playbook": p.text(&f.content.playbook),
			"vars":     p.vars(&f.vars),
		})(field, n)
	}
}

// buildFinalizer returns the finalizer that the entry describes, nil if there is none. A
// finalizer without content of its own has the watch's.
func (p *parser) buildFinalizer(d *rawWatch, search Search) *Finalizer {
	f := d.finalizer
	if f == nil {
		return nil
	}
	finalizer := &Finalizer{Name: f.name.text, Content: d.Content, Vars: f.vars}
	p.required("the finalizer's name", f.name, f.line, "myapp.example.com/finalizer")
	p.validName("the finalizer's name", f.name, validation.IsQualifiedName(f.name.text), "a domain, a slash and a name, such as myapp.example.com/finalizer")
	switch f.name.text {
	case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes":
		p.addFault(f.name.line, "the finalizer's name: %q is Kubernetes' own; write one such as myapp.example.com/finalizer", f.name.text)
	}
	if f.content.role.isSet() || f.content.playbook.isSet() {
		finalizer.Content = p.findContent(search, "the finalizer", f.line, f.content)
	}
	return finalizer
}
