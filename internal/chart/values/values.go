// Package values makes the values of a chart from a CR's spec, and refuses what the chart
// cannot take.
//
// The spec is data: where a chart evaluates text of its values as templates (by tpl), text
// that looks like one is refused. What a chart does with text beyond that is its own.
package values

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/syntax"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Evaluate returns what each of the texts gives as a template, in their order. An engine of
// templates costs the manager 10 MB, so chart-exec has it.
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

// replaced returns a value with its texts that are templates replaced.
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

// set sets a value at a path such as Helm's --set takes. The value is used as it is.
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
	// Trusted are texts whose templates the chart may evaluate.
	Trusted []string
}

// ChartVersion returns the version of the content that a run with these values has.
func (v *Values) ChartVersion() content.Version {
	return content.ShortVersion(v.Chart+"-"+v.Version, v.ChartDigest)
}

// Build is BuildOver nothing.
func (s *Source) Build(spec, strongest map[string]any) (*Values, error) {
	return s.BuildOver(nil, spec, strongest)
}

// BuildOver makes the values of a CR: what valuesFrom gives, over which stands its spec, over that
// the overrides of the watch, and over these those of a Go program, which are a tree. An error
// says what of the values the chart cannot take, or is a FaultError.
func (s *Source) BuildOver(from, spec, strongest map[string]any) (*Values, error) {
	v, loaded, err := s.begin(spec)
	if err != nil {
		return nil, err
	}
	if s.restrictsTemplates(loaded) {
		trusted, err := checkTemplates(from, s.watch.TemplatesInSpec)
		if err != nil {
			return nil, fmt.Errorf("what valuesFrom gives for %w", err)
		}
		v.Trusted = append(v.Trusted, trusted...)
	}
	v.Values = loader.MergeMaps(from, v.Values)
	author := map[string]any{}
	for _, o := range s.overrides {
		if err := errors.Join(set(v.Values, o.Key, o.Value), set(author, o.Key, o.Value)); err != nil {
			return nil, fmt.Errorf("override %s: %w", o.Key, err)
		}
		v.Trusted = append(v.Trusted, texts(o.Value)...)
	}
	v.Values = loader.MergeMaps(v.Values, strongest)
	v.Trusted = append(v.Trusted, texts(strongest)...)
	if v.Digest, err = releaseDigest(loaded.digest, v.Values); err != nil {
		return nil, fmt.Errorf("digest the values: %w", err)
	}
	return v, s.check(loaded.chart, v.Values, loader.MergeMaps(author, strongest))
}

// Begin returns what is known of the values of a CR by its spec alone, without a digest. An error
// says what of the spec the chart cannot take, whatever the other values are, or is a FaultError.
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
	if s.restrictsTemplates(loaded) {
		v.Trusted, err = checkTemplates(spec, s.watch.TemplatesInSpec)
	}
	return v, loaded, err
}

// restrictsTemplates reports whether text of others may not hold templates.
func (s *Source) restrictsTemplates(loaded *loaded) bool {
	return !s.watch.AllTemplates && loaded.callsTpl
}

// callsTpl reports whether a template of the chart or of a subchart may evaluate text. Who cannot
// read a template takes it for one that does.
func callsTpl(c *chart.Chart) bool {
	return slices.ContainsFunc(c.Templates, func(f *common.File) bool {
		parsed, err := syntax.Parse(string(f.Data))
		return err != nil || slices.Contains(parsed.Functions(), "tpl")
	}) || slices.ContainsFunc(c.Dependencies(), callsTpl)
}

// checkTemplates returns an error for the first text or key of the spec that looks like a
// template, and else the texts that look like one where they are allowed.
func checkTemplates(spec map[string]any, allowed []string) (found []string, err error) {
	var walk func(path string, value any) error
	walk = func(path string, value any) error {
		switch v := value.(type) {
		case string:
			switch {
			case !strings.Contains(v, syntax.Opening):
			case !covered(path, allowed):
				return fmt.Errorf("%s: the chart evaluates templates in its values, so that a text may not hold {{; templatesInSpec of the watch may allow it", path)
			default:
				found = append(found, v)
			}
		case []any:
			for i := range v {
				if err := walk(fmt.Sprintf("%s[%d]", path, i), v[i]); err != nil {
					return err
				}
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if err := walk(path, key); err != nil {
					return err
				}
				if err := walk(path+"."+key, v[key]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return found, walk("spec", spec)
}

// covered reports whether the path is one of those, or below one.
func covered(path string, paths []string) bool {
	return slices.ContainsFunc(paths, func(one string) bool {
		return path == one || strings.HasPrefix(path, one+".") || strings.HasPrefix(path, one+"[")
	})
}

// texts returns all strings of a JSON value.
func texts(value any) []string {
	found, _ := checkTemplates(map[string]any{"value": value}, []string{"spec"})
	return found
}
