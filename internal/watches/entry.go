package watches

import (
	"maps"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// defaultTimeout is a default that no flag sets. A field whose default comes from a flag stays at
// its zero value.
const defaultTimeout = time.Hour

// rawWatch holds the fields of an entry as they are parsed, before they are checked
// together.
type rawWatch struct {
	Watch
	group, version, kind textField
	content              rawContent
	verbosity            int
	finalizer            *rawFinalizer
	chart                rawChart
	job                  rawJob
	account, accountPath textField
	ready                textField
	// lines holds the line of each field that the entry has.
	lines map[string]int
}

// parseWatch parses one entry. The second result reports whether the entry has a valid
// kind.
func (p *parser) parseWatch(n *yaml.Node, search Search) (Watch, bool) {
	if followAlias(n).Kind != yaml.MappingNode {
		p.addFault(n.Line, "found %s; a watch is a mapping with version, kind and role, playbook or chart", describe(followAlias(n)))
		return Watch{}, false
	}
	d := &rawWatch{lines: map[string]int{}, Watch: Watch{
		Line:                    n.Line,
		ManageStatus:            true,
		WatchDependentResources: true,
		Selector:                labels.Everything(),
		Timeout:                 defaultTimeout,
	}}
	kinds := p.contentFields(d)
	p.parseFields(followAlias(n), "a watch", recordLines(p.watchFields(d, kinds), d.lines))
	valid := p.validateGVK(d)
	p.completeServiceAccount(d)
	p.completeJob(d)
	d.Ready = d.ready.text
	p.checkHealth(d)
	p.completeContent(d, kinds, search)
	return d.Watch, valid
}

// watchFields returns the fields of a watch: those of every watch, and those of each kind of content.
func (p *parser) watchFields(d *rawWatch, kinds []contentFields) map[string]fieldParser {
	fields := map[string]fieldParser{
		"group":                       p.text(&d.group),
		"version":                     p.text(&d.version),
		"kind":                        p.text(&d.kind),
		"reconcilePeriod":             p.duration(&d.ReconcilePeriod),
		"health":                      p.health(d),
		"statusFrom":                  p.statusFrom(d),
		"ready":                       p.oneOf(&d.ready, "manager", "content"),
		"watchDependentResources":     p.boolean(&d.WatchDependentResources),
		"watchClusterScopedResources": p.boolean(&d.WatchClusterScopedResources),
		"references":                  p.list(p.reference(d)),
		"confineToNamespace":          p.boolean(&d.ConfineToNamespace),
		"serviceAccountName":          p.text(&d.account),
		"serviceAccountNamePath":      p.text(&d.accountPath),
		"selector":                    p.selector(&d.Selector),
		"timeout":                     p.duration(&d.Timeout),
		"maxConcurrentReconciles":     p.integer(&d.MaxConcurrentReconciles, 1, -1),
		"executor":                    p.oneOf(&d.job.executor, executorLocal, executorJob),
		"job":                         p.job(d),
	}
	for _, kind := range kinds {
		maps.Copy(fields, kind.parsers)
	}
	return fields
}

// validateGVK sets the watch's GVK and reports whether an API server could serve it.
func (p *parser) validateGVK(d *rawWatch) bool {
	before := len(p.faults)
	p.required("version", d.version, d.Line, "v1")
	p.required("kind", d.kind, d.Line, "MySQLCluster")
	p.validName("group", d.group, validation.IsDNS1123Subdomain(d.group.text), "an API group such as myapp.example.com: lower-case letters, digits, dashes and dots, without the version")
	p.validName("version", d.version, validation.IsDNS1035Label(d.version.text), "an API version such as v1 or v1beta1, without the group")
	p.validName("kind", d.kind, validation.IsDNS1035Label(strings.ToLower(d.kind.text)), "a kind such as MySQLCluster: letters and digits")
	d.GVK.Group, d.GVK.Version, d.GVK.Kind = d.group.text, d.version.text, d.kind.text
	return len(p.faults) == before && d.kind.text != "" && d.version.text != ""
}

// selector returns the parser of a metav1.LabelSelector.
func (p *parser) selector(into *labels.Selector) fieldParser {
	return func(field string, n *yaml.Node) {
		var all metav1.LabelSelector
		before := len(p.faults)
		p.mapping("a label selector", map[string]fieldParser{
			"matchLabels":      p.matchLabels(&all),
			"matchExpressions": p.list(p.matchExpression(&all)),
		})(field, n)
		if len(p.faults) > before {
			return
		}
		selector, err := metav1.LabelSelectorAsSelector(&all)
		if err != nil {
			p.addFault(n.Line, "%s: %v; write labels and values as kubectl does", field, err)
			return
		}
		*into = selector
	}
}

func (p *parser) matchLabels(into *metav1.LabelSelector) fieldParser {
	return func(field string, n *yaml.Node) {
		m := followAlias(n)
		if m.Kind != yaml.MappingNode {
			p.invalidValue(field, n, "a mapping of labels to values")
			return
		}
		into.MatchLabels = map[string]string{}
		for _, f := range p.mappingFields(m) {
			var value textField
			p.text(&value)(field+"."+f.key, f.value)
			into.MatchLabels[f.key] = value.text
			one := &metav1.LabelSelector{MatchLabels: map[string]string{f.key: value.text}}
			if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
				p.addFault(f.line, "%s: %v; write labels and values as kubectl does", field, err)
			}
		}
	}
}

func (p *parser) matchExpression(into *metav1.LabelSelector) fieldParser {
	return func(field string, n *yaml.Node) {
		var key, operator textField
		var values []string
		p.mapping("an expression of a label selector", map[string]fieldParser{
			"key":      p.text(&key),
			"operator": p.text(&operator),
			"values": p.list(func(field string, n *yaml.Node) {
				var value textField
				p.text(&value)(field, n)
				values = append(values, value.text)
			}),
		})(field, n)
		requirement := metav1.LabelSelectorRequirement{
			Key: key.text, Operator: metav1.LabelSelectorOperator(operator.text), Values: values,
		}
		one := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
		if _, err := metav1.LabelSelectorAsSelector(one); err != nil {
			p.addFault(n.Line, "%s: %v; write key, an operator (In, NotIn, Exists, DoesNotExist) and values", field, err)
			return
		}
		into.MatchExpressions = append(into.MatchExpressions, requirement)
	}
}
