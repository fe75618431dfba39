package describe

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbac "k8s.io/api/rbac/v1"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n", "a/values.yaml": "x: 1\n", "a/crds/one.yaml": "kind: CustomResourceDefinition\n",
		"b/Chart.yaml": "apiVersion: v2\nname: b\n",
	})
	got, err := Load(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range got.Files {
		names = append(names, file.Name)
	}
	if diff := cmp.Diff([]string{"Chart.yaml", "crds/one.yaml", "values.yaml"}, names); diff != "" {
		t.Errorf("the files (-want +got):\n%s", diff)
	}
	got.Files = nil
	if diff := cmp.Diff(&Chart{Name: "a", Version: "0.1.0", Values: []byte("x: 1\n"), Defaults: map[string]any{"x": float64(1)}, CRDs: []CRD{{}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"b", "c"} {
		if _, err := Load(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is not a chart, got no error", name)
		}
	}
}

func TestReadWhatAChartRenders(t *testing.T) {
	const printed = `{"name":"a/templates/x.yaml","text":"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\n---\n# none\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {generateName: j-, annotations: {helm.sh/hook: pre-install}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: p-, annotations: {helm.sh/hook: test}}\n"}
{"name":"a/templates/y.yaml","text":"\n"}
`
	got, err := read([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	want := Rendered{
		Objects: []Object{
			{APIVersion: "v1", Kind: "Secret", Name: "s", Namespace: "ns", File: "templates/x.yaml"},
			{APIVersion: "batch/v1", Kind: "Job", Hook: true, Nameless: true, File: "templates/x.yaml"},
			{APIVersion: "v1", Kind: "Pod", Hook: true, File: "templates/x.yaml"},
		},
		Empty: []string{"a/templates/y.yaml"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for printed, want := range map[string]string{`{"name":"z","text":"a: ["}`: "z: what it renders", `{`: "read what the chart renders"} {
		if _, err := read([]byte(printed)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", printed, want, err)
		}
	}
}

// TestWhatAChartAsksOfACluster: what the files tell of its kinds, of lookups, and of what its roles give.
func TestWhatAChartAsksOfACluster(t *testing.T) {
	dir := t.TempDir()
	const definition = "kind: CustomResourceDefinition\nspec: {group: x.org, scope: Namespaced, names: {kind: Thing, plural: things}}\n"
	scratch.Write(t, dir, map[string]string{
		"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n", "a/crds/all.yaml": "---\n" + definition + "---\n" + strings.ReplaceAll(definition, "hing", "ing"),
		"a/templates/one.yaml":              "{{ $s := (lookup \"v1\" \"Secret\" .Release.Namespace \"x\") }}{{/* lookup \"v1\" \"Pod\" */}}{{- if (lookup \"v1\" \"Secret\" \"\" \"\").items }}{{ end }}",
		"a/charts/b/Chart.yaml":             "apiVersion: v2\nname: b\nversion: 0.1.0\n",
		"a/charts/b/templates/_helpers.tpl": "{{- with lookup \"apps/v1\" .kind .ns .name }}{{ end }}{{ with lookup \"v1\" \"Node\" \"\" \"\" }}{{ end }}{{ lookuptable \"v1\" \"No\" }}",
	})
	got, err := Load(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Chart{CRDs: []CRD{{"x.org", "Thing", "things", true}, {"x.org", "Ting", "tings", true}}, Lookups: []Lookup{{"v1", "Secret"}, {"v1", "Node"}}, LooksUpMore: true}
	if diff := cmp.Diff(want, &Chart{CRDs: got.CRDs, Lookups: got.Lookups, LooksUpMore: got.LooksUpMore}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const printed = "kind: ClusterRole\naggregationRule: {}\nrules: [{apiGroups: [apps], verbs: [get]}]\n---\nkind: RoleBinding\nroleRef: {kind: Role, name: r}\n---\nkind: PrometheusRule\nrules: text\nspec: 1\n---\nkind: Role\nrules: text\n---\n" + definition
	text, err := json.Marshal(map[string]string{"name": "x", "text": printed})
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := read(text)
	if err != nil {
		t.Fatal(err)
	}
	objects := []Object{
		{Kind: "ClusterRole", Aggregates: true, Rules: []rbac.PolicyRule{{APIGroups: []string{"apps"}, Verbs: []string{"get"}}}},
		{Kind: "RoleBinding", RoleRef: rbac.RoleRef{Kind: "Role", Name: "r"}},
		{Kind: "PrometheusRule"}, {Kind: "Role"}, {Kind: "CustomResourceDefinition", Defines: CRD{"x.org", "Thing", "things", true}},
	}
	if diff := cmp.Diff(objects, rendered.Objects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
