package values_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// chart writes a chart with the files and returns it.
func chart(t *testing.T, files map[string]string) *watches.Chart {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	maps.Copy(all, files)
	scratch.Write(t, dir, all)
	return &watches.Chart{Path: dir}
}

func mustBuild(t *testing.T, c *watches.Chart, overrides []watches.Override, spec map[string]any) *values.Values {
	t.Helper()
	got, err := build(c, overrides, spec)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func build(c *watches.Chart, overrides []watches.Override, spec map[string]any) (*values.Values, error) {
	source, err := values.NewSource(c, overrides)
	if err != nil {
		return nil, err
	}
	return source.Build(spec, nil)
}

func TestTheSpecIsTheValuesAsWritten(t *testing.T) {
	spec := map[string]any{"replicaCount": int64(3), "deepKey": map[string]any{"list": []any{"a", 1.5, true, nil}}, "image": map[string]any{"tag": "v1"}}
	overrides := []watches.Override{
		{Key: "image.tag", Value: "v2,v3"},
		{Key: "list[0].name", Value: int64(7)},
		{Key: `a\.b`, Value: map[string]any{"c": "d"}},
	}
	got := mustBuild(t, chart(t, nil), overrides, spec)
	want := map[string]any{
		"replicaCount": int64(3), "deepKey": map[string]any{"list": []any{"a", 1.5, true, nil}}, "image": map[string]any{"tag": "v2,v3"},
		"list": []any{map[string]any{"name": int64(7)}}, "a.b": map[string]any{"c": "d"},
	}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if spec["list"] != nil || spec["image"].(map[string]any)["tag"] != "v1" {
		t.Errorf("the spec was changed: %v", spec)
	}
}

func TestOverrides(t *testing.T) {
	evaluate := func(texts []string) (results []order.Evaluated, err error) {
		for _, text := range texts {
			result := order.Evaluated{Text: strings.ToUpper(text)}
			if strings.Contains(text, "nothing") {
				result = order.Evaluated{Error: "no function"}
			}
			results = append(results, result)
		}
		return results, nil
	}
	got, err := values.Overrides([]watches.Override{{Key: "a", Value: []any{"{{a}}", int64(1), map[string]any{"b": "{{b}}"}, "c"}}}, evaluate)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"{{A}}", int64(1), map[string]any{"b": "{{B}}"}, "c"}, got[0].Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, fault := range []watches.Override{{Key: "a", Value: "{{ nothing }}", Line: 7}, {Key: "a[x]", Value: "b", Line: 7}} {
		if _, err := values.Overrides([]watches.Override{fault}, evaluate); err == nil || !strings.Contains(err.Error(), "line 7: overrideValues.") {
			t.Errorf("%v was taken: %v", fault, err)
		}
	}
	broken := func([]string) ([]order.Evaluated, error) { return nil, nil }
	if _, err := values.Overrides([]watches.Override{{Key: "a", Value: "{{ a }}"}}, broken); err == nil {
		t.Error("a template without a result was taken")
	}
	if _, err := values.Overrides([]watches.Override{{Key: "a", Value: "a"}}, nil); err != nil {
		t.Errorf("chart-exec is needed without a template: %v", err)
	}
}

func TestTheDigestIsThatOfChartAndValues(t *testing.T) {
	plain := map[string]string{"templates/a.yaml": "a: {{ randAlphaNum 5 }}\n"}
	c := chart(t, plain)
	first := mustBuild(t, c, nil, map[string]any{"b": "c", "d": "e"}).Digest
	if len(first) == 0 || len(first) > 63 {
		t.Errorf("%q is not a label", first)
	}
	if again := mustBuild(t, c, nil, map[string]any{"d": "e", "b": "c"}).Digest; again != first {
		t.Errorf("the same gives %q and %q", first, again)
	}
	if elsewhere := mustBuild(t, chart(t, plain), nil, map[string]any{"b": "c", "d": "e"}).Digest; elsewhere != first {
		t.Error("the digest depends on the chart's place")
	}
	seen := []string{first}
	for why, other := range map[string]*values.Values{
		"another spec":     mustBuild(t, c, nil, map[string]any{"b": "c", "d": "f"}),
		"no spec":          mustBuild(t, c, nil, nil),
		"an override":      mustBuild(t, c, []watches.Override{{Key: "d", Value: "g"}}, map[string]any{"b": "c", "d": "e"}),
		"another template": mustBuild(t, chart(t, map[string]string{"templates/a.yaml": "b: c\n"}), nil, map[string]any{"b": "c", "d": "e"}),
	} {
		if slices.Contains(seen, other.Digest) {
			t.Errorf("%s does not change the digest", why)
		}
		seen = append(seen, other.Digest)
	}
}

func TestTheSchemaIsRespected(t *testing.T) {
	c := chart(t, map[string]string{
		"values.schema.json": `{"type":"object","required":["name"],"properties":{"size":{"type":"integer"},"name":{"type":"string"}}}`,
		"values.yaml":        "name: by default\n",
	})
	mustBuild(t, c, nil, map[string]any{"size": int64(1)})
	if _, err := build(c, nil, map[string]any{"size": "big"}); err == nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("got %v", err)
	}
}

func TestTextThatLooksLikeATemplateIsTrustedWhereItIsAllowed(t *testing.T) {
	const evil = `x{{ lookup "v1" "Secret" "" "" }}`
	calls := map[string]string{"templates/a.yaml": "a: {{ tpl .Values.text . }}\n"}
	below := map[string]string{
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/templates/_x.tpl": `{{ define "x" }}{{ .Values.a | tpl }}{{ end }}`,
	}
	own := maps.Clone(calls)
	maps.Copy(own, map[string]string{
		"values.yaml":           "a: ['" + evil + "']\nm: {'" + evil + "': b}\n",
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "c: '" + evil + "'\n",
	})
	for why, test := range map[string]struct {
		files map[string]string
		spec  map[string]any
		allow []string
		all   bool
		// overrides are those of the watch.
		overrides []watches.Override
		path      string // of what is not trusted; "" if there is none
	}{
		"a text":                          {files: calls, spec: map[string]any{"text": evil}, path: "spec.text"},
		"one deep in lists":               {files: calls, spec: map[string]any{"a": []any{"b", map[string]any{"c": evil}}}, path: "spec.a[1].c"},
		"a key":                           {files: calls, spec: map[string]any{"a": map[string]any{evil: "b"}}, path: "spec.a"},
		"for a subchart":                  {files: below, spec: map[string]any{"text": evil}, path: "spec.text"},
		"but not text without a template": {files: calls, spec: map[string]any{"text": "{ }} {a: {b: c}}"}},
		"nor where no template calls tpl": {files: map[string]string{"templates/_helpers.tpl": "{{/* see _helpers.tpl */}}"}, spec: map[string]any{"text": evil}},
		"nor where it is allowed":         {files: calls, spec: map[string]any{"text": evil}, allow: []string{"spec.text"}},
		"nor below where it is allowed":   {files: calls, spec: map[string]any{"text": []any{evil}}, allow: []string{"spec.text"}},
		"a path is no prefix of a name":   {files: calls, spec: map[string]any{"textile": evil}, allow: []string{"spec.text"}, path: "spec.textile"},
		"each of several":                 {files: calls, spec: map[string]any{"a": evil, "b": map[string]any{evil: evil}}, path: "spec.a spec.b spec.b." + evil},
		"nor what the chart has there":    {files: own, spec: map[string]any{"a": []any{evil}, "m": map[string]any{evil: "b"}, "sub": map[string]any{"c": evil}}},
		"but at another place":            {files: own, spec: map[string]any{"a": []any{"b", evil}, "c": evil}, path: "spec.a[1] spec.c"},
		"nor what the author has there":   {files: calls, spec: map[string]any{"text": evil}, overrides: []watches.Override{{Key: "text", Value: evil}}},
		"nor where all of it is allowed":  {files: calls, spec: map[string]any{"text": evil}, all: true},
	} {
		t.Run(why, func(t *testing.T) {
			c := chart(t, test.files)
			c.TemplatesInSpec, c.AllTemplates = test.allow, test.all
			got := mustBuild(t, c, test.overrides, test.spec)
			var paths []string
			for _, text := range got.Untrusted {
				paths = append(paths, text.Path)
			}
			if strings.Join(paths, " ") != test.path {
				t.Errorf("not trusted is %q, want %q", paths, test.path)
			}
			if allowed := len(test.allow) > 0 && test.path == "" || test.overrides != nil; slices.Contains(got.Trusted, evil) != allowed {
				t.Errorf("trusted is %q", got.Trusted)
			}
		})
	}
}

func TestTextOfObjectsIsNotTrusted(t *testing.T) {
	source, err := values.NewSource(chart(t, map[string]string{"templates/a.yaml": "a: {{ tpl .Values.a . }}\n"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := source.BuildOver(map[string]any{"a": "{{ 1 }}", "b": "{{ 2 }}"}, map[string]any{"b": "{{ 3 }}"}, map[string]any{"c": "{{ 4 }}"})
	want := []order.Text{{Path: "spec.a", Text: "{{ 1 }}", OfObject: true}, {Path: "spec.b", Text: "{{ 3 }}"}}
	if err != nil || !slices.Equal(got.Untrusted, want) || !slices.Equal(got.Trusted, []string{"{{ 4 }}"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestReleaseNamesAreHelms compares the rule of package watches, which does not know Helm, with
// Helm's.
func TestReleaseNamesAreHelms(t *testing.T) {
	for _, name := range []string{
		"", "a", "a.b", "a-b", "a_b", "A", ".", "..", "a.", "-a", "a/b", "a..b", "1", "ä", "a b", "a\n",
		strings.Repeat("a", 53), strings.Repeat("a", 54), strings.Repeat("a.", 26) + "a",
	} {
		_, _, err := new(watches.Chart).ReleaseOf(map[string]any{"metadata": map[string]any{"namespace": "ns", "name": name}})
		if want := chartutil.ValidateReleaseName(name); (err == nil) != (want == nil) {
			t.Errorf("%q: got %v, Helm says %v", name, err, want)
		}
	}
}
