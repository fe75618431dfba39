package check

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestFaultsOfCharts: chart-exec renders the chart for the samples of the kind.
func TestFaultsOfCharts(t *testing.T) {
	const sample = "apiVersion: a.example.com/v1\nkind: Web\nmetadata: {name: x}\nspec: "
	good := map[string]string{
		"watches.yaml":                "- {group: a.example.com, version: v1, kind: Web, chart: charts/web}\n",
		"charts/web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"charts/web/templates/a.yaml": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: {{ required \"host is needed\" .Values.host }}}\n",
		"config/samples/web.yaml":     sample + "{host: x}\n",
		"config/rbac/role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
`,
	}
	for why, test := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"nothing": {nil, nil},
		"a sample lacks a value": {
			map[string]string{"config/samples/web.yaml": sample + "{}\n"}, []string{"config/samples/web.yaml:1 chart-values host is needed"},
		},
		"a sample lacks what an object may give": {
			map[string]string{"config/samples/web.yaml": sample + "{}\n", "watches.yaml": "- {group: a.example.com, version: v1, kind: Web, chart: charts/web, valuesFrom: [{kind: Secret, name: hosts}]}\n"},
			[]string{"watches.yaml:1 chart-values without what valuesFrom gives"},
		},
		"a schema refuses a sample": {
			map[string]string{"charts/web/values.schema.json": `{"properties": {"host": {"maxLength": 3}}}`, "config/samples/web.yaml": sample + "{host: long}\n"},
			[]string{"config/samples/web.yaml:1 chart-values host"},
		},
		"there is no sample":      {map[string]string{"config/samples/web.yaml": ""}, []string{"watches.yaml:1 chart-values with its own values alone"}},
		"a template is broken":    {map[string]string{"charts/web/templates/a.yaml": "{{ if }}"}, []string{"config/samples/web.yaml:1 chart-values missing value for if"}},
		"it renders no YAML":      {map[string]string{"charts/web/templates/a.yaml": "a: ["}, []string{"config/samples/web.yaml:1 chart-values is not an object"}},
		"a dependency is missing": {map[string]string{"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies: [{name: db, version: 1.0.0, repository: x}]\n"}, []string{"watches.yaml:1 chart depends on db"}},
		"it has no version":       {map[string]string{"charts/web/Chart.yaml": "apiVersion: v2\nname: web\n"}, []string{"watches.yaml:1 chart version"}},
		"rights are missing": {
			map[string]string{"config/rbac/role.yaml": strings.ReplaceAll(good["config/rbac/role.yaml"], `resources: ["*"]`, `resources: [webs, webs/status, events, secrets]`)},
			[]string{"watches.yaml:1 missing-right watch cronjobs.batch"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir := t.TempDir()
			scratch.Write(t, dir, good)
			scratch.Write(t, dir, test.change)
			o := options(t, dir)
			o.Executable = filepath.Join(scratch.Repository(t), "bin", "ensign")
			r, err := check.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got, want []string
			for _, f := range r.Relative(o.Dir).Findings {
				if f.ID == "no-crd" {
					continue
				}
				line := fmt.Sprintf("%s:%d %s", f.File, f.Line, f.ID)
				got = append(got, line)
				if n := len(got) - 1; n < len(test.want) && !strings.Contains(f.Message, strings.TrimPrefix(test.want[n], line+" ")) {
					t.Errorf("want %q, got %q", test.want[n], f.Message)
				}
			}
			for _, one := range test.want {
				want = append(want, strings.Join(strings.Fields(one)[:2], " "))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
