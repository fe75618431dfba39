package watches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ChartAnnotations is the prefix of the annotations of CRs whose content is a chart.
const ChartAnnotations = "helm.sdk.operatorframework.io/"

const (
	chartFinalizer       = ChartAnnotations + "uninstall-release"
	formerChartFinalizer = "uninstall-helm-release"
	// chartPeriod is the period of charts where none is given.
	chartPeriod       = time.Minute
	defaultMaxHistory = 10
)

var chartKind = ContentKind{ //nolint:gochecknoglobals // A constant that Go cannot write as one.
	Heading:          "Helm Chart",
	AnnotationPrefix: ChartAnnotations,
	Annotations: []string{
		"upgrade-force", "rollback-force", "uninstall-wait", "install-disable-hooks", "upgrade-disable-hooks",
		"uninstall-disable-hooks", "install-description", "upgrade-description", "uninstall-description",
	},
	ChecksEachPeriod: true, CanBeInterrupted: true, TracksObjects: true, Previews: true,
	marks: func(cr *unstructured.Unstructured) bool {
		_, deployed, _ := unstructured.NestedMap(cr.Object, "status", "deployedRelease")
		return deployed || slices.ContainsFunc(cr.GetFinalizers(), func(entry string) bool { return entry == chartFinalizer || entry == formerChartFinalizer })
	},
}

// rawChart holds the fields of a chart as they are parsed.
type rawChart struct {
	Chart
	path                       textField
	drift, crds, dryRun, apply textField
}

// chartFields declares the fields of a watch whose content is a chart.
func (p *parser) chartFields(d *rawWatch) contentFields {
	c := &d.chart
	c.MaxHistory = defaultMaxHistory
	return contentFields{
		has:     "chart",
		chooses: []string{"chart"},
		parsers: map[string]fieldParser{
			"chart":            p.text(&c.path),
			"overrideValues":   p.overrides(c),
			"dryRunOption":     p.oneOf(&c.dryRun, "client", "server", "none"),
			"maxHistory":       p.integer(&c.MaxHistory, 0, -1),
			"wait":             p.boolean(&c.Wait),
			"drift":            p.oneOf(&c.drift, string(DriftRepair), string(DriftWarn), string(DriftOff)),
			"driftIgnore":      p.list(p.driftIgnore(c)),
			"adopt":            p.boolean(&c.Adopt),
			"apply":            p.oneOf(&c.apply, string(ApplyServer), string(ApplyClient)),
			"crds":             p.oneOf(&c.crds, string(CRDsCreate), string(CRDsReplace), string(CRDsSkip)),
			"templatesInSpec":  p.templatesInSpec(c),
			"releaseName":      p.releaseText(&c.ReleaseName, releaseNameFaults, "a name of at most 53 lower-case letters, digits, dashes and dots"),
			"releaseNamespace": p.releaseText(&c.ReleaseNamespace, validation.IsDNS1123Label, "the name of a namespace"),
			"valuesFrom":       p.list(p.valuesFrom(c)),
			"valuesFromInSpec": p.valuesFromInSpec(c),
		},
		complete: func(search Search) { p.completeChart(d, search) },
	}
}

// completeChart checks the fields of a chart together and sets those of the watch.
func (p *parser) completeChart(d *rawWatch, search Search) {
	if line := d.lines["releaseNamespace"]; line != 0 && d.ConfineToNamespace {
		p.addFault(line, "releaseNamespace: the watch has confineToNamespace (line %d), by which a run writes in the namespace of its resource only; remove one of them", d.lines["confineToNamespace"])
	}
	chart := d.chart.Chart
	chart.Drift, chart.CRDs, chart.Apply, chart.DryRun = DriftRepair, CRDsCreate, ApplyServer, d.chart.dryRun.text
	if d.chart.drift.text != "" {
		chart.Drift = Drift(d.chart.drift.text)
	}
	if d.chart.apply.text != "" {
		chart.Apply = Apply(d.chart.apply.text)
	}
	if d.chart.crds.text != "" {
		chart.CRDs = CRDs(d.chart.crds.text)
	}
	if !search.KindsOnly || search.Charts {
		chart.Path = p.findChart(search, d.chart.path)
	}
	if d.lines["reconcilePeriod"] == 0 {
		d.ReconcilePeriod = chartPeriod
	}
	if d.lines["watchClusterScopedResources"] == 0 {
		d.WatchClusterScopedResources = true
	}
	d.Watch.Chart = &chart
	d.References = append(d.References, chart.valuesReferences()...)
	d.Finalizer = &Finalizer{Name: chartFinalizer, Former: formerChartFinalizer}
}

func (p *parser) findChart(search Search, chart textField) string {
	if !p.notEmpty("chart", chart, "the path of a chart's directory or .tgz") {
		return ""
	}
	path := search.absolute(chart.text)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		p.addFault(chart.line, "chart: %q was not found; looked for %s; write a path relative to the operator's directory%s", chart.text, path, meantFile(chart.text, path))
	case info.IsDir():
		if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err != nil {
			p.addFault(chart.line, "chart: %s holds no chart; give it a Chart.yaml", path)
		}
	case !info.Mode().IsRegular() || !strings.HasSuffix(path, ".tgz") && !strings.HasSuffix(path, ".tar.gz"):
		p.addFault(chart.line, "chart: %s is not a chart; write the path of a chart's directory or .tgz", path)
	}
	return path
}

// overrides returns the parser of overrideValues. Its texts keep their $VAR: they are
// replaced when the chart is loaded, where an unset one is a fault.
func (p *parser) overrides(c *rawChart) fieldParser {
	return func(field string, n *yaml.Node) {
		m := followAlias(n)
		switch {
		case m.Tag == "!!null":
			return
		case m.Kind != yaml.MappingNode:
			p.invalidValue(field, n, "a mapping of paths such as image.repository to values")
			return
		}
		lookup := p.lookupEnv
		p.lookupEnv = nil
		defer func() { p.lookupEnv = lookup }()
		for _, f := range p.mappingFields(m) {
			value := p.jsonValue(field+"."+f.key, f.value, 1)
			value, unset := expandAll(value, lookup)
			for _, name := range unset {
				p.addFault(f.line, "%s.%s: the environment variable %s is not set; set it, or write ${%s:-default}", field, f.key, name, name)
			}
			c.Overrides = append(c.Overrides, Override{Key: f.key, Value: value, Line: f.line})
		}
	}
}

func (p *parser) driftIgnore(c *rawChart) fieldParser {
	return func(field string, n *yaml.Node) {
		var kind, group, name textField
		ignore := DriftIgnore{}
		p.mapping("an entry of driftIgnore", map[string]fieldParser{
			"kind":  p.text(&kind),
			"group": p.text(&group),
			"name":  p.text(&name),
			"pointers": p.list(func(field string, n *yaml.Node) {
				var pointer textField
				p.text(&pointer)(field, n)
				if !pointer.reported && !isPointer(pointer.text) {
					p.invalidValue(field, n, "a JSON pointer (RFC 6901) such as /spec/replicas, in which ~ is written ~0, and / in a name ~1")
				}
				ignore.Pointers = append(ignore.Pointers, pointer.text)
			}),
		})(field, n)
		if followAlias(n).Kind != yaml.MappingNode {
			return
		}
		p.required("kind of driftIgnore", kind, n.Line, "Deployment")
		if len(ignore.Pointers) == 0 {
			p.addFault(n.Line, "%s: pointers is missing; add a list of JSON pointers such as /spec/replicas", field)
		}
		ignore.Kind, ignore.Group, ignore.Name = kind.text, group.text, name.text
		c.DriftIgnore = append(c.DriftIgnore, ignore)
	}
}

// isPointer reports whether the text is a JSON pointer to a part of an object.
func isPointer(text string) bool {
	return strings.HasPrefix(text, "/") && !strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(text), "~")
}

// templatesInSpec returns the parser of true, false, or a list of paths.
func (p *parser) templatesInSpec(c *rawChart) fieldParser {
	return func(field string, n *yaml.Node) {
		if followAlias(n).Kind != yaml.SequenceNode {
			p.boolean(&c.AllTemplates)(field, n)
			return
		}
		p.list(func(field string, n *yaml.Node) {
			var path textField
			p.text(&path)(field, n)
			if p.notEmpty(field, path, "a path such as spec.config") {
				c.TemplatesInSpec = append(c.TemplatesInSpec, path.text)
			}
		})(field, n)
	}
}
