package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/watches"
)

// sample is a CR of the project, or the empty one.
type sample struct {
	file string // "" for the empty one
	spec map[string]any
}

// chartWing is for charts.
type chartWing struct {
	chart *watches.Chart
	// objects are what the chart renders for the samples of the kind, and with its own values.
	objects []describe.Object
	// loaded is the chart; nil if it cannot be loaded.
	loaded *describe.Chart
}

func (*chartWing) watch(*Project, *Unit, source.Position) {}
func (*chartWing) hasVariables() bool                     { return false }

func (w *chartWing) needs(c *rights.Collector, u *Unit) {
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
func (w *chartWing) load(ctx context.Context, p *Project, u *Unit) {
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
	program := filepath.Join(filepath.Dir(p.options.Executable), "chart-exec")
	if _, err := os.Stat(program); err != nil {
		p.add(finding{
			"chart-not-rendered", report.Info, at, "the chart is not rendered: there is no program " + program, "what it makes is not checked, and rbac does not see it", "put chart-exec beside this program, where the manager needs it too",
		})
		return
	}
	samples := p.samples(u)
	for _, s := range append(samples, sample{}) {
		rendered, err := describe.Render(ctx, program, path, s.spec)
		w.objects = append(w.objects, rendered.Objects...)
		w.hooks(p, rendered.Objects, at)
		switch {
		case err == nil:
		case len(w.chart.ValuesKinds()) > 0:
			p.add(finding{
				"chart-values", report.Info, at, "without what valuesFrom gives: " + err.Error(),
				"what the chart renders is not checked, and rbac does not see it", "give the chart defaults with which it renders",
			})
		case s.file != "":
			p.add(finding{
				"chart-values", report.Error, source.Position{File: s.file, Line: 1, Column: 1}, err.Error(),
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

// hooks adds the hooks that are refused.
func (w *chartWing) hooks(p *Project, objects []describe.Object, at source.Position) {
	for _, o := range objects {
		if !o.Nameless {
			continue
		}
		at := at // Of an archive, the watch.
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

// definition adds what is wrong with the place of the chart's releases.
func (w *chartWing) definition(p *Project, u *Unit, crd *schema.CRD, at source.Position) {
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

// samples returns the CRs of the unit's kind below config/samples.
func (p *Project) samples(u *Unit) []sample {
	var found []sample
	dir := filepath.Join(p.options.Dir, "config", "samples")
	files := os.DirFS(dir)
	_ = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err // There may be none.
		}
		text, err := fs.ReadFile(files, path)
		for document := range strings.SplitSeq("\n"+string(text), "\n---") {
			var cr struct {
				APIVersion, Kind string
				Spec             map[string]any
			}
			if kyaml.Unmarshal([]byte(document), &cr) == nil && cr.APIVersion == u.Watch.GVK.GroupVersion().String() && cr.Kind == u.Watch.GVK.Kind {
				found = append(found, sample{filepath.Join(dir, path), cr.Spec})
			}
		}
		return err
	})
	return found
}
