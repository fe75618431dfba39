package scaffold

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
	kyaml "sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/author/rights"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
)

// useChart sets the fields that follow from the chart of the kind, and plans its copy where it is
// not below the project's directory.
func (k *Kind) useChart(plan *Plan) error {
	switch {
	case k.GenerateRole || k.GeneratePlaybook:
		return errors.New("--chart: leave --generate-role and --generate-playbook out, because the chart reconciles the kind")
	case k.Finalizer:
		return errors.New("--chart: leave --finalizer out, because the release is uninstalled when an object is deleted")
	}
	if k.chart == nil { // The one of watches.yaml.
		if err := k.loadChart(); err != nil {
			return err
		}
	}
	if err := k.place(plan); err != nil {
		return fmt.Errorf("--chart=%s: %w", k.named(), err)
	}
	if k.ValuesFile == "" {
		if err := k.describeChart(k.chart, plan); err != nil {
			return err
		}
	}
	if !k.DefinitionOnly {
		k.rightsOf(plan)
	}
	return nil
}

// named returns how a person named the chart.
func (k *Kind) named() string { return cmp.Or(k.ChartNamed, k.Chart) }

// loadChart loads the chart, whose path is absolute from then on.
func (k *Kind) loadChart() error {
	k.ChartNamed = k.named()
	var err error
	if k.Chart, err = filepath.Abs(k.Chart); err == nil {
		k.chart, err = describe.Load(k.Chart)
	}
	if err != nil {
		return fmt.Errorf("--chart=%s: %w", k.named(), err)
	}
	return nil
}

// place decides where in the project the chart is, and plans its copy if it is elsewhere, or an archive that the
// image does not get, as helm pull leaves it.
func (k *Kind) place(plan *Plan) (err error) {
	if k.chartPath, err = within(plan.dir, k.Chart); err != nil {
		return err
	}
	isArchive, err := isFile(k.Chart)
	if err != nil {
		return err
	}
	elsewhere := k.chartPath == "" || isArchive && !k.inImage()
	if elsewhere {
		k.chartPath = "charts/" + k.chart.Name
	}
	around, err := relative(k.Chart, plan.dir)
	switch {
	case err != nil:
		return err
	case around != "":
		return errors.New("the project would lie in the chart, whose files Helm reads: make it in a directory beside the chart")
	case !k.inImage():
		return errors.New("move it below charts/ or helm-charts/, which the image gets")
	case elsewhere && !k.DefinitionOnly && exists(plan.dir, k.chartPath):
		return fmt.Errorf("the project has %s already: give --chart=%s for that one, or move it away", k.chartPath, k.chartPath)
	case elsewhere && !k.DefinitionOnly:
		plan.Notes = append(plan.Notes, fmt.Sprintf("the chart %s %s is copied to %s: change it there", k.chart.Name, k.chart.Version, k.chartPath))
		for _, file := range k.chart.Files {
			plan.create(k.chartPath+"/"+file.Name, file.Data)
		}
	}
	return nil
}

// chartDir returns the directory of the project in which the chart is.
func (k *Kind) chartDir() string {
	first, _, _ := strings.Cut(k.chartPath, "/")
	return first
}

// inImage reports whether the image gets that directory.
func (k *Kind) inImage() bool { return k.chartDir() == "charts" || k.chartDir() == "helm-charts" }

func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular(), err
}

// within returns the path of the target in the directory, with slashes; "" if it is elsewhere. It
// is an error if the target is a link in the directory that leads out of it.
func within(dir, target string) (string, error) {
	resolvedDir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(target)
	if err != nil {
		return "", err
	}
	path, err := relative(resolvedDir, resolved)
	if err != nil || path != "" {
		return path, err
	}
	if named, err := relative(dir, target); err != nil || named != "" {
		return "", errors.Join(err, fmt.Errorf("it is a link out of the project, which the image would lack: remove the link and give --chart=%s, which is copied", resolved))
	}
	return "", nil
}

// relative returns the path of the target in the directory, as their names say it; "" if it is
// elsewhere.
func relative(dir, target string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		target, err = filepath.Abs(target)
	}
	if err != nil {
		return "", fmt.Errorf("find the directory: %w", err)
	}
	relative, err := filepath.Rel(dir, target)
	if err != nil || relative == ".." || strings.HasPrefix(relative, ".."+string(filepath.Separator)) {
		return "", nil //nolint:nilerr // There is no way from one to the other.
	}
	return filepath.ToSlash(relative), nil
}

// describeChart sets the schema of the spec, by values.schema.json or else by the types of
// values.yaml, and the sample.
func (k *Kind) describeChart(chart *describe.Chart, plan *Plan) error {
	var values object
	if err := kyaml.Unmarshal(chart.Values, &values); err != nil {
		return fmt.Errorf("values.yaml of the chart: %w", err)
	}
	if len(chart.Schema) == 0 {
		return k.describeValues("values.yaml of the chart", chart.Values, plan)
	}
	var root object
	if err := json.Unmarshal(chart.Schema, &root); err != nil {
		return fmt.Errorf("values.schema.json of the chart: %w", err)
	}
	s := structural{root: root, left: map[string]bool{}}
	spec := s.convert(root, values, 0)
	spec["type"] = "object" // Whatever it says of itself.
	k.SpecRequired = spec["required"] != nil
	if note := s.note(); note != "" {
		plan.Notes = append(plan.Notes, note)
	}
	if err := k.setSchema(spec); err != nil {
		return err
	}
	if err := k.sampleOf(chart.Values, spec); err != nil {
		return fmt.Errorf("values.yaml of the chart: %w", err)
	}
	return nil
}

// describeValues sets the schema of the spec, by the types of values, and the sample.
func (k *Kind) describeValues(name string, text []byte, plan *Plan) error {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s:%d: invalid YAML; correct the file, then repeat the command: %w", name, source.ErrorLine(err), err)
	}
	spec := object{"type": "object", anything: true}
	if len(document.Content) > 0 {
		if document.Content[0].Kind != yaml.MappingNode {
			return fmt.Errorf("%s: a mapping of names to values is needed", name)
		}
		asKubernetesReads(document.Content[0])
		spec = fromValues(document.Content[0])
		plan.Notes = append(plan.Notes, fmt.Sprintf("the schema of the spec has the types that the values of %s have, and takes further fields: look at config/crd/bases", name))
	} else {
		plan.Notes = append(plan.Notes, name+" has no values: the spec takes anything")
	}
	if err := k.setSchema(spec); err != nil {
		return err
	}
	return k.sampleOf(text, spec)
}

// rightsOf adds the rights for the objects that the chart renders with its own values, and notes
// the open points.
func (k *Kind) rightsOf(plan *Plan) {
	rendered, err := k.Render(k.Chart, k.sample)
	needs := rights.Collector{}
	needs.Chart(source.Position{}, "the chart of the watch in watches.yaml", k.chart, rendered.Objects)
	k.chartRules = needs.Items()
	if err != nil {
		what := "it does not render with the sample: complete config/samples"
		if errors.Is(err, fs.ErrNotExist) {
			what = "the program that renders it is missing: put chart-exec beside this program"
		}
		plan.Notes = append(plan.Notes, fmt.Sprintf("config/rbac/role.yaml lacks the rights for the chart's objects, because %s, then %s rbac --write adds them: %s", what, k.Program, err))
		return
	}
	plan.Notes = append(plan.Notes, fmt.Sprintf("the rights are for what the chart renders with the sample, which is %d of its objects: with further samples, %s rbac --write adds theirs", len(rendered.Objects), k.Program))
	if len(rendered.Empty) > 0 {
		plan.Notes = append(plan.Notes, "with the sample these templates render nothing, so that nothing is known of them: "+strings.Join(rendered.Empty, ", "))
	}
	for right := range needs.Rights() {
		if right.Verb == "escalate" || right.Verb == "bind" && right.Name == "" {
			plan.Notes = append(plan.Notes, "the chart makes a ClusterRole that aggregates others, so that the operator may give any right: look at config/rbac/role.yaml")
			break
		}
	}
}
