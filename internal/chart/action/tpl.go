package action

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/syntax"
)

func newEvaluator(ctx context.Context, o order.Order, c *chart.Chart) *evaluator {
	return &evaluator{ctx: ctx, chart: c, order: o, functions: template.FuncMap{}, included: map[string]int{}}
}

// templateFuncs returns the functions that replace Helm's tpl. A template can look up every Secret
// that the operator may read, so text of a CR must never be evaluated as one. The replacement
// evaluates a text only if each of its actions is the chart's own or that of another trusted text, and
// not that of an untrusted text. It has no lookup. It returns text without an action as it is.
func (e *evaluator) templateFuncs() template.FuncMap {
	if e.order.Templates.All {
		return nil
	}
	return template.FuncMap{"tpl": func(text string, values any) (string, error) { return e.tpl(nil, text, values) }}
}

// evaluator evaluates text as Helm's tpl does, with the chart's templates to include.
type evaluator struct {
	ctx   context.Context //nolint:containedctx // It is that of the order, and tpl gets none.
	chart *chart.Chart
	order order.Order

	// own has the trusted actions. It is nil until the first text with an action, as is templates, which
	// holds the templates of the chart and its subcharts under Helm's names.
	own       *syntax.Own
	templates *template.Template
	// untrusted are the texts that must not be evaluated, and refused is why one was not.
	untrusted []untrusted
	refused   *RefusedError
	// trying is true while the chart is rendered with its own values alone, to learn from it, and tried
	// afterwards.
	trying, tried bool
	// functions are those that texts have called.
	functions template.FuncMap
	// included counts how deep each template includes itself, and depth how deep tpl is nested.
	included map[string]int
	depth    int
}

// tpl evaluates a text. within has the templates that it may include; nil for those of the chart.
func (e *evaluator) tpl(within *template.Template, text string, values any) (string, error) {
	if !strings.Contains(text, syntax.Opening) {
		return text, nil
	}
	const maxDepth = 100
	if e.depth++; e.depth > maxDepth {
		return "", errors.New("tpl is nested too deep")
	}
	defer func() { e.depth-- }()
	parsed, err := e.check(text)
	if err != nil {
		return "", err
	}
	if within == nil {
		if within, err = e.chartTemplates(); err != nil {
			return "", err
		}
	}
	t, err := within.Clone()
	if err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	if err := e.bind(t, parsed.Functions()); err != nil {
		return "", err
	}
	if t, err = t.New(within.Name()).Parse(text); err != nil {
		return "", fmt.Errorf("tpl: %w", err)
	}
	var result strings.Builder
	if err := t.Execute(&result, values); err != nil {
		return "", fmt.Errorf("tpl: evaluate %.256q: %w", text, err)
	}
	return withoutNothing(result.String()), nil
}

// withoutNothing removes the engine's text for a value that is not there, as Helm does.
func withoutNothing(text string) string { return strings.ReplaceAll(text, "<no value>", "") }

// check parses a text, and returns an error for its first action that is not trusted.
func (e *evaluator) check(text string) (*syntax.Text, error) {
	if e.own == nil {
		e.own = ownActions(e.chart, e.order.Templates.Trusted)
		e.untrusted = learnUntrusted(e.order.Templates.Untrusted)
	}
	parsed, err := syntax.Parse(text)
	if e.trying {
		e.own.Learn(text)
		return parsed, err
	}
	if e.refused = e.refuse(text, parsed); e.refused != nil {
		return nil, e.refused
	}
	if err != nil && e.order.Templates.Secret {
		err = errors.New("the text is not a valid template")
	}
	if err != nil {
		return nil, fmt.Errorf("tpl: %w", err)
	}
	foreign := e.own.Foreign(parsed)
	if foreign != nil && !e.tried {
		e.try()
		foreign = e.own.Foreign(parsed)
	}
	if foreign != nil {
		e.refused = e.refusal(text, foreign)
		return nil, e.refused
	}
	return parsed, nil
}

// chartTemplates returns the templates of the chart and its subcharts.
func (e *evaluator) chartTemplates() (*template.Template, error) {
	if e.templates != nil {
		return e.templates, nil
	}
	all := template.New("gotpl")
	texts := map[string]string{}
	collect(e.chart, texts)
	if err := e.bind(all, nil); err != nil {
		return nil, err
	}
	for _, name := range slices.SortedFunc(maps.Keys(texts), helmsOrder) {
		parsed, err := syntax.Parse(texts[name])
		if err == nil {
			err = e.bind(all, parsed.Functions())
		}
		if err == nil {
			_, err = all.New(name).Parse(texts[name])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	e.templates = all
	return all, nil
}

// collect adds the texts of the templates of a chart and its subcharts by their names. Helm takes
// only the partials of a library.
func collect(c *chart.Chart, into map[string]string) {
	for _, file := range c.Templates {
		if c.Metadata.Type != "library" || strings.HasPrefix(path.Base(file.Name), "_") {
			into[path.Join(c.ChartFullPath(), file.Name)] = string(file.Data)
		}
	}
	for _, dependency := range c.Dependencies() {
		collect(dependency, into)
	}
}

// helmsOrder is the order in which Helm reads templates: if two have one name, the one in the later
// file counts.
func helmsOrder(a, b string) int {
	if deeper := strings.Count(b, "/") - strings.Count(a, "/"); deeper != 0 {
		return deeper
	}
	return strings.Compare(b, a)
}

// bind gives a template set the functions, and those that depend on the set.
func (e *evaluator) bind(t *template.Template, names []string) error {
	for _, name := range names {
		if err := e.addFunction(name); err != nil {
			return err
		}
	}
	t.Option("missingkey=zero") // A clone has lost it.
	t.Funcs(e.functions)
	t.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) { return e.include(t, name, data) },
		"tpl":     func(text string, values any) (string, error) { return e.tpl(t, text, values) },
		"lookup":  func(string, string, string, string) (map[string]any, error) { return map[string]any{}, nil },
	})
	return nil
}

// include is Helm's include.
func (e *evaluator) include(t *template.Template, name string, data any) (string, error) {
	const maxDepth = 1000
	if e.included[name]++; e.included[name] > maxDepth {
		return "", fmt.Errorf("the template %s includes itself without an end", name)
	}
	defer func() { e.included[name]-- }()
	var result strings.Builder
	err := t.ExecuteTemplate(&result, name, data)
	return result.String(), err
}

// addFunction adds a function of Helm's. text/template has some itself, of which Helm's library replaces
// slice.
func (e *evaluator) addFunction(name string) error {
	switch name {
	case "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print", "printf", "println", "urlquery":
		return nil
	}
	if e.functions[name] != nil {
		return nil
	}
	if err := e.ask("{{if 0}}{{ "+name+" }}{{end}}", nil); err != nil {
		return fmt.Errorf("tpl: function %q not defined", name)
	}
	e.functions[name] = func(arguments ...any) (result any, err error) {
		var call strings.Builder
		for i := range arguments {
			if constant, ok := arguments[i].(int); ok { // It may be a number of any type.
				fmt.Fprintf(&call, " %d", constant)
				continue
			}
			fmt.Fprintf(&call, " (argument %d)", i)
		}
		err = e.ask("{{ result ("+name+call.String()+") }}", template.FuncMap{
			"argument": func(i int) any { return arguments[i] },
			"result":   func(value any) string { result = value; return "" },
		})
		return result, err
	}
	return nil
}

// ask has Helm's engine evaluate a text of ours: it does not export its functions.
func (e *evaluator) ask(text string, funcs template.FuncMap) error {
	c := &chart.Chart{Metadata: &chart.Metadata{Name: "function"}, Templates: []*common.File{{Name: "call", Data: []byte(text)}}}
	_, err := engine.Engine{CustomTemplateFuncs: funcs, LintMode: e.trying}.RenderWithContext(e.ctx, c, common.Values{})
	return err
}
