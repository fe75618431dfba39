package watches

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// chartOperator is an operator's directory with a chart, as a directory and as an archive.
func chartOperator(tb testing.TB) Search {
	tb.Helper()
	search := operator(tb)
	for _, path := range []string{"charts/hello/Chart.yaml", "charts/hello-1.tgz", "charts/empty/README.md"} {
		write(tb, filepath.Join(search.Dir, path), "name: hello\n")
	}
	search.LookupEnv = func(name string) (string, bool) {
		value, set := map[string]string{"IMAGE": "hello:1,2", "PORT": "80"}[name]
		return value, set
	}
	return search
}

const chartHead = "- version: v1\n  kind: hello\n  chart: charts/hello\n"

func TestEveryFieldOfAChart(t *testing.T) {
	search := chartOperator(t)
	got := mustLoad(t, search, chartHead+`  overrideValues:
    image.ref: $IMAGE
    tag: "${TAG:-v1}"
    port: "$PORT"
    replicas: 3
    debug: true
    list: [a, $PORT, 1.5]
    nested: {key: $IMAGE}
  dryRunOption: server
  maxHistory: 3
  wait: true
  drift: warn
  driftIgnore: [{kind: Deployment, group: apps, name: web, pointers: [/spec/replicas]}]
  adopt: true
  apply: client
  crds: replace
  templatesInSpec: [spec.config]
  timeout: 5m
  watchDependentResources: false
  watchClusterScopedResources: false
  releaseName: hello
  releaseNamespace: spec.target.namespace
`)[0]
	want := &Chart{
		Path: filepath.Join(search.Dir, "charts/hello"), DryRun: "server", MaxHistory: 3, Wait: true, Drift: DriftWarn, Adopt: true, Apply: ApplyClient, CRDs: CRDsReplace,
		Overrides: []Override{
			{"image.ref", "hello:1,2", 5},
			{"tag", "v1", 6},
			{"port", "80", 7},
			{"replicas", int64(3), 8},
			{"debug", true, 9},
			{"list", []any{"a", "80", 1.5}, 10},
			{"nested", map[string]any{"key": "hello:1,2"}, 11},
		},
		DriftIgnore:     []DriftIgnore{{Kind: "Deployment", Group: "apps", Name: "web", Pointers: []string{"/spec/replicas"}}},
		TemplatesInSpec: []string{"spec.config"},
		ReleaseName:     ReleaseText{Fixed: "hello"}, ReleaseNamespace: ReleaseText{Path: Path{"spec", "target", "namespace"}},
	}
	if diff := cmp.Diff(want, got.Chart); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Timeout != 5*time.Minute || got.ReconcilePeriod != time.Minute || got.WatchDependentResources || got.WatchClusterScopedResources || got.GVK.Kind != "hello" {
		t.Errorf("got %+v", got)
	}
}

func TestAChartHasDefaults(t *testing.T) {
	got := mustLoad(t, chartOperator(t), "- version: v1\n  kind: Hello\n  chart: charts/hello-1.tgz\n  reconcilePeriod: 5m\n  templatesInSpec: true\n")[0]
	want := Chart{Path: got.Chart.Path, MaxHistory: 10, Drift: DriftRepair, Apply: ApplyServer, CRDs: CRDsCreate, AllTemplates: true}
	if diff := cmp.Diff(&want, got.Chart); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ReconcilePeriod != 5*time.Minute || !got.WatchClusterScopedResources {
		t.Errorf("got %+v", got)
	}
	finalizer := got.Finalizer
	for _, name := range []string{"helm.sdk.operatorframework.io/uninstall-release", "uninstall-helm-release"} {
		if !finalizer.Is(name) {
			t.Errorf("%q is not the finalizer %+v", name, finalizer)
		}
	}
	if finalizer.Is("") || finalizer.Is("other") || finalizer.Name != "helm.sdk.operatorframework.io/uninstall-release" {
		t.Errorf("the finalizer is %+v", finalizer)
	}
}

func TestFaultsOfAChart(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"what a chart is":                     {"- {version: v1, kind: K, chart: charts/none}\n", []string{"1 chart: … was not found"}},
		"a directory without a chart":         {"- {version: v1, kind: K, chart: charts/empty}\n", []string{"1 holds no chart"}},
		"a file that is no archive":           {"- {version: v1, kind: K, chart: playbooks/site.yml}\n", []string{"1 is not a chart"}},
		"an empty one":                        {"- {version: v1, kind: K, chart: ''}\n", []string{"1 chart is empty"}},
		"two contents":                        {chartHead + "  role: mysql\n  playbook: playbooks/site.yml\n", []string{"4 a chart (line 3) and a role or playbook", "5 a chart (line 3) and a role or playbook"}},
		"what only fits a role or playbook":   {chartHead + "  vars: {a: 1}\n  warm: true\n  finalizer: {name: a.b/c}\n", []string{`4 "vars" does not fit a watch with a chart`, `5 "warm"`, `6 "finalizer"`}},
		"what only fits a chart":              {"- version: v1\n  kind: K\n  role: mysql\n  wait: true\n  crds: skip\n", []string{`4 "wait" does not fit a watch with a role or playbook`, `5 "crds"`}},
		"a variable that is not set":          {chartHead + "  overrideValues:\n    a: $NONE\n    b: [\"${ALSO_NONE}\"]\n", []string{"5 NONE is not set", "6 ALSO_NONE is not set"}},
		"an unknown word":                     {chartHead + "  drift: never\n  crds: [create]\n  dryRunOption: both\n", []string{"4 drift … repair, warn, off", "5 crds", "6 dryRunOption"}},
		"drift to ignore, without its fields": {chartHead + "  driftIgnore:\n  - {kind: Deployment}\n  - {pointers: [spec]}\n", []string{"5 pointers is missing", "6 a JSON pointer", "6 kind of driftIgnore is missing"}},
		"pointers that are none":              {chartHead + "  driftIgnore:\n  - kind: A\n    pointers:\n    - /a/~b\n    - /a~\n    - /~01/-/name=a\n    - \"\"\n", []string{"7 a JSON pointer", "8 a JSON pointer", "10 a JSON pointer"}},
		"overrides that are no mapping":       {chartHead + "  overrideValues: [a=b]\n", []string{"4 overrideValues"}},
		"values from no object":               {chartHead + "  valuesFrom:\n  - {name: a}\n  - {kind: Secret}\n  - {kind: Secret, name: ''}\n", []string{"5 kind of valuesFrom is missing", "6 name of valuesFrom is missing", "7 name is empty"}},
		"values at no place":                  {chartHead + "  valuesFrom:\n  - {kind: Pod, name: a}\n  - {kind: Secret, name: a, key: a/b}\n  - {kind: Secret, name: 'spec.a[*].b'}\n  - {kind: Secret, name: a, targetPath: 'a[0].b'}\n", []string{"5 kind: found", "6 key: \"a/b\" is not allowed", "7 name: \"spec.a[*].b\" is not a path", "8 targetPath: \"a[0].b\" is not a path"}},
		"values of another's namespace":       {chartHead + "  valuesFrom:\n  - {kind: Secret, name: a, namespace: b}\n", []string{"5 \"namespace\" is not a field"}},
		"values from no list of the spec":     {chartHead + "  valuesFromInSpec: 'spec.a[*].b'\n", []string{"4 valuesFromInSpec:"}},
		"templates at no path":                {chartHead + "  templatesInSpec: ['']\n", []string{"4 templatesInSpec is empty"}},
		"a release's name that Helm refuses":  {chartHead + "  releaseName: A\n", []string{"4 releaseName: \"A\" is not allowed"}},
		"a path to more than one name":        {chartHead + "  releaseName: spec.a[*].b\n  releaseNamespace: spec.\n", []string{"4 releaseName: … not a path", "5 releaseNamespace: … not a path"}},
		"an empty namespace":                  {chartHead + "  releaseNamespace: ''\n", []string{"4 releaseNamespace is empty"}},
		"a confined run's release elsewhere":  {chartHead + "  releaseNamespace: other\n  confineToNamespace: true\n", []string{"4 confineToNamespace (line 5)"}},
		"a history of less than none":         {chartHead + "  maxHistory: -1\n", []string{"4 maxHistory"}},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := load(t, chartOperator(t), test.text)
			wantFaults(t, err, test.want...)
		})
	}
}
