package action

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

const opening, closing = "{{", "}}"

// templateFuncs returns what replaces Helm's tpl. A template can look up every Secret that
// the operator may read, so text of a CR must never be evaluated as one. The replacement
// evaluates a template action only if it stands, word for word, in the chart's own files or
// in another trusted text, and looks nothing up in it. Text without an action is returned as
// it is.
func templateFuncs(ctx context.Context, o order.Order, c *chart.Chart) template.FuncMap {
	if o.Templates.All {
		return nil
	}
	t := &trustedTemplates{ctx: ctx, chart: c, corpus: strings.Join(append(ownText(c), o.Templates.Trusted...), "\x00")}
	return template.FuncMap{"tpl": t.evaluate}
}

// trustedTemplates evaluates text that consists of trusted actions.
type trustedTemplates struct {
	ctx    context.Context //nolint:containedctx // It is that of the order, and tpl gets none.
	chart  *chart.Chart
	corpus string
	depth  int
}

// ownText returns the content of all files of a chart and its subcharts.
func ownText(c *chart.Chart) []string {
	var all []string
	for _, file := range c.Raw {
		all = append(all, string(file.Data))
	}
	for _, dependency := range c.Dependencies() {
		all = append(all, ownText(dependency)...)
	}
	return all
}

func (t *trustedTemplates) evaluate(text string, values any) (string, error) {
	if !strings.Contains(text, opening) {
		return text, nil
	}
	if err := t.check(text); err != nil {
		return "", err
	}
	const maxDepth = 100
	if t.depth++; t.depth > maxDepth {
		return "", errors.New("tpl is nested too deep")
	}
	defer func() { t.depth-- }()
	return t.render(text, values)
}

// check returns an error for the first action that no trusted text has. Quotes within an
// action must be balanced, so that it ends where it seems to end.
func (t *trustedTemplates) check(text string) error {
	for rest := text; ; {
		start := strings.Index(rest, opening)
		if start < 0 {
			return nil
		}
		length := strings.Index(rest[start:], closing)
		if length < 0 {
			return errors.New("tpl: the text has a template action without an end")
		}
		action := rest[start : start+length+len(closing)]
		if strings.Count(action, `"`)%2 != 0 || strings.Count(action, "`")%2 != 0 || !strings.Contains(t.corpus, action) {
			return fmt.Errorf("tpl: the template action %.64q is not the chart's own, and text of a custom resource is not evaluated; templatesInSpec of the watch may allow it", action)
		}
		rest = rest[start+len(action):]
	}
}

// render evaluates the text as Helm's tpl does: with all templates of the chart to include.
func (t *trustedTemplates) render(text string, values any) (string, error) {
	const name = "tpl"
	parts := &chart.Chart{Metadata: &chart.Metadata{Name: name, Version: "0.0.0", APIVersion: chart.APIVersionV2}}
	parts.Templates = append(definitions(t.chart),
		&common.File{Name: "templates/_text", Data: []byte(text)},
		&common.File{Name: "templates/result", Data: []byte(`{{ include "` + name + `/templates/_text" (tplValues) }}`)},
	)
	e := engine.Engine{CustomTemplateFuncs: template.FuncMap{
		"tpl":       t.evaluate,
		"tplValues": func() any { return values },
		"lookup":    func(...string) (map[string]any, error) { return map[string]any{}, nil },
	}}
	rendered, err := e.RenderWithContext(t.ctx, parts, common.Values{"Values": map[string]any{}, "Release": map[string]any{}, "Capabilities": common.DefaultCapabilities})
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	return rendered[path.Join(name, "templates/result")], nil
}

// definitions returns the templates of the chart and its subcharts that hold definitions for
// others, under names that are not rendered.
func definitions(c *chart.Chart) []*common.File {
	var all []*common.File
	for i, file := range c.Templates {
		if strings.HasPrefix(path.Base(file.Name), "_") {
			all = append(all, &common.File{Name: fmt.Sprintf("templates/%s/_%d", c.Name(), i), Data: file.Data})
		}
	}
	for _, dependency := range c.Dependencies() {
		all = append(all, definitions(dependency)...)
	}
	return all
}
