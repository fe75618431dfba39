package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

// chartBackend is for charts.
type chartBackend struct {
	chart *watches.Chart
	// objects are rendered by the chart for the samples of the kind, and with its own values.
	objects []describe.Object
	// loaded is the chart; nil if it cannot be loaded.
	loaded *describe.Chart
}

func (w *chartBackend) needs(c *rights.Collector, u *Unit) {
	loaded := w.loaded
	if loaded == nil {
		loaded = &describe.Chart{}
	}
	at, where := source.Position{Line: u.Watch.Line, Column: 1}, fmt.Sprintf("the chart of the watch on line %d of watches.yaml", u.Watch.Line)
	c.Chart(at, where, loaded, w.objects)
	if w.chart.Wait {
		c.Waits(at, where, w.objects)
	}
	c.ValuesFrom(at, where, w.chart.ValuesKinds())
}

// load loads the chart of the watch, renders it for each sample of its kind, and keeps the objects.
func (w *chartBackend) load(ctx context.Context, p *Project, u *Unit) {
	at := source.Position{File: p.watchesFile, Line: u.Watch.Line, Column: 1}
	path := w.chart.Path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return // That is a fault of watches.yaml.
	}
	chart, err := describe.Load(path)
	if err != nil {
		p.add(finding{
			"chart", report.Error, at, err.Error(), "the manager does not start with this chart, or no run of it succeeds", "correct the chart; helm lint says more of it",
		})
		return
	}
	p.files[filepath.Join(path, "Chart.yaml")] = true
	w.loaded = chart
	w.unknownOverrides(p, at)
	program := filepath.Join(filepath.Dir(p.options.Executable), "chart-exec")
	if _, err := os.Stat(program); err != nil {
		p.add(finding{
			"chart-not-rendered", report.Info, at, "the chart is not rendered: there is no program " + program, "what it makes is not checked, and rbac does not see it", "put chart-exec beside this program, where the manager needs it too",
		})
		return
	}
	samples := slices.DeleteFunc(slices.Clone(p.samplesRead), func(c *customResource) bool { return c.gvk != u.Watch.GVK })
	for _, s := range append(samples, &customResource{}) { // The last one is a CR with an empty spec.
		spec, _ := s.object["spec"].(map[string]any)
		rendered, err := describe.Render(ctx, program, path, spec)
		w.objects = append(w.objects, rendered.Objects...)
		w.hooks(p, rendered.Objects, at)
		switch {
		case err == nil:
			w.unknownValues(p, s, spec, chart.Defaults, "spec")
		case len(w.chart.ValuesKinds()) > 0:
			p.add(finding{
				"chart-values", report.Info, at, "without what valuesFrom gives: " + err.Error(),
				"what the chart renders is not checked, and rbac does not see it", "give the chart defaults with which it renders",
			})
		case s.file != "":
			p.add(finding{
				"chart-values", report.Error, s.at(""), err.Error(),
				"the resource gets a Failure, and nothing is installed", "correct the sample, or the chart",
			})
		case len(samples) == 0:
			p.add(finding{
				"chart-values", report.Warning, at, "with its own values alone: " + err.Error(),
				"a resource with an empty spec gets a Failure", "give values.yaml what is needed, or let the schema of the spec require it, and add a sample below config/samples",
			})
		}
	}
}

// unknownValues adds values of a sample that neither the chart's values nor its templates name. Below an empty map
// of values, any may stand.
func (w *chartBackend) unknownValues(p *Project, s *customResource, given, known map[string]any, path string) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		inner, isMap := given[key].(map[string]any)
		value, named := known[key]
		below, _ := value.(map[string]any)
		switch {
		case named && isMap && len(below) > 0:
			w.unknownValues(p, s, inner, below, path+"."+key)
		case !named && key != "global" && !w.mentions(key):
			message := fmt.Sprintf("the chart %s has no value %s", w.loaded.Name, strings.TrimPrefix(path+"."+key, "spec.")) + suggest.Slip(key, slices.Collect(maps.Keys(known)))
			p.add(finding{
				"chart-values", report.Warning, s.at(path + "." + key), message,
				"it has no effect, and nothing says so where the schema of the spec is open", "correct the name, or give the value a default in values.yaml",
			})
		}
	}
}

// unknownOverrides adds keys of overrideValues whose first part neither the chart's values nor its templates name.
func (w *chartBackend) unknownOverrides(p *Project, at source.Position) {
	for _, override := range w.chart.Overrides {
		first := override.Key
		if end := strings.IndexAny(first, `.[\`); end >= 0 {
			first = first[:end]
		}
		if _, named := w.loaded.Defaults[first]; named || first == "" || first == "global" || w.mentions(first) {
			continue
		}
		at := at
		at.Line = cmp.Or(override.Line, at.Line)
		p.add(finding{
			"chart-values", report.Warning, at, fmt.Sprintf("overrideValues: the chart %s has no value %s", w.loaded.Name, first) + suggest.Slip(first, slices.Collect(maps.Keys(w.loaded.Defaults))),
			"it has no effect", "correct the name, or give the value a default in values.yaml",
		})
	}
}

// mentions reports whether a template or the schema of the chart has the name.
func (w *chartBackend) mentions(key string) bool {
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(key) + `\b`)
	return word.Match(w.loaded.Schema) || slices.ContainsFunc(w.loaded.Files, func(f describe.File) bool {
		return strings.Contains(f.Name, "templates/") && word.Match(f.Data)
	})
}

// hooks adds the hooks that are refused.
func (w *chartBackend) hooks(p *Project, objects []describe.Object, at source.Position) {
	for _, o := range objects {
		if !o.Nameless {
			continue
		}
		at := at // The position of an archive is that of the watch.
		for _, f := range w.loaded.Files {
			before, _, found := strings.Cut(string(f.Data), "generateName")
			if found && f.Name == o.File && !strings.HasSuffix(w.chart.Path, ".tgz") {
				at = source.Position{File: filepath.Join(w.chart.Path, f.Name), Line: strings.Count(before, "\n") + 1, Column: 1}
			}
		}
		p.add(finding{
			"chart", report.Error, at, "the hook of kind " + o.Kind + " has a generateName and no name",
			"no release is made: Failure, reason InvalidChart", "give it a name, such as {{ .Release.Name }}-hook, and a delete policy",
		})
	}
}

// definition adds faults of the place of the chart's releases.
func (w *chartBackend) definition(p *Project, u *Unit, crd *schema.CRD, at source.Position) {
	chart := w.chart
	if !crd.Namespaced && chart.ReleaseNamespace.Fixed == "" && chart.ReleaseNamespace.Path == nil {
		p.add(finding{
			"chart-release", report.Error, at, crd.Kind + " is cluster-scoped, and a chart needs a namespace for its release",
			"each resource is refused: Failure, reason InvalidSpec", "add releaseNamespace to the watch: a namespace, or a path such as spec.namespace or metadata.name",
		})
	}
	p.path(u, chart.ReleaseName.Path, at, ofRelease)
	p.path(u, chart.ReleaseNamespace.Path, at, ofRelease)
}

var ofRelease = use{"chart-release", "the release always has the name or namespace of its resource", ""} //nolint:gochecknoglobals // A constant.
