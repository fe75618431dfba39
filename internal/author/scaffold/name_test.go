package scaffold

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// TestAChartBecomesAProject: init with a chart is init and then create api. What nobody said is what
// operator-sdk says, or the chart.
func TestAChartBecomesAProject(t *testing.T) {
	for why, test := range map[string]struct {
		project Project
		kind    Kind
		want    string // in watches.yaml
		domain  string // and the kind in PROJECT
		sample  string
		note    string
	}{
		"an API version": {
			Project{}, Kind{APIVersion: "anywhere.io/v1alpha1", Kind: "memcached"}, "group: anywhere.io\n  version: v1alpha1\n  kind: Memcached\n",
			"    domain: anywhere.io\n    kind: Memcached\n", "v1alpha1_memcached.yaml", "the kind is called Memcached",
		},
		"an API version in a domain": {
			Project{Domain: "anywhere.io"}, Kind{APIVersion: "apps.anywhere.io/v1", Kind: "Web"}, "group: apps.anywhere.io\n  version: v1\n  kind: Web\n",
			"    domain: anywhere.io\n    group: apps\n", "apps_v1_web.yaml", "copied to charts/web",
		},
		"the domain alone": {
			Project{Domain: "anywhere.io"}, Kind{NoGroup: true, Version: "v2", Kind: "my-web_server"}, "group: anywhere.io\n  version: v2\n  kind: MyWebServer\n",
			"    domain: anywhere.io\n    kind: MyWebServer\n", "v2_mywebserver.yaml", "copied to charts/web",
		},
		"nothing": {
			Project{}, Kind{}, "group: charts.my.domain\n  version: v1\n  kind: Web\n", "    domain: my.domain\n    group: charts\n", "charts_v1_web.yaml",
			"the API group is charts.my.domain, which cannot be changed",
		},
	} {
		t.Run(why, func(t *testing.T) {
			dir, k := t.TempDir(), chartKind(web(t, nil), describe.Object{APIVersion: "v1", Kind: "ConfigMap"})
			k.Group, k.Version, k.Kind, k.APIVersion, k.NoGroup = test.kind.Group, test.kind.Version, test.kind.Kind, test.kind.APIVersion, test.kind.NoGroup
			test.project.ProjectName = "shop"
			plan, err := Init(dir, test.project, k)
			written(t, plan, err)
			for path, want := range map[string]string{
				"watches.yaml": test.want + "  chart: charts/web\n", "PROJECT": test.domain, "config/samples/kustomization.yaml": "  - " + test.sample + "\n",
				"config/rbac/role.yaml": "resources: [configmaps]\n", plan.Sample: "replicas: 1\n", "Dockerfile": "COPY charts/ ", "charts/web/Chart.yaml": "name: web",
			} {
				if got := read(t, dir, path); !strings.Contains(got, want) {
					t.Errorf("want %q in %s, got\n%s", want, path, got)
				}
			}
			if notes := strings.Join(plan.Notes, "\n"); plan.Sample != "config/samples/"+test.sample || !strings.Contains(notes, test.note) {
				t.Errorf("got the sample %s, the notes %s", plan.Sample, notes)
			}
			again := chartKind("charts/web")
			again.Chart, again.Kind = dir+"/charts/web", "Other"
			plan, err = CreateAPI(dir, again)
			written(t, plan, err)
		})
	}
}

// TestWhereNoProjectCanBe: what is written into a chart's directory becomes a part of the chart.
func TestWhereNoProjectCanBe(t *testing.T) {
	chart := web(t, nil)
	scratch.Write(t, chart, map[string]string{"operator/README.md": "\n"})
	for _, dir := range []string{chart, chart + "/operator"} {
		if _, err := Init(dir, Project{Domain: "anywhere.io", ProjectName: "shop"}, chartKind(chart)); err == nil || !strings.Contains(err.Error(), "beside the chart") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	dir := newProject(t)
	scratch.Write(t, dir, map[string]string{"charts/web/Chart.yaml": "\n"})
	if _, err := CreateAPI(dir, chartKind(chart)); err == nil || !strings.Contains(err.Error(), "has charts/web already: give --chart=charts/web") {
		t.Errorf("got %v", err)
	}
	plan, err := Init(t.TempDir(), Project{Domain: "io", ProjectName: "shop"}, Kind{NoGroup: true, Version: "v1", Kind: "Web", GenerateRole: true})
	if err == nil || !strings.Contains(err.Error(), "the API group io has no dot") {
		t.Errorf("got %v, %v", plan, err)
	}
}

// TestTheFaultOfANameSaysWhereItComesFrom: a name that was given is not called a default.
func TestTheFaultOfANameSaysWhereItComesFrom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "no_name")
	for name, want := range map[string]string{
		"":      `the directory's name, which --project-name replaces: "no_name": write`,
		"no_no": `--project-name: "no_no": write`,
	} {
		if _, err := Init(dir, Project{Domain: "my.tld", ProjectName: name}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
