package describe

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"a/Chart.yaml": "apiVersion: v2\nname: a\nversion: 0.1.0\n", "a/values.yaml": "x: 1\n", "a/crds/one.yaml": "kind: X\n",
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
	if diff := cmp.Diff(&Chart{Name: "a", Version: "0.1.0", Values: []byte("x: 1\n"), CRDs: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"b", "c"} {
		if _, err := Load(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is no chart, got no error", name)
		}
	}
}

func TestReadWhatAChartRenders(t *testing.T) {
	const printed = `{"name":"a/templates/x.yaml","text":"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\n---\n# none\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n"}
{"name":"a/templates/y.yaml","text":"\n"}
`
	got, err := read([]byte(printed))
	if err != nil {
		t.Fatal(err)
	}
	want := Rendered{
		Objects: []Object{{APIVersion: "v1", Kind: "Secret", Name: "s", Namespace: "ns"}, {APIVersion: "batch/v1", Kind: "Job", Hook: true}},
		Empty:   []string{"a/templates/y.yaml"},
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
