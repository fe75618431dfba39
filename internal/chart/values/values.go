// Package values makes the values of a chart from a CR's spec, and refuses values that the chart
// cannot take.
//
// The spec is data: Values.Untrusted has the texts that look like templates and must not be evaluated.
// chart-exec refuses those that the chart gives to tpl. Otherwise a chart may use text in any way.
package values

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Evaluate returns the result of each of the texts as a template, in their order. A template engine
// costs the manager 10 MB, so chart-exec has it.
type Evaluate func(texts []string) ([]order.Evaluated, error)

// Overrides returns the overrides with the templates in their strings evaluated. They are the
// author's, and may use all functions of sprig.
func Overrides(list []watches.Override, evaluate Evaluate) ([]watches.Override, error) {
	var texts []string
	for _, override := range list {
		_, _ = replaced(override.Value, func(text string) (string, error) {
			texts = append(texts, text)
			return text, nil
		})
	}
	results := map[string]order.Evaluated{}
	if len(texts) > 0 {
		evaluated, err := evaluate(texts)
		if err == nil && len(evaluated) != len(texts) {
			err = fmt.Errorf("%d results for %d templates", len(evaluated), len(texts))
		}
		if err != nil {
			return nil, fmt.Errorf("evaluate overrideValues: %w", err)
		}
		for i, text := range texts {
			results[text] = evaluated[i]
		}
	}
	list = slices.Clone(list)
	for i := range list {
		value, err := replaced(list[i].Value, func(text string) (string, error) {
			if results[text].Error != "" {
				return "", errors.New(results[text].Error)
			}
			return results[text].Text, nil
		})
		if err == nil {
			err = set(map[string]any{}, list[i].Key, value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: overrideValues.%s: %w", list[i].Line, list[i].Key, err)
		}
		list[i].Value = value
	}
	return list, nil
}

// replaced returns a value in which by has replaced the templates.
func replaced(value any, by func(text string) (string, error)) (any, error) {
	switch v := value.(type) {
	case string:
		if !strings.Contains(v, "{{") {
			return v, nil
		}
		return by(v)
	case []any:
		changed := make([]any, len(v))
		for i := range v {
			var err error
			if changed[i], err = replaced(v[i], by); err != nil {
				return nil, err
			}
		}
		return changed, nil
	case map[string]any:
		changed := map[string]any{}
		for key := range v {
			var err error
			if changed[key], err = replaced(v[key], by); err != nil {
				return nil, err
			}
		}
		return changed, nil
	}
	return value, nil
}

// set sets a value at a path in the form of Helm's --set.
func set(into map[string]any, path string, value any) error {
	return strvals.ParseIntoFile(path+"=value", into, func([]rune) (any, error) { return value, nil })
}

// Values are the values of one CR's release.
type Values struct {
	// Chart and Version are the name and the version of the chart.
	Chart, Version string
	// Values are the spec with the overrides.
	Values map[string]any
	// Digest is that of the chart and the values, ChartDigest that of the chart alone.
	Digest, ChartDigest string
	// Trusted are texts beside the chart's own whose templates it may evaluate, and Untrusted those
	// that it may not.
	Trusted   []string
	Untrusted []order.Text
}

// ChartVersion returns the version of the content that a run with these values has.
func (v *Values) ChartVersion() content.Version {
	return content.ShortVersion(v.Chart+"-"+v.Version, v.ChartDigest)
}

// Build is BuildOver without values of objects.
func (s *Source) Build(spec, overrides map[string]any) (*Values, error) {
	return s.BuildOver(nil, spec, overrides)
}

// BuildOver makes the values of a CR. The values of valuesFrom are the weakest. The CR's spec
// overrides them, then the overrides of the watch, and then those of a Go program, which are a
// tree. An error names the values that the chart cannot take, or is a FaultError.
func (s *Source) BuildOver(from, spec, overrides map[string]any) (*Values, error) {
	v, loaded, err := s.begin(spec)
	if err != nil {
		return nil, err
	}
	v.Values = loader.MergeMaps(from, v.Values)
	author := map[string]any{}
	for _, o := range s.overrides {
		if err := errors.Join(set(v.Values, o.Key, o.Value), set(author, o.Key, o.Value)); err != nil {
			return nil, fmt.Errorf("override %s: %w", o.Key, err)
		}
	}
	v.Values, author = loader.MergeMaps(v.Values, overrides), loader.MergeMaps(author, overrides)
	if v.Digest, err = releaseDigest(loaded.digest, v.Values); err != nil {
		return nil, fmt.Errorf("digest the values: %w", err)
	}
	if !s.watch.AllTemplates && loaded.callsTpl && looksLikeTemplates(v.Values) {
		v.sortTemplates(trees{values: v.Values, spec: spec, author: author, defaults: defaults(loaded.chart, v.Values)}, s.watch.TemplatesInSpec)
	}
	return v, s.check(loaded.chart, v.Values, author)
}

// Begin returns the values of a CR from its spec alone, without a digest. An error names the part of the
// spec that the chart refuses with any other values, or is a FaultError.
func (s *Source) Begin(spec map[string]any) (*Values, error) {
	v, _, err := s.begin(spec)
	return v, err
}

func (s *Source) begin(spec map[string]any) (v *Values, loaded *loaded, err error) {
	if loaded, err = s.load(); err != nil {
		return nil, nil, err
	}
	v = &Values{Chart: loaded.chart.Name(), Version: loaded.chart.Metadata.Version, ChartDigest: loaded.digest, Values: runtime.DeepCopyJSON(spec)}
	if v.Values == nil {
		v.Values = map[string]any{}
	}
	return v, loaded, nil
}
