// Package describe describes a chart without a cluster: its values and their schema, and the objects
// that it renders with given values. Authors' tools are built on it.
//
// It loads charts itself. chart-exec renders them, because a template may loop forever.
package describe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Chart is the content of a chart's files.
type Chart struct {
	Name, Version string
	// Values is the text of values.yaml, nil if there is none, and Schema that of
	// values.schema.json.
	Values, Schema []byte
	// Defaults are those values, with those of the subcharts by their names and aliases.
	Defaults map[string]any
	// CRDs are the kinds of the CRDs in the directory crds.
	CRDs []CRD
	// Lookups are the kinds that the templates look up in a cluster. LooksUpMore is set if there
	// are lookups whose kind is not in the text.
	Lookups     []Lookup
	LooksUpMore bool
	// Files are the files that Helm reads in a chart's directory, or that are in its archive.
	Files []File
}

// Load reads the chart at the path, a directory or an archive. It reads regular files alone, and
// follows no link in the chart.
func Load(path string) (*Chart, error) {
	files, isArchive, err := readFiles(path)
	if err != nil {
		return nil, fmt.Errorf("load the chart %s: %w", path, err)
	}
	loaded, err := parse(files, isArchive)
	if err != nil {
		return nil, fmt.Errorf("load the chart %s: %w", path, err)
	}
	if err := loaded.Validate(); err != nil {
		return nil, fmt.Errorf("the chart %s: %w", path, err)
	}
	c := &Chart{Name: loaded.Name(), Version: loaded.Metadata.Version, Schema: loaded.Schema, Defaults: defaults(loaded), CRDs: crds(loaded), Files: files}
	c.Lookups, c.LooksUpMore = lookups(loaded)
	if isArchive {
		c.Files = nil
	}
	for _, file := range loaded.Raw {
		if isArchive {
			c.Files = append(c.Files, File{file.Name, file.Data})
		}
		if file.Name == "values.yaml" {
			c.Values = file.Data
		}
	}
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("the chart %s is a library: it renders nothing", path)
	}
	return c, missing(loaded)
}

// defaults returns the values of a chart over those of its subcharts.
func defaults(c *chart.Chart) map[string]any {
	values := maps.Clone(c.Values)
	if values == nil {
		values = map[string]any{}
	}
	for _, d := range c.Dependencies() {
		name := d.Name()
		for _, dependency := range c.Metadata.Dependencies {
			if dependency.Name == name && dependency.Alias != "" {
				name = dependency.Alias
			}
		}
		below := defaults(d)
		own, _ := values[name].(map[string]any)
		maps.Copy(below, own)
		values[name] = below
	}
	return values
}

// parse has Helm parse the files of a chart.
func parse(files []File, isArchive bool) (*chart.Chart, error) {
	if isArchive {
		return loader.LoadArchive(bytes.NewReader(files[0].Data))
	}
	var buffered []*archive.BufferedFile
	for _, f := range files {
		data := bytes.TrimPrefix(f.Data, []byte("\xef\xbb\xbf")) // Helm drops the BOM, too.
		buffered = append(buffered, &archive.BufferedFile{Name: f.Name, Data: data})
	}
	return loader.LoadFiles(buffered)
}

// missing returns an error for dependencies that are not in the chart's directory charts.
func missing(c *chart.Chart) error {
	there := map[string]bool{}
	for _, dependency := range c.Dependencies() {
		there[dependency.Name()] = true
	}
	var errs []error
	for _, wanted := range c.Metadata.Dependencies {
		if !there[wanted.Name] {
			errs = append(errs, fmt.Errorf("the chart %s depends on %s, which is not in its directory charts: fetch it with helm dependency build", c.Name(), wanted.Name))
		}
	}
	return errors.Join(errs...)
}

// Object is an object that a chart renders.
type Object struct {
	APIVersion, Kind, Name, Namespace string
	// Hook is true for objects that Helm makes beside the release.
	Hook bool
	// Nameless is set for a hook with a generateName alone, which is refused.
	Nameless bool
	// File is the name of its template, after that of the chart.
	File string
	// Rules are the rights that a role gives. Aggregates is set if it gives the rights of other
	// roles.
	Rules      []rbac.PolicyRule
	Aggregates bool
	// RoleRef is the role that a binding binds.
	RoleRef rbac.RoleRef
	// Defines is the kind that the object, a CRD, defines.
	Defines CRD
}

// Rendered is the output of a chart.
type Rendered struct {
	Objects []Object
	// Empty are templates that rendered nothing with these values.
	Empty []string
}

// releaseName is the name of the release, and its namespace, in the rendered text.
const releaseName = "sample"

// renderTimeout bounds the rendering: templates may loop forever.
const renderTimeout = time.Minute

// Render renders the chart at the absolute path by the program chart-exec, as the manager
// would for a CR with the spec: without its cluster, so that lookup finds nothing.
func Render(ctx context.Context, chartExec, path string, spec map[string]any) (r Rendered, err error) {
	dir, err := os.MkdirTemp("", "ensign-render-")
	if err != nil {
		return r, fmt.Errorf("render the chart: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	out, err := execute(ctx, chartExec, dir, order.Order{Action: order.Render, Chart: path, Name: releaseName, Namespace: releaseName, Values: spec}, func(cmd *exec.Cmd) {
		cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir}
	})
	if err != nil {
		return r, fmt.Errorf("render the chart: %w", err)
	}
	return read(out)
}

// read reads the files that chart-exec printed: JSON objects with a name and a text.
func read(out []byte) (r Rendered, err error) {
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var file order.File
		if err := decoder.Decode(&file); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return r, fmt.Errorf("read what the chart renders: %w", err)
		}
		before := len(r.Objects)
		for document := range strings.SplitSeq("\n"+file.Text, "\n---") {
			var object manifest
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return r, fmt.Errorf("%s: what it renders is not an object: %w", file.Name, err)
			}
			if object.Kind != "" {
				made := object.object()
				_, made.File, _ = strings.Cut(file.Name, "/")
				r.Objects = append(r.Objects, made)
			}
		}
		if len(r.Objects) == before {
			r.Empty = append(r.Empty, file.Name)
		}
	}
}
