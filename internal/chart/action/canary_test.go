package action

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
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
	o := order.Order{Templates: order.Templates{All: all, Trusted: built.Trusted}}
	whole, err := util.ToRenderValues(c, built.Values, common.ReleaseOptions{Name: "r"}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Engine{CustomTemplateFuncs: templateFuncs(t.Context(), o, c)}.RenderWithContext(t.Context(), c, whole)
	return strings.Join(slices.Collect(maps.Values(rendered)), "\n"), err
}

// No text of a CR is evaluated, wherever a chart calls tpl. The control shows that Helm's own
// tpl would have evaluated it.
func TestNoCanaryIsExecuted(t *testing.T) {
	controls := 0
	for name, place := range places {
		dir := t.TempDir()
		for file, text := range map[string]string{
			"Chart.yaml":               "apiVersion: v2\nname: c\nversion: 1.0.0\n",
			"templates/_helpers.tpl":   `{{ define "c.name" }}name-{{ .Release.Name }}{{ end }}{{ define "c.evaluate" }}{{ tpl .text .root }}{{ end }}`,
			"templates/a.txt":          place.template,
			"charts/sub/Chart.yaml":    "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"charts/sub/templates/b":   `{{ if .Values.x }}{{ tpl .Values.x . }}{{ end }}`,
			"charts/sub/values.yaml":   "x: ''\n",
			"values.yaml":              "y: ''\n",
			"templates/unrelated.yaml": "a: b\n",
		} {
			path := filepath.Join(dir, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
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
