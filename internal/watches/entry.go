package watches

import (
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The defaults that are a watch's own. What is the manager's to default stays
// at its zero value.
const (
	defaultTimeout            = time.Hour
	defaultMaxRunnerArtifacts = 20
)

// draft is a watch while it is read.
type draft struct {
	Watch
	group, version, kind located
	content              contentDraft
	verbosity            int
	finalizer            *finalizerDraft
}

type contentDraft struct {
	role, playbook located
}

type finalizerDraft struct {
	line    int
	name    located
	content contentDraft
	vars    map[string]any
}

// watch reads one entry. The second result is false where the entry has no
// kind that others could be compared with.
func (r *reader) watch(n *yaml.Node, search Search) (Watch, bool) {
	if resolved(n).Kind != yaml.MappingNode {
		r.fault(n.Line, "found %s; a watch is a mapping with version, kind and role or playbook", shown(resolved(n)))
		return Watch{}, false
	}
	d := &draft{verbosity: -1, Watch: Watch{
		Line:                    n.Line,
		ManageStatus:            true,
		WatchDependentResources: true,
		SnakeCaseParameters:     true,
		MarkUnsafe:              true,
		Warm:                    true,
		Selector:                labels.Everything(),
		MaxRunnerArtifacts:      defaultMaxRunnerArtifacts,
		Timeout:                 defaultTimeout,
	}}
	r.fields(resolved(n), "a watch", r.watchFields(d))
	if d.verbosity >= 0 {
		d.Verbosity = &d.verbosity
	}
	named := r.gvk(d)
	d.Content = r.content(search, "the watch", d.Line, d.content)
	d.Finalizer = r.finalizer(d, search)
	return d.Watch, named
}

func (r *reader) watchFields(d *draft) map[string]setter {
	return map[string]setter{
		"group":                       r.text(&d.group),
		"version":                     r.text(&d.version),
		"kind":                        r.text(&d.kind),
		"role":                        r.text(&d.content.role),
		"playbook":                    r.text(&d.content.playbook),
		"vars":                        r.vars(&d.Vars),
		"finalizer":                   r.finalizerField(d),
		"reconcilePeriod":             r.duration(&d.ReconcilePeriod),
		"manageStatus":                r.flag(&d.ManageStatus),
		"watchDependentResources":     r.flag(&d.WatchDependentResources),
		"watchClusterScopedResources": r.flag(&d.WatchClusterScopedResources),
		"blacklist":                   r.list(r.blacklisted(d)),
		"references":                  r.list(r.reference(d)),
		"watchAnnotationsChanges":     r.flag(&d.WatchAnnotationsChanges),
		"snakeCaseParameters":         r.flag(&d.SnakeCaseParameters),
		"confineToNamespace":          r.flag(&d.ConfineToNamespace),
		"markUnsafe":                  r.flag(&d.MarkUnsafe),
		"selector":                    r.selector(&d.Selector),
		"maxRunnerArtifacts":          r.integer(&d.MaxRunnerArtifacts, 0, -1),
		"timeout":                     r.duration(&d.Timeout),
		"maxConcurrentReconciles":     r.integer(&d.MaxConcurrentReconciles, 1, -1),
		"verbosity":                   r.integer(&d.verbosity, 0, 7),
		"warm":                        r.flag(&d.Warm),
	}
}

// gvk checks the kind's three names as an API server would.
func (r *reader) gvk(d *draft) bool {
	before := len(r.faults)
	r.required("version", d.version, d.Line, "v1")
	r.required("kind", d.kind, d.Line, "MySQLCluster")
	r.named("group", d.group, validation.IsDNS1123Subdomain(d.group.text), "an API group such as myapp.example.com: lower-case letters, digits, dashes and dots, without the version")
	r.named("version", d.version, validation.IsDNS1035Label(d.version.text), "an API version such as v1 or v1beta1, without the group")
	r.named("kind", d.kind, validation.IsDNS1035Label(strings.ToLower(d.kind.text)), "a kind such as MySQLCluster: letters and digits")
	d.GVK.Group, d.GVK.Version, d.GVK.Kind = d.group.text, d.version.text, d.kind.text
	return len(r.faults) == before && d.kind.text != "" && d.version.text != ""
}

func (r *reader) finalizerField(d *draft) setter {
	return func(field string, n *yaml.Node) {
		f := &finalizerDraft{line: n.Line}
		if resolved(n).Kind == yaml.MappingNode {
			d.finalizer = f
		}
		r.mapping("a finalizer", map[string]setter{
			"name":     r.text(&f.name),
			"role":     r.text(&f.content.role),
			"playbook": r.text(&f.content.playbook),
			"vars":     r.vars(&f.vars),
		})(field, n)
	}
}

// finalizer is what the draft says; a finalizer without content has the
// watch's.
func (r *reader) finalizer(d *draft, search Search) *Finalizer {
	f := d.finalizer
	if f == nil {
		return nil
	}
	finalizer := &Finalizer{Name: f.name.text, Content: d.Content, Vars: f.vars}
	r.required("the finalizer's name", f.name, f.line, "myapp.example.com/finalizer")
	r.named("the finalizer's name", f.name, validation.IsQualifiedName(f.name.text), "a domain, a slash and a name, such as myapp.example.com/finalizer")
	switch f.name.text {
	case metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, "kubernetes":
		r.fault(f.name.line, "the finalizer's name: %q is Kubernetes' own; write one such as myapp.example.com/finalizer", f.name.text)
	}
	if f.content.role.given() || f.content.playbook.given() {
		finalizer.Content = r.content(search, "the finalizer", f.line, f.content)
	}
	return finalizer
}

// selector reads a metav1.LabelSelector.
func (r *reader) selector(into *labels.Selector) setter {
	return func(field string, n *yaml.Node) {
		var all metav1.LabelSelector
		before := len(r.faults)
		r.mapping("a label selector", map[string]setter{
			"matchLabels":      r.matchLabels(&all),
			"matchExpressions": r.list(r.matchExpression(&all)),
		})(field, n)
		if len(r.faults) > before {
			return
		}
		selector, err := metav1.LabelSelectorAsSelector(&all)
		if err != nil {
			r.fault(n.Line, "%s: %v; write labels and values as kubectl does", field, err)
			return
		}
		*into = selector
	}
}

func (r *reader) matchLabels(into *metav1.LabelSelector) setter {
	return func(field string, n *yaml.Node) {
		m := resolved(n)
		if m.Kind != yaml.MappingNode {
			r.wrong(field, n, "a mapping of labels to values")
			return
		}
		into.MatchLabels = map[string]string{}
		for _, p := range r.pairs(m) {
			var value located
			r.text(&value)(field+"."+p.key, p.value)
			into.MatchLabels[p.key] = value.text
			one := &metav1.LabelSelector{MatchLabels: map[string]string{p.key: value.text}}
			if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
				r.fault(p.line, "%s: %v; write labels and values as kubectl does", field, err)
			}
		}
	}
}

func (r *reader) matchExpression(into *metav1.LabelSelector) setter {
	return func(field string, n *yaml.Node) {
		var key, operator located
		var values []string
		r.mapping("an expression of a label selector", map[string]setter{
			"key":      r.text(&key),
			"operator": r.text(&operator),
			"values": r.list(func(field string, n *yaml.Node) {
				var value located
				r.text(&value)(field, n)
				values = append(values, value.text)
			}),
		})(field, n)
		requirement := metav1.LabelSelectorRequirement{
			Key: key.text, Operator: metav1.LabelSelectorOperator(operator.text), Values: values,
		}
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			r.fault(n.Line, "%s: %v; write key, an operator (In, NotIn, Exists, DoesNotExist) and values", field, err)
			return
		}
		into.MatchExpressions = append(into.MatchExpressions, requirement)
	}
}
