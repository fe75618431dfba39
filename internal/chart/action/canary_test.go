package action

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// executed appears in what is rendered if and only if a payload was evaluated.
const executed = "EXECUTED"

// payloads are texts of a CR that try to be evaluated.
var payloads = []string{
	`{{ print "EXE" "CUTED" }}`,
	`{{- printf "%s%s" "EXE" "CUTED" -}}`,
	"{{`EXE`}}{{`CUTED`}}",
	`{{ "EXE" }}{{ "CUTED" }}`,
	`{{ $x := "CUTED" }}{{ print "EXE" $x }}`,
	`{{/* harmless */}}{{ print "EXE" "CUTED" }}`,
	`text before {{ cat "EXE" "CUTED" | nospace }}`,
	`{{ define "c.name" }}EXE{{ print "CUTED" }}{{ end }}{{ include "c.name" . }}`,
	"{{ tpl `{{ print \"EXE\" \"CUTED\" }}` . }}",
	`{{ with "EXE" }}{{ . }}CUTED{{ end }}`,
	`{{ include "c.name" . | replace "name-r" "EXECUTED" }}`,
	`{{ if lookup "v1" "Secret" "" "" | kindIs "map" }}EXE{{ end }}{{ if true }}CUTED{{ end }}`,
	"{{\nprint \"EXE\"\n\"CUTED\"\n}}",
}

// place is a way in which a chart evaluates text, and the spec that brings a text there.
type place struct {
	template string
	spec     func(payload string) map[string]any
}

func inX(payload string) map[string]any { return map[string]any{"x": payload} }

// places are ways to tpl. In the last ones the CR's text holds no {{.
var places = map[string]place{
	"a value":                  {`{{ tpl .Values.x . }}`, inX},
	"a pipeline":               {`{{ tpl (.Values.x | toString | trim) . }}`, inX},
	"a variable":               {`{{ $t := .Values.x }}{{ tpl $t $ }}`, inX},
	"within text":              {`{{ tpl (print "a " .Values.x " b") . }}`, inX},
	"all values as YAML":       {`{{ tpl (toYaml .Values) . }}`, inX},
	"an element of a list":     {`{{ range .Values.x }}{{ tpl . $ }}{{ end }}`, func(p string) map[string]any { return map[string]any{"x": []any{"a", p}} }},
	"a key":                    {`{{ range $k, $v := .Values.x }}{{ tpl $k $ }}{{ end }}`, func(p string) map[string]any { return map[string]any{"x": map[string]any{p: "a"}} }},
	"a helper of the chart":    {`{{ include "c.evaluate" (dict "text" .Values.x "root" .) }}`, inX},
	"a template of a template": {`{{ tpl "{{ tpl .Values.x . }}" . }}`, inX},
	"the values of a subchart": {`{{ .Values.y }}`, func(p string) map[string]any { return map[string]any{"sub": map[string]any{"x": p}} }},
	"global values":            {`{{ tpl .Values.global.x . }}`, func(p string) map[string]any { return map[string]any{"global": map[string]any{"x": p}} }},
	"text that is decoded": {`{{ tpl (.Values.x | b64dec) . }}`, func(p string) map[string]any {
		return map[string]any{"x": base64.StdEncoding.EncodeToString([]byte(p))}
	}},
	"text with other braces": {`{{ tpl (.Values.x | replace "<<" "{{" | replace ">>" "}}") . }}`, func(p string) map[string]any {
		return map[string]any{"x": strings.NewReplacer("{{", "<<", "}}", ">>").Replace(p)}
	}},
	"two texts that make one": {`{{ tpl (print .Values.x .Values.y) . }}`, func(p string) map[string]any {
		cut := strings.Index(p, "{{") + 1
		return map[string]any{"x": p[:cut], "y": p[cut:]}
	}},
}

// canary renders a chart as the manager and chart-exec do, and returns what came out.
func canary(t *testing.T, dir string, spec map[string]any, all bool) (string, error) {
	t.Helper()
	source, err := values.NewSource(&watches.Chart{Path: dir, AllTemplates: all}, nil)
	if err != nil {
		t.Fatal(err)
	}
	built, err := source.Build(spec, nil)
	if err != nil {
		return "", err
	}
	c, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := order.Order{Templates: order.Templates{All: all, Trusted: built.Trusted, Untrusted: built.Untrusted}, Values: built.Values}
	whole, err := util.ToRenderValues(c, built.Values, common.ReleaseOptions{Name: "r"}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Engine{CustomTemplateFuncs: newEvaluator(t.Context(), o, c).templateFuncs()}.RenderWithContext(t.Context(), c, whole)
	return strings.Join(slices.Collect(maps.Values(rendered)), "\n"), err
}

// TestAnActionOfTheChartsIsNotEvaluatedForACR: a CR repeats what the chart evaluates itself. The control
// shows that it would have seen what the action gives.
func TestAnActionOfTheChartsIsNotEvaluatedForACR(t *testing.T) {
	repeats := []string{
		`{{ .Values.secret }}`, `{{- .Values.secret -}}`, "{{\n.Values.secret\n}}", `{{/* { */}}{{.Values.secret}}`, `a {{ .Values.secret }} b`,
		"{{ printf \"%s\" .Values.secret }}", "{{ printf `%s` .Values.secret }}", `{{ printf "\x25s" .Values.secret | print }}{{ .Values.secret }}`,
		`{{ if .Values.secret }}{{ .Values.secret }}{{ end }}`, `{{ include "c.secret" . }}`, `{{ template "c.secret" . }}{{ .Values.secret }}`,
		strings.Repeat("word ", 14) + `{{ printf "%s" .Values.secret }} it's "long": enough to be folded, and quoted ` + strings.Repeat("word ", 14),
	}
	places := map[string]place{
		"a value":                {`{{ tpl .Values.x . }}`, inX},
		"text that is indented":  {`{{ tpl (.Values.x | nindent 4 | trim) . }}`, inX},
		"the middle of text":     {`{{ tpl (print "a " .Values.x " {{ .Values.secret }}") . }}`, inX},
		"all values as YAML":     {`{{ tpl (toYaml .Values) . }}`, inX},
		"all values as JSON":     {`{{ tpl (toJson .Values | replace "\\\"" "\"" | replace "\\n" " ") . }}`, inX},
		"an element of a list":   {`{{ range .Values.x }}{{ tpl . $ }}{{ end }}`, func(p string) map[string]any { return map[string]any{"x": []any{"a", p}} }},
		"a list as YAML":         {`{{ tpl (toYaml .Values.x) . }}`, func(p string) map[string]any { return map[string]any{"x": []any{p, p}} }},
		"a key":                  {`{{ range $k, $v := .Values.x }}{{ tpl $k $ }}{{ end }}`, func(p string) map[string]any { return map[string]any{"x": map[string]any{p: "a"}} }},
		"a part of a text":       {`{{ range splitList ";" .Values.x }}{{ tpl . $ }}{{ end }}`, func(p string) map[string]any { return map[string]any{"x": "a;" + p} }},
		"the place of a default": {`{{ tpl .Values.other . }}`, func(p string) map[string]any { return map[string]any{"other": p} }},
		"global values":          {`{{ tpl .Values.global.x . }}`, func(p string) map[string]any { return map[string]any{"global": map[string]any{"x": p}} }},
	}
	files := map[string]string{
		"values.yaml":            `{secret: EXECUTED, own: '{{ .Values.secret }}', other: 'a', printed: '{{ printf "%s" .Values.secret }}{{ if .Values.secret }}{{ end }}{{ include "c.secret" . }}{{ template "c.secret" . }}{{ print }}'}`,
		"templates/_helpers.tpl": `{{ define "c.secret" }}{{ .Values.secret }}{{ end }}`,
	}
	for name, place := range places {
		controls := 0
		files["templates/a.txt"] = place.template
		for _, payload := range repeats {
			spec := place.spec(payload)
			out, err := canary(t, written(t, files), spec, false)
			if err == nil || !strings.Contains(err.Error(), "templatesInSpec") {
				t.Errorf("%s: %q was not refused: %q, %v", name, payload, out, err)
			}
			if out, err := canary(t, written(t, files), spec, true); err == nil && strings.Contains(out, executed) {
				controls++
			}
		}
		if controls < 4 {
			t.Errorf("%s: the control executes only %d", name, controls)
		}
	}
}

// TestTextThatDoesNotReachTplIsAsWritten: also beside text of the chart's own that does.
func TestTextThatDoesNotReachTplIsAsWritten(t *testing.T) {
	const alert = `{{ $labels.instance }} is {{ if . }}down{{ end }} {{#x}} {{`
	for why, test := range map[string]struct {
		spec map[string]any
		want string
	}{
		"a value":               {map[string]any{"x": alert}, alert + "||EXECUTED."},
		"a key":                 {map[string]any{"y": map[string]any{alert: "a"}}, "|map[" + alert + ":a]|EXECUTED."},
		"the chart's own place": {map[string]any{"own": "{{ .Values.secret }}."}, "||EXECUTED."},
	} {
		got, err := canary(t, written(t, map[string]string{
			"values.yaml": "{x: '', y: {}, secret: EXECUTED, own: '{{ .Values.secret }}.'}", "templates/a.txt": "{{ .Values.x }}|{{ .Values.y }}|{{ tpl .Values.own . }}",
		}), test.spec, false)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q, %v", why, got, err)
		}
	}
}

// written returns the directory of a chart with the files.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	maps.Copy(all, files)
	scratch.Write(t, dir, all)
	return dir
}

// No text of a CR is evaluated, wherever a chart calls tpl. The control shows that Helm's own
// tpl would have evaluated it.
func TestNoCanaryIsExecuted(t *testing.T) {
	controls := 0
	for name, place := range places {
		dir := written(t, map[string]string{
			"templates/_helpers.tpl":   `{{ define "c.name" }}name-{{ .Release.Name }}{{ end }}{{ define "c.evaluate" }}{{ tpl .text .root }}{{ end }}`,
			"templates/a.txt":          place.template,
			"charts/sub/Chart.yaml":    "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"charts/sub/templates/b":   `{{ if .Values.x }}{{ tpl .Values.x . }}{{ end }}`,
			"charts/sub/values.yaml":   "x: ''\n",
			"values.yaml":              "y: ''\n",
			"templates/unrelated.yaml": "a: b\n",
		})
		before := controls
		for _, payload := range payloads {
			spec := place.spec(payload)
			if out, err := canary(t, dir, spec, false); strings.Contains(out, executed) || err == nil {
				t.Errorf("%s: %q was not refused: %q", name, payload, out)
			}
			if out, err := canary(t, dir, spec, true); err == nil && strings.Contains(out, executed) {
				controls++
			}
		}
		if controls == before {
			t.Errorf("%s: the control executes no payload, so that the place shows nothing", name)
		}
	}
	t.Logf("%d canaries that Helm's tpl executes, none was executed", controls)
	if controls < 100 {
		t.Errorf("only %d canaries would have been executed", controls)
	}
}
