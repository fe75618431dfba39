package action

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// chartOf returns the chart c with the files; those of a subchart need no Chart.yaml.
func chartOf(t *testing.T, files map[string]string) *chart.Chart {
	t.Helper()
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	for name := range files {
		if parts := strings.Split(name, "/"); parts[0] == "charts" {
			all["charts/"+parts[1]+"/Chart.yaml"] = "apiVersion: v2\nname: " + parts[1] + "\nversion: 1.0.0\n"
		}
	}
	maps.Copy(all, files)
	var buffered []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(all)) {
		buffered = append(buffered, &archive.BufferedFile{Name: name, Data: []byte(all[name])})
	}
	c, err := loader.LoadFiles(buffered)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders a chart as chart-exec does, with values of a CR.
func render(t *testing.T, c *chart.Chart, o order.Order) (map[string]string, error) {
	t.Helper()
	if o.Values == nil {
		o.Values = map[string]any{}
	}
	if err := chartutil.ProcessDependencies(c, o.Values); err != nil {
		t.Fatal(err)
	}
	values, err := util.ToRenderValues(c, o.Values, common.ReleaseOptions{Name: "r", Namespace: "ns", Revision: 1, IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Engine{CustomTemplateFuncs: newEvaluator(t.Context(), o, c).templateFuncs()}.RenderWithContext(t.Context(), c, values)
}

// TestWhatIsTheChartsOwnIsAsHelmHasIt: each case is rendered with Helm's tpl too.
func TestWhatIsTheChartsOwnIsAsHelmHasIt(t *testing.T) {
	helpers := `{{ define "c.name" }}name-{{ .Release.Name }}{{ end }}{{ define "c.any" }}{{ if typeIs "string" .value }}{{ tpl .value .context }}{{ else }}{{ tpl (.value | toYaml) .context }}{{ end }}{{ end }}`
	for why, files := range map[string]map[string]string{
		"a default in double quotes":            {"values.yaml": `x: "a {{ include \"c.name\" . }}"`, "templates/a": `{{ tpl .Values.x . }}`},
		"one in single quotes":                  {"values.yaml": `x: 'it''s {{ include "c.name" . | replace "-" "''" }}'`, "templates/a": `{{ tpl .Values.x . }}`},
		"a folded one":                          {"values.yaml": "x: >-\n  {{ include\n  \"c.name\"\n  . }}", "templates/a": `{{ tpl .Values.x . }}`},
		"a literal one with an action of lines": {"values.yaml": "x: |\n  {{- if .Release.Name }}\n  a: {{ include\n    \"c.name\" .\n  }}\n  {{- end }}\n", "templates/a": `{{ tpl .Values.x . }}`},
		"an anchor":                             {"values.yaml": "a: &a '{{ .Release.Name }}'\nx: *a\n", "templates/a": `{{ tpl .Values.x . }}`},
		"escapes of YAML":                       {"values.yaml": `x: "\x7b{ .Release.Name\u0020}}"`, "templates/a": `{{ tpl .Values.x . }}`},
		"two documents":                         {"values.yaml": "a: b\n---\nx: '{{ .Release.Name }}'\n", "templates/a": `{{ tpl .Values.x . }}`},
		"a map as YAML":                         {"values.yaml": "x: {a: '{{ include \"c.name\" . }}', b: [\"{{ .Release.Name }}: it's\"], '{{ .Release.Namespace }}': 1}", "templates/a": `{{ tpl (toYaml .Values.x) . }}`},
		"a text with a quote, as YAML":          {"values.yaml": "x: {a: \"{{ printf `it's %s` .Release.Name }}\"}", "templates/a": `{{ tpl (toYaml .Values.x) . }}`},
		"a map as JSON":                         {"values.yaml": "x: {a: '{{ .Release.Name }}', b: '{{ if gt 2 1 }}{{ `<&>` }}{{ end }}'}", "templates/a": `{{ tpl (toJson .Values.x) . }}`},
		"a value of any kind, by a helper":      {"values.yaml": "x: {a: '{{ include \"c.name\" . }}'}\ny: '{{ .Release.Name }}'", "templates/a": `{{ include "c.any" (dict "value" .Values.x "context" $) }}{{ include "c.any" (dict "value" .Values.y "context" $) }}`},
		"a scope around a value":                {"values.yaml": "x: 'a {{ .b }}'", "templates/a": `{{ tpl (cat "{{- with $.Scope -}}" .Values.x "{{- end }}") (merge (dict "Scope" (dict "b" "c")) .) }}`},
		"variables, branches and comments":      {"values.yaml": "x: '{{- $y := .Release.Name }}{{/* }} */}}{{ range $i, $e := list 1 2 3 }}{{ if eq $i 2 }}{{ break }}{{ else }}{{ $y }}{{ $i }}{{ end }}{{ end }}{{ with .no }}{{ . }}{{ else with $y }}{{ . -}} {{ end }} z'", "templates/a": `{{ tpl .Values.x . }}`},
		"a closing brace in a constant":         {"values.yaml": "x: '{{ print \"}}\" .Release.Name `}}` }}'", "templates/a": `{{ tpl (print "a" .Values.x "}}") . | trim }}`},
		"text that defines a template":          {"values.yaml": "x: '{{ define \"c.own\" }}own {{ . }}{{ end }}{{ include \"c.own\" 1 }}{{ template \"c.own\" 2 }}{{ block \"c.block\" 3 }}{{ . }}{{ end }}{{ tpl (toString .Values.y) . }}'\ny: '{{ include \"c.own\" 4 }}'", "templates/a": `{{ tpl .Values.x . }}`},
		"text that replaces a template":         {"values.yaml": "x: '{{ define \"c.name\" }}other{{ end }}{{ include \"c.name\" . }}'", "templates/a": `{{ tpl .Values.x . }}{{ include "c.name" . }}`},
		"a template of a file without _":        {"values.yaml": "x: '{{ include \"c.other\" . }}'", "templates/other.yaml": `{{ define "c.other" }}other {{ .Chart.Name }}{{ end }}`, "templates/a": `{{ tpl .Values.x . }}`},
		"the checksum of a file by its path":    {"values.yaml": "x: '{{ include (print $.Template.BasePath \"/sub/config.yaml\") . | sha256sum }}'", "templates/sub/config.yaml": `a: {{ .Values.x }}{{ .Template.Name }}`, "templates/a": `{{ tpl .Values.x . }}`},
		"what Helm gives a template":            {"values.yaml": "x: '{{ .Template.Name }} {{ .Capabilities.KubeVersion.Major }} {{ .Capabilities.APIVersions.Has \"v1\" }} {{ .Release.IsInstall }} {{ .Release.Revision }} {{ .Chart.Version }} {{ .Files.Get \"f\" }} {{ .Subcharts.sub.Values.a }}{{ .Values.nothing }}'", "f": "file", "charts/sub/values.yaml": "a: b", "templates/a": `{{ tpl .Values.x . }}`},
		"a file":                                {"f": "a: {{ include \"c.name\" . }}\n", "g": "{\"x\": \"{{instance}}\"", "templates/a": `{{ tpl (.Files.Get "f") . }}`},
		"files as a map":                        {"d/f": "it's {{ .Release.Name }}\nb", "d/g": "{{ .Release.Name }}", "templates/a": `{{ tpl ((.Files.Glob "d/*").AsConfig) . }}{{ range $path, $_ := .Files.Glob "d/*" }}{{ tpl ($.Files.Get $path) $ }}{{ end }}`},
		"a constant":                            {"templates/a": "{{ tpl `{{ tpl \"{{ .Release.Name }}\" . }}` . }}"},
		"an action that is put together":        {"values.yaml": "names: [name, any]\nvalue: '{{ 1 }}'\ncontext: {}", "templates/a": "{{ range .Values.names }}{{ tpl (printf `{{ include \"c.%s\" . }}` .) (merge (dict \"value\" \"v\" \"context\" $) $) }}{{ end }}"},
		"one from text around actions":          {"templates/_t.tpl": `{{ define "c.text" }}{{ "{{" }} .Release.Name {{ "}}" }}{{ end }}`, "templates/a": `{{ tpl (include "c.text" .) . }}`},
		"one that a required value precedes":    {"values.yaml": "size: 1", "templates/a": "{{ if .Values.must }}{{ required `must` .Values.must }}{{ end }}{{ tpl (printf `{{ .Values.%s }}` `size`) . }}"},
		"the values of a subchart":              {"charts/sub/values.yaml": `x: "{{ include \"sub.name\" . }}"`, "charts/sub/templates/_h.tpl": `{{ define "sub.name" }}{{ .Chart.Name }}{{ end }}`, "charts/sub/templates/b": `{{ tpl .Values.x . }}`},
		"values for a subchart":                 {"values.yaml": "sub: {x: \"{{ include \\\"sub.name\\\" . }}\"}\nglobal: {y: '{{ .Chart.Name }}'}", "charts/sub/templates/n.yaml": `{{ define "sub.name" }}{{ .Chart.Name }}{{ end }}`, "charts/sub/templates/b": `{{ tpl .Values.x . }}{{ tpl (toString .Values.global.y) . }}`},
		"imported values":                       {"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, import-values: [{child: a, parent: b}]}]", "charts/sub/values.yaml": "a: {x: \"{{ include \\\"c.name\\\" . }}\"}", "templates/a": `{{ tpl .Values.b.x . }}`},
		"a library":                             {"charts/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library", "charts/lib/templates/_l.tpl": `{{ define "lib.name" }}lib {{ tpl (toString .Values.y) . }}{{ end }}`, "charts/lib/templates/not.yaml": `{{ define "c.name" }}not{{ end }}`, "values.yaml": "x: '{{ include \"lib.name\" . }}{{ include \"c.name\" . }}'\ny: '{{ .Release.Name }}'", "templates/a": `{{ tpl .Values.x . }}`},
		"a definition that stands twice":        {"templates/z/_z.tpl": `{{ define "twice" }}z{{ end }}`, "templates/_a.tpl": `{{ define "twice" }}a{{ end }}`, "charts/sub/templates/_s.tpl": `{{ define "twice" }}s{{ end }}`, "values.yaml": "x: '{{ include \"twice\" . }}'", "templates/a": `{{ tpl .Values.x . }}`},
		"functions of Helm's":                   {"values.yaml": "x: '{{ $d := dict \"a\" 1 }}{{ $_ := set $d \"b\" (list 1 2.5 nil) }}{{ toYaml $d | nindent 2 }}{{ (fromYaml \"a: {b: 1}\").a.b }}{{ slice (list 1 2 3) 1 }}{{ index (list 1 2) 1 }}{{ default 3 .Values.no }}{{ coalesce nil 0 4 }}{{ ternary 1 2 true }}{{ required \"r\" 5 }}{{ and true (not false) | toString | quote }}{{ semverCompare \">=1.0.0\" .Chart.Version }}{{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}{{ round 1.256 2 }}{{ until 3 }}{{ substr 0 2 \"abc\" }}{{ now | kindOf }}{{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}{{ mustRegexReplaceAll \"a\" \"banana\" \"o\" }}{{ mustMergeOverwrite (dict) (dict \"z\" 1) }}'", "templates/a": `{{ tpl .Values.x . }}`},
		"values that a template has set":        {"values.yaml": "x: '{{ .Values.set.a }}{{ $_ := set .Values.set \"b\" 2 }}'\nset: {}", "templates/a": `{{ $_ := set .Values.set "a" 1 }}{{ tpl .Values.x . }}{{ .Values.set.b }}`},
	} {
		t.Run(why, func(t *testing.T) {
			if files["templates/_helpers.tpl"] == "" {
				files["templates/_helpers.tpl"] = helpers
			}
			want, err := render(t, chartOf(t, files), order.Order{Templates: order.Templates{All: true}})
			if err != nil {
				t.Fatalf("Helm says %v", err)
			}
			got, err := render(t, chartOf(t, files), order.Order{})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestTextOfACRIsNotEvaluated: its pieces become an action only within the chart.
func TestTextOfACRIsNotEvaluated(t *testing.T) {
	const evil = `{{ print "EXE" "CUTED" }}`
	for why, test := range map[string]struct {
		template string
		values   map[string]any
		want     string // in the refusal
	}{
		"a text":                          {`{{ tpl .Values.x . }}`, map[string]any{"x": evil}, "spec.x: "},
		"one of two texts":                {`{{ tpl (print .Values.x .Values.y) . }}`, map[string]any{"x": "{", "y": "{ print 1 }}"}, "spec.x, spec.y: "},
		"one within the chart's":          {"{{ tpl (printf `{{ .Values.%s }}` .Values.x) . }}", map[string]any{"x": `own | print "a"`}, "spec.x: "},
		"a name in the chart's":           {"{{ tpl (printf `{{ .Values.%s }}` .Values.x) . }}", map[string]any{"x": `secret`}, "spec.x: "},
		"the name of the release in it":   {"{{ tpl (printf `{{ .Values.%s }}` .Release.Name) . }}", nil, "does not come from the chart"},
		"one in a key":                    {`{{ range $k, $v := .Values.x }}{{ tpl $k $ }}{{ end }}`, map[string]any{"x": map[string]any{evil: 1}}, "spec.x: "},
		"one in a list, as JSON":          {`{{ tpl (toJson .Values.x) . }}`, map[string]any{"x": []any{"{{ print `EXE` `CUTED` }}"}}, "spec.x[0]: "},
		"one that is decoded":             {`{{ tpl (b64dec .Values.x) . }}`, map[string]any{"x": base64.StdEncoding.EncodeToString([]byte(evil))}, "does not come from the chart"},
		"one by regexReplaceAll":          {`{{ tpl (regexReplaceAll "<(.*)>" .Values.x "{{${1}}}") . }}`, map[string]any{"x": `<print 1>`}, "does not come from the chart"},
		"one by fromYaml":                 {`{{ tpl (fromYaml .Values.x).a . }}`, map[string]any{"x": `a: "\x7b{ print 1 }}"`}, "does not come from the chart"},
		"one in the chart's own branch":   {`{{ tpl (print "{{ if .Values.own }}" .Values.x "{{ end }}") . }}`, map[string]any{"x": "{{ print 1 }}"}, "spec.x: "},
		"another end of a branch":         {`{{ tpl (print "{{ if .Values.own }}a{{ end }}" .Values.x) . }}`, map[string]any{"x": "{{ if .Values.secret }}b{{ end }}"}, "spec.x: "},
		"another branch of the chart's":   {`{{ tpl (print "{{ if .Values.own }}a" .Values.x "{{ end }}") . }}`, map[string]any{"x": "{{ else if .Values.secret }}b"}, "does not come from the chart"},
		"a definition of the chart's":     {`{{ tpl (print .Values.x .Values.own) . }}`, map[string]any{"x": `{{ define "c.name" }}evil{{ end }}`}, "define"},
		"an action of a template file":    {`{{ tpl .Values.x . }}{{ .Values.secret }}`, map[string]any{"x": "{{ .Values.secret }}"}, "spec.x: "},
		"one that looks something up":     {`{{ tpl .Values.x . }}`, map[string]any{"x": `{{ (lookup "v1" "Secret" "" "").items }}`}, "spec.x: "},
		"one behind a quote":              {`{{ tpl .Values.x . }}`, map[string]any{"x": "{{ tpl .Values.x . }}{{ ` }}"}, "tpl"},
		"one without an end":              {`{{ tpl .Values.x . }}`, map[string]any{"x": "{{ .Release.Name "}, "tpl"},
		"one in the values of a subchart": {`a`, map[string]any{"sub": map[string]any{"x": evil}}, "spec.sub.x: "},
		"one in global values":            {`{{ .Subcharts.sub.Values.global.x }}`, map[string]any{"global": map[string]any{"x": evil}}, "spec.global.x: "},
		"a number in an action":           {"{{ tpl (printf `{{ index .Values.list %v }}` .Values.n) . }}", map[string]any{"n": int64(7)}, "does not come from the chart"},
	} {
		t.Run(why, func(t *testing.T) {
			c := chartOf(t, map[string]string{
				"values.yaml": "own: '{{ include \"c.name\" . }}'\nsecret: EXECUTED\nlist: [1]\nn: 0\nx: ''\n", "templates/a": test.template,
				"templates/_helpers.tpl": `{{ define "c.name" }}n{{ end }}`, "charts/sub/values.yaml": "x: ''\nglobal: {x: ''}\n",
				"charts/sub/templates/b": `{{ tpl .Values.x . }}{{ tpl .Values.global.x . }}`,
			})
			got, err := render(t, c, order.Order{Values: test.values})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), executed) || !strings.Contains(err.Error(), "templatesInSpec") && strings.Contains(test.want, ":") {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestTextOfACRThatIsAllowedIsEvaluated(t *testing.T) {
	files := map[string]string{"templates/a": `{{ tpl .Values.x . }}`}
	values := map[string]any{"x": "{{ .Release.Name }}{{ if lookup `v1` `Secret` `` `` }}{{ end }}"}
	for _, allowed := range []order.Templates{{Trusted: []string{values["x"].(string)}}, {All: true}} {
		if got, err := render(t, chartOf(t, files), order.Order{Values: values, Templates: allowed}); err != nil || got["c/templates/a"] != "r" {
			t.Errorf("%+v: got %v, %v", allowed, got, err)
		}
	}
	if _, err := render(t, chartOf(t, files), order.Order{Values: map[string]any{"x": "{{ tpl .Values.x . }}"}, Templates: order.Templates{Trusted: []string{"{{ tpl .Values.x . }}"}}}); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("a text that evaluates itself: got %v", err)
	}
}

// TestTextOfASecretIsNotQuoted: nor is a part of it, which a mask would not know.
func TestTextOfASecretIsNotQuoted(t *testing.T) {
	const secret = "quite-secret"
	for why, text := range map[string]string{
		"an action":      `a {{ print "` + secret + `" }} b`,
		"no template":    `a {{ "` + secret + ` b`,
		"a joined one":   `{ print "` + secret + `" }} b`,
		"half a quote":   `{{ ` + secret + `-secret ( }}`,
		"no function":    `{{ quite_secret }} b`,
		"a joined quote": `{ "` + secret + ` b`,
	} {
		o := order.Order{Values: map[string]any{"x": text}, Templates: order.Templates{Secret: true}}
		if strings.Contains(text, "{{") {
			o.Templates.Untrusted = []order.Text{{Path: "spec.x", Text: text, OfObject: true}}
		}
		_, err := render(t, chartOf(t, map[string]string{"templates/a": `{{ tpl (print "{" .Values.x) . }}{{ tpl .Values.x . }}`}), o)
		if err == nil || strings.Contains(err.Error(), "quite") {
			t.Errorf("%s: got %v", why, err)
		}
	}
}
