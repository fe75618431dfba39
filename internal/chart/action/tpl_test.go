package action

import (
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// render renders a chart with one template, as chart-exec does, with values of a CR.
func render(t *testing.T, o order.Order, template string, values map[string]any) (string, error) {
	t.Helper()
	helpers := `{{ define "c.name" }}name-{{ .Release.Name }}{{ end }}`
	defaults := "greeting: 'from {{ include \"c.name\" . }}'\n"
	c := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "c", Version: "1.0.0", APIVersion: chart.APIVersionV2},
		Templates: []*common.File{{Name: "templates/_helpers.tpl", Data: []byte(helpers)}, {Name: "templates/a", Data: []byte(template)}},
		Raw:       []*common.File{{Name: "templates/_helpers.tpl", Data: []byte(helpers)}, {Name: "templates/a", Data: []byte(template)}, {Name: "values.yaml", Data: []byte(defaults)}},
	}
	all := map[string]any{"greeting": `from {{ include "c.name" . }}`}
	maps.Copy(all, values)
	rendered, err := engine.Engine{CustomTemplateFuncs: templateFuncs(t.Context(), o, c)}.RenderWithContext(t.Context(), c, common.Values{"Values": all, "Release": map[string]any{"Name": "r"}})
	return rendered["c/templates/a"], err
}

func TestTplEvaluatesTheChartsOwnTemplatesAlone(t *testing.T) {
	for why, test := range map[string]struct {
		template string
		values   map[string]any
		order    order.Order
		want     string // "" is a refusal
	}{
		"a default of the chart":                    {template: `{{ tpl .Values.greeting . }}`, want: "from name-r"},
		"one in a map, as YAML":                     {template: `{{ tpl (toYaml (dict "a" .Values.greeting)) . }}`, want: "a: from name-r"},
		"text of a CR without a template":           {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "plain { text }"}, want: "plain { text }"},
		"text of a CR beside a default":             {template: `{{ tpl (print .Values.x .Values.greeting) . }}`, values: map[string]any{"x": "plain, "}, want: "plain, from name-r"},
		"a template in a template of the chart":     {template: `{{ tpl "{{ tpl .Values.greeting . }}" . }}`, want: "from name-r"},
		"a template of a CR is refused":             {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ .Values.secret }}"}},
		"one that is made of two texts":             {template: `{{ tpl (print .Values.x .Values.y) . }}`, values: map[string]any{"x": "{", "y": "{ env \"HOME\" }}"}},
		"one within a template of the chart":        {template: `{{ tpl (printf "{{ .Values.%s }}" .Values.x) . }}`, values: map[string]any{"x": `greeting | lookup "v1" "Secret" "" `}},
		"one that hides behind a quote":             {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ tpl .Values.x . }}{{ ` }}"}},
		"one without an end":                        {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ .Release.Name "}},
		"one that calls itself for ever":            {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ tpl .Values.x . }}"}},
		"unless templatesInSpec allows its path":    {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ .Release.Name }}"}, order: order.Order{Templates: order.Templates{Trusted: []string{"{{ .Release.Name }}"}}}, want: "r"},
		"unless templatesInSpec allows all of them": {template: `{{ tpl .Values.x . }}`, values: map[string]any{"x": "{{ .Release.Name }}"}, order: order.Order{Templates: order.Templates{All: true}}, want: "r"},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := render(t, test.order, test.template, test.values)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "tpl") {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}
