package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/syntax"
)

// ownActions returns the actions of a chart and its subcharts, and of other trusted texts. The
// chart's are in its values, files, metadata, and in the string constants of its templates.
func ownActions(c *chart.Chart, trusted []string) *syntax.Own {
	own := &syntax.Own{}
	for _, text := range trusted {
		learn(own, text)
	}
	learnChart(own, c)
	return own
}

func learnChart(own *syntax.Own, c *chart.Chart) {
	eachText(c.Values, "", func(_, text string) { learn(own, text) })
	eachText(asMap(c.Metadata), "", func(_, text string) { learn(own, text) })
	for _, file := range c.Files {
		learn(own, string(file.Data))
	}
	for _, file := range c.Templates {
		parsed, err := syntax.Parse(string(file.Data))
		if err != nil {
			continue // Helm says what is wrong with it.
		}
		for _, constant := range parsed.Constants() {
			learn(own, constant)
		}
	}
	for _, dependency := range c.Dependencies() {
		learnChart(own, dependency)
	}
}

// learn adds the actions of a text, also as they are after toYaml and toJson, by which charts hand over
// maps of texts.
func learn(own *syntax.Own, text string) {
	if !strings.Contains(text, syntax.Opening) {
		return
	}
	for _, form := range forms(text) {
		own.Learn(form)
	}
}

// forms returns a text as it is, and as it is after toYaml and toJson.
func forms(text string) []string {
	all := []string{text}
	if written, err := yaml.Marshal(text); err == nil {
		all = append(all, string(written))
	}
	if written, err := json.Marshal(text); err == nil {
		all = append(all, string(written))
	}
	return all
}

func asMap(value any) (fields map[string]any) {
	if text, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(text, &fields) // It was written the line before.
	}
	return fields
}

// eachText calls visit with each string and each key of a value, and its path.
func eachText(value any, path string, visit func(path, text string)) {
	switch v := value.(type) {
	case string:
		visit(path, v)
	case []any:
		for i := range v {
			eachText(v[i], fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visit(path, key)
			eachText(v[key], path+"."+key, visit)
		}
	}
}

// try renders the chart with its own values alone, and learns the actions that reach tpl: the chart may
// put them together from several texts of its own. Errors are ignored: this is only a trial.
func (e *evaluator) try() {
	e.trying = true
	defer func() { e.trying, e.tried = false, true }()
	neutral := common.ReleaseOptions{Name: "release-name", Namespace: "default", Revision: 1, IsInstall: true}
	values, err := util.ToRenderValuesWithSchemaValidation(e.chart, map[string]any{}, neutral, common.DefaultCapabilities, true)
	if err != nil {
		return
	}
	tpl := map[string]any{"tpl": func(text string, values any) (string, error) { return e.tpl(nil, text, values) }}
	_, _ = engine.Engine{CustomTemplateFuncs: tpl, LintMode: true}.RenderWithContext(e.ctx, e.chart, values)
}

// refusal returns the error for an action that is not the chart's. It says where it may come from.
func (e *evaluator) refusal(text string, foreign *syntax.Action) *RefusedError {
	var paths []string
	eachText(e.order.Values, "spec", func(path, part string) {
		// The names of the values themselves are the chart's.
		if path != "spec" && touches(text, foreign.Text, part) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	})
	what := fmt.Sprintf("the template action %.64q", foreign.Text)
	if e.order.Templates.Secret {
		what = "a template action"
	}
	return &RefusedError{order.RefusedOfSpec, shown(paths) + "the chart evaluates templates by tpl, and " + what + " does not come from the chart: remove it from the resource, or allow the path in templatesInSpec of the watch"}
}

// touches reports whether a part of a text overlaps an action in it.
func touches(text, action, part string) bool {
	start := strings.Index(text, action)
	if start < 0 || part == "" {
		return false
	}
	for at := 0; ; {
		next := strings.Index(text[at:], part)
		if next < 0 {
			return false
		}
		at += next
		if at < start+len(action) && at+len(part) > start {
			return true
		}
		at++
	}
}
