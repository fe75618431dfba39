package watches

import (
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Chart is the Helm chart of a watch, and how its releases are kept.
type Chart struct {
	// Path is the absolute path of a chart's directory or archive.
	Path string
	// Overrides are set over the CR's spec. They are trusted.
	Overrides []Override `json:",omitempty"`
	// DryRun is operator-sdk's dryRunOption. It has no effect: nothing is rendered to find
	// out whether a release is in need of an upgrade.
	DryRun string `json:"-"`
	// MaxHistory is the number of revisions kept of a release; 0 keeps all.
	MaxHistory int
	// Wait makes a run wait until the objects of the release are ready.
	Wait bool
	// Drift says what is done about objects that others have changed.
	Drift Drift
	// DriftIgnore are fields that others may change.
	DriftIgnore []DriftIgnore `json:",omitempty"`
	// Adopt takes over objects that exist and belong to no release.
	Adopt bool
	// CRDs says what is done with the definitions in the chart's directory crds.
	CRDs CRDs
	// TemplatesInSpec are the paths of the spec whose text may hold templates. AllTemplates
	// allows them everywhere.
	TemplatesInSpec []string `json:",omitempty"`
	AllTemplates    bool     `json:",omitempty"`
	// ReleaseName and ReleaseNamespace say what a CR's release is called, and in which namespace
	// it is. ReleaseOf evaluates them.
	ReleaseName      ReleaseText `json:",omitzero"`
	ReleaseNamespace ReleaseText `json:",omitzero"`
}

// Override is one entry of overrideValues, with environment variables and templates in its
// strings as the file has them.
type Override struct {
	// Key is a path such as image.repository, as Helm's --set takes it.
	Key string
	// Value has the types of JSON.
	Value any
	Line  int `json:"-"`
}

// Drift is what is done about objects that others have changed.
type Drift string

// The values of drift.
const (
	DriftRepair Drift = "repair"
	DriftWarn   Drift = "warn"
	DriftOff    Drift = "off"
)

// CRDs is what is done with the definitions in a chart's directory crds.
type CRDs string

// The values of crds.
const (
	CRDsCreate  CRDs = "create"
	CRDsReplace CRDs = "replace"
	CRDsSkip    CRDs = "skip"
)

// DriftIgnore names fields of a kind of objects.
type DriftIgnore struct {
	Kind string
	// Pointers are JSON pointers (RFC 6901) such as /spec/replicas.
	Pointers []string
}

const (
	chartFinalizer       = ChartAnnotations + "uninstall-release"
	formerChartFinalizer = "uninstall-helm-release"
	// chartPeriod is the period of charts where none is given.
	chartPeriod       = time.Minute
	defaultMaxHistory = 10
)

// IsChartFinalizer reports whether an entry of metadata.finalizers is that of charts.
func IsChartFinalizer(entry string) bool {
	return entry == chartFinalizer || entry == formerChartFinalizer
}

// Which kind of content a field is for; those that are in no list are for both.
var (
	onlyAnsible = []string{"vars", "finalizer", "manageStatus", "watchClusterScopedResources", "blacklist", "watchAnnotationsChanges", "snakeCaseParameters", "markUnsafe", "maxRunnerArtifacts", "verbosity", "warm"} //nolint:gochecknoglobals // A table.
	onlyChart   = []string{"overrideValues", "dryRunOption", "maxHistory", "wait", "drift", "driftIgnore", "adopt", "crds", "templatesInSpec", "releaseName", "releaseNamespace"}                                      //nolint:gochecknoglobals // A table.
)

// rawChart holds the fields of a chart as they are parsed.
type rawChart struct {
	Chart
	path                textField
	drift, crds, dryRun textField
}

func (p *parser) chartFields(c *rawChart) map[string]fieldParser {
	return map[string]fieldParser{
		"chart":            p.text(&c.path),
		"overrideValues":   p.overrides(c),
		"dryRunOption":     p.oneOf(&c.dryRun, "client", "server", "none"),
		"maxHistory":       p.integer(&c.MaxHistory, 0, -1),
		"wait":             p.boolean(&c.Wait),
		"drift":            p.oneOf(&c.drift, string(DriftRepair), string(DriftWarn), string(DriftOff)),
		"driftIgnore":      p.list(p.driftIgnore(c)),
		"adopt":            p.boolean(&c.Adopt),
		"crds":             p.oneOf(&c.crds, string(CRDsCreate), string(CRDsReplace), string(CRDsSkip)),
		"templatesInSpec":  p.templatesInSpec(c),
		"releaseName":      p.releaseText(&c.ReleaseName, releaseNameFaults, "a name of at most 53 lower-case letters, digits, dashes and dots"),
		"releaseNamespace": p.releaseText(&c.ReleaseNamespace, validation.IsDNS1123Label, "the name of a namespace"),
	}
}

// recordLines makes the parsers note the line of each field that the entry has.
func recordLines(fields map[string]fieldParser, lines map[string]int) map[string]fieldParser {
	for name, parse := range fields {
		fields[name] = func(field string, n *yaml.Node) {
			lines[field] = n.Line
			parse(field, n)
		}
	}
	return fields
}

// rejectUnfit adds a fault for each field that only fits the other kind of content.
func (p *parser) rejectUnfit(lines map[string]int, unfit []string, has string) {
	for _, field := range unfit {
		if line := lines[field]; line != 0 {
			p.addFault(line, "%q does not fit a watch with a %s; remove it", field, has)
		}
	}
}

// completeChart checks the fields of a chart together and sets those of the watch.
func (p *parser) completeChart(d *rawWatch, search Search) {
	p.rejectUnfit(d.lines, onlyAnsible, "chart")
	for _, other := range []textField{d.content.role, d.content.playbook} {
		if other.isSet() {
			p.addFault(other.line, "the watch has a chart (line %d) and a role or playbook; keep one of them", d.chart.path.line)
		}
	}
	if line := d.lines["releaseNamespace"]; line != 0 && d.ConfineToNamespace {
		p.addFault(line, "releaseNamespace: the watch has confineToNamespace (line %d), by which a run writes in the namespace of its resource only; remove one of them", d.lines["confineToNamespace"])
	}
	chart := d.chart.Chart
	chart.Drift, chart.CRDs, chart.DryRun = DriftRepair, CRDsCreate, d.chart.dryRun.text
	if d.chart.drift.text != "" {
		chart.Drift = Drift(d.chart.drift.text)
	}
	if d.chart.crds.text != "" {
		chart.CRDs = CRDs(d.chart.crds.text)
	}
	if !search.KindsOnly {
		chart.Path = p.findChart(search, d.chart.path)
	}
	if d.lines["reconcilePeriod"] == 0 {
		d.ReconcilePeriod = chartPeriod
	}
	d.Watch.Chart = &chart
	d.Finalizer = &Finalizer{Name: chartFinalizer, Former: formerChartFinalizer}
}

// oneOf returns the parser of a text that is one of the allowed ones.
func (p *parser) oneOf(into *textField, allowed ...string) fieldParser {
	return func(field string, n *yaml.Node) {
		before := len(p.faults)
		p.text(into)(field, n)
		if len(p.faults) == before && !slices.Contains(allowed, into.text) {
			p.invalidValue(field, n, strings.Join(allowed, ", ")+" (one of them)")
			into.text = ""
		}
	}
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
		var kind textField
		ignore := DriftIgnore{}
		p.mapping("an entry of driftIgnore", map[string]fieldParser{
			"kind": p.text(&kind),
			"pointers": p.list(func(field string, n *yaml.Node) {
				var pointer textField
				p.text(&pointer)(field, n)
				if !pointer.reported && !strings.HasPrefix(pointer.text, "/") {
					p.invalidValue(field, n, "a JSON pointer such as /spec/replicas")
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
		ignore.Kind = kind.text
		c.DriftIgnore = append(c.DriftIgnore, ignore)
	}
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
