package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// chartKind is a kind that a chart reconciles, which renders these objects.
func chartKind(path string, objects ...describe.Object) Kind {
	return Kind{
		Group: "apps", Version: "v1", Kind: "Web", Namespaced: true, Chart: path, Project: Project{Program: "ensign"},
		Render: func(string, map[string]any) (describe.Rendered, error) {
			return describe.Rendered{Objects: objects, Empty: []string{"web/templates/ingress.yaml"}}, nil
		},
	}
}

// web is a small chart in a directory of its own.
func web(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"web/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"web/templates/all.yaml":  "kind: ConfigMap\n",
		"web/values.yaml":         "# How many.\nreplicas: 1\n",
		"web/templates/NOTES.txt": "{{ .Values.replicas }}",
	}
	maps.Copy(all, files)
	scratch.Write(t, dir, all)
	return filepath.Join(dir, "web")
}

func TestAChartBecomesAKind(t *testing.T) {
	dir := newProject(t)
	plan, err := CreateAPI(dir, chartKind(web(t, nil),
		describe.Object{APIVersion: "apps/v1", Kind: "Deployment"}, describe.Object{APIVersion: "v1", Kind: "ConfigMap"},
		describe.Object{APIVersion: "v1", Kind: "Secret"}, describe.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}}}}))
	written(t, plan, err)
	for path, parts := range map[string][]string{
		"charts/web/templates/NOTES.txt":            {"{{ .Values.replicas }}"}, // It is copied, and no template of this package.
		"watches.yaml":                              {"  kind: Web\n  chart: charts/web\n"},
		"config/samples/apps_v1_web.yaml":           {"spec:\n  # How many.\n  replicas: 1\n"},
		"config/crd/bases/apps.myorg.tld_webs.yaml": {"description: Web is reconciled by the chart charts/web.", "description: How many.\n", "type: integer\n", "default: {}\n"},
		"Dockerfile":                                {"COPY charts/ ${HOME}/charts/\n"},
		".dockerignore":                             {"\n!charts\n"},
		"config/rbac/role.yaml": {
			"resources: [webs]\n    verbs: [get, list, watch, patch]\n",
			"resources: [deployments]\n    verbs: [get, list, watch, create, update, patch, delete]\n",
			// The project has the same of the group events.k8s.io.
			"- apiGroups: [\"\"]\n    resources: [events]\n    verbs: [create, patch]\n",
			// The role's configmaps can't be deleted: that rule does not do.
			"resources: [configmaps]\n    verbs: [get, list, watch, create, update, patch, delete]\n",
		},
	} {
		for _, part := range parts {
			if got := read(t, dir, path); !strings.Contains(got, part) {
				t.Errorf("%s: want %q in\n%s", path, part, got)
			}
		}
	}
	if got := strings.Count(read(t, dir, "config/rbac/role.yaml"), "resources: [secrets]"); got != 1 {
		t.Errorf("want one rule for Secrets, got %d", got)
	}
	if strings.Contains(read(t, dir, "molecule/default/converge.yml"), "Web") {
		t.Error("Molecule has no way to run a chart")
	}
	notes := strings.Join(plan.Notes, "\n")
	for _, want := range []string{"copied to charts/web", "the sample, which is 4 of its objects", "render nothing, so that nothing is known of them: web/templates/ingress.yaml", "takes further fields"} {
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in\n%s", want, notes)
		}
	}
	if strings.Contains(strings.Join(plan.Notes, ""), "linter") || strings.Count(read(t, dir, ".yamllint"), "/charts/") != 1 {
		t.Errorf("the linters of a new project leave charts alone; got %q", plan.Notes)
	}
	// A second kind does not list the directory again.
	second := chartKind(filepath.Join(dir, "charts", "web"))
	second.Kind, second.Group = "Other", "more"
	plan, err = CreateAPI(dir, second)
	written(t, plan, err)
	if got := strings.Count(read(t, dir, "Dockerfile"), "COPY charts/"); got != 1 {
		t.Errorf("the directory is copied %d times", got)
	}
}

// TestTheLintersOfAnOlderProjectLeaveAChartAlone: init of earlier versions told them nothing of charts.
func TestAProjectMayHaveNoDockerignore(t *testing.T) {
	dir := newProject(t)
	if err := os.Remove(filepath.Join(dir, ".dockerignore")); err != nil {
		t.Fatal(err)
	}
	plan, err := CreateAPI(dir, chartKind(web(t, nil)))
	written(t, plan, err)
	if _, err := os.Stat(filepath.Join(dir, ".dockerignore")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheLintersOfAnOlderProjectLeaveAChartAlone(t *testing.T) {
	dir := newProject(t)
	scratch.Write(t, dir, map[string]string{
		".yamllint":     "---\nextends: default\nignore: |\n  /.venv/\nrules: {}\n",
		".ansible-lint": "---\nexclude_paths:\n  - config/\n",
	})
	plan, err := CreateAPI(dir, chartKind(web(t, nil)))
	written(t, plan, err)
	if got := read(t, dir, ".yamllint"); got != "---\nextends: default\nignore: |\n  /charts/\n  /.venv/\nrules: {}\n" {
		t.Errorf("got\n%s", got)
	}
	if got := read(t, dir, ".ansible-lint"); got != "---\nexclude_paths:\n  - config/\n  - charts/\n" {
		t.Errorf("got\n%s", got)
	}
	dir = newProject(t)
	scratch.Write(t, dir, map[string]string{".yamllint": "---\nextends: relaxed\n"})
	plan, err = CreateAPI(dir, chartKind(web(t, nil)))
	written(t, plan, err)
	if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(notes, "have the linter leave charts/ alone") {
		t.Errorf("got the notes %s", notes)
	}
}

// helm pull leaves an archive in the working directory, which is the project's.
func TestAnArchiveInTheProjectIsUnpacked(t *testing.T) {
	dir := newProject(t)
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	if err := errors.Join(files.AddFS(os.DirFS(filepath.Dir(web(t, nil)))), files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	scratch.Write(t, dir, map[string]string{"web-0.1.0.tgz": archive.String()})
	plan, err := CreateAPI(dir, chartKind(filepath.Join(dir, "web-0.1.0.tgz")))
	written(t, plan, err)
	if got := read(t, dir, "watches.yaml"); !strings.Contains(got, "chart: charts/web\n") || !exists(dir, "charts/web/Chart.yaml") {
		t.Errorf("want the chart below charts/, got\n%s", got)
	}
}

func TestTheSchemaOfAChartComesFirst(t *testing.T) {
	dir := newProject(t)
	plan, err := CreateAPI(dir, chartKind(web(t, map[string]string{
		"web/values.schema.json": `{"type": "object", "required": ["replicas", "host"], "properties": {"replicas": {"type": "integer", "maximum": 3}, "host": {"type": "string", "format": "hostname"}}}`,
	})))
	written(t, plan, err)
	got := read(t, dir, "config/crd/bases/apps.myorg.tld_webs.yaml")
	for _, want := range []string{"maximum: 3\n", "required: [spec]\n", "required:\n                - host\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if got := read(t, dir, "config/samples/apps_v1_web.yaml"); !strings.HasSuffix(got, "spec:\n  # How many.\n  replicas: 1\n  host: change-me\n") {
		t.Errorf("want a sample that the schema takes, got\n%s", got)
	}
	if !strings.Contains(strings.Join(plan.Notes, "\n"), "(format)") {
		t.Errorf("got the notes %q", plan.Notes)
	}
}

func TestWhatIsNoChart(t *testing.T) {
	dir := newProject(t)
	scratch.Write(t, dir, map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n"})
	for why, test := range map[string]struct {
		change func(*Kind)
		want   string
	}{
		"nothing is there":         {func(k *Kind) { k.Chart = filepath.Join(dir, "none") }, "name the directory"},
		"no chart is there":        {func(k *Kind) { k.Chart = filepath.Join(dir, "config") }, "name the directory"},
		"a role is asked for":      {func(k *Kind) { k.GenerateRole = true }, "leave --generate-role"},
		"a finalizer is asked for": {func(k *Kind) { k.Finalizer = true }, "leave --finalizer out"},
		"the image lacks it":       {func(k *Kind) { k.Chart = filepath.Join(dir, "web") }, "move it below charts/"},
		"it lacks a chart that it depends on": {func(k *Kind) {
			k.Chart = web(t, map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies: [{name: db, version: 1.0.0, repository: x}]\n"})
		}, "depends on db"},
		"it is a library": {func(k *Kind) {
			k.Chart = web(t, map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\ntype: library\n"})
		}, "is a library"},
		"its schema is broken": {func(k *Kind) { k.Chart = web(t, map[string]string{"web/values.schema.json": "{"}) }, "values.schema.json"},
	} {
		k := chartKind(web(t, nil))
		test.change(&k)
		if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want an error with %q, got %v", why, test.want, err)
		}
	}
	for want, fault := range map[string]error{
		"it does not render with the sample: complete config/samples, then ensign rbac --write adds them: host is required":                               errors.New("host is required"),
		"the program that renders it is missing: put chart-exec beside this program, then ensign rbac --write adds them: fork/exec : file does not exist": &fs.PathError{Op: "fork/exec", Err: fs.ErrNotExist},
	} {
		k := chartKind(web(t, nil))
		k.Render = func(string, map[string]any) (describe.Rendered, error) { return describe.Rendered{}, fault }
		plan, err := CreateAPI(newProject(t), k)
		if err != nil || !strings.Contains(strings.Join(plan.Notes, "\n"), "lacks the rights for the chart's objects, because "+want) {
			t.Errorf("got %v, the notes %q", err, plan.Notes)
		}
	}
}

// TestACopyHasNothingFromOutsideOfTheChart: a kubeconfig would end in the project and in its image.
func TestACopyHasNothingFromOutsideOfTheChart(t *testing.T) {
	dir := newProject(t)
	chart := web(t, map[string]string{"web/.helmignore": "notes/\n", "web/notes/secret": "hidden\n"})
	scratch.Write(t, filepath.Dir(chart), map[string]string{"kubeconfig": "hidden\n"})
	link := filepath.Join(chart, "templates", "config.yaml")
	if err := os.Symlink("../../kubeconfig", link); err != nil {
		t.Fatal(err)
	}
	_, err := CreateAPI(dir, chartKind(chart))
	if err == nil || !strings.Contains(err.Error(), "templates/config.yaml is a link to ../../kubeconfig, and only the regular files") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	plan, err := CreateAPI(dir, chartKind(chart))
	written(t, plan, err)
	if exists(dir, "charts/web/notes/secret") || !exists(dir, "charts/web/.helmignore") {
		t.Error("the copy is not what Helm reads")
	}
	if err := os.Symlink(chart, filepath.Join(dir, "charts", "linked")); err != nil {
		t.Fatal(err)
	}
	other := chartKind(filepath.Join(dir, "charts", "linked"))
	other.Kind = "Other"
	_, err = CreateAPI(dir, other)
	if err == nil || !strings.Contains(err.Error(), "it is a link out of the project, which the image would lack: remove the link and give --chart="+chart) {
		t.Errorf("got %v", err)
	}
}

func TestADefinitionFromValues(t *testing.T) {
	dir := newProject(t)
	values := filepath.Join(t.TempDir(), "values.yaml")
	scratch.Write(t, filepath.Dir(values), map[string]string{"values.yaml": "size: 3 # Pods.\n"})
	scratch.Write(t, dir, map[string]string{"roles/cache/tasks/main.yml": "[]\n"})
	k := Kind{Group: "apps", Version: "v1", Kind: "Cache", Namespaced: true, ValuesFile: values}
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	if got := read(t, dir, "config/crd/bases/apps.myorg.tld_caches.yaml"); !strings.Contains(got, "size:\n                  type: integer\n") {
		t.Errorf("got\n%s", got)
	}
	if got := read(t, dir, "config/samples/apps_v1_cache.yaml"); !strings.Contains(got, "spec:\n  size: 3 # Pods.\n") {
		t.Errorf("got\n%s", got)
	}
	k.Kind, k.GenerateRole = "Queue", true
	if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), "--crd-from-values is for content that is there") {
		t.Errorf("got %v", err)
	}
	for text, want := range map[string]string{"- a\n": "a mapping of names", "a: b: c\n": "values.yaml:1: invalid YAML; correct the file"} {
		scratch.Write(t, filepath.Dir(values), map[string]string{"values.yaml": text})
		k := Kind{Group: "apps", Version: "v1", Kind: "Cache", ValuesFile: values, DefinitionOnly: true}
		if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", text, want, err)
		}
	}
}

// TestTheCRDOfTheExampleIsWhatCreateAPIWrites: copy it from a project of "ensign init --chart" where it is not.
func TestTheCRDOfTheExampleIsWhatCreateAPIWrites(t *testing.T) {
	example := filepath.Join(scratch.Repository(t), "examples", "hello")
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "demo.example.com", ProjectName: "hello", Program: "ensign"})
	written(t, plan, err)
	kind := chartKind(filepath.Join(example, "charts", "hello"))
	kind.Group, kind.NoGroup, kind.Kind = "", true, "Hello"
	plan, err = CreateAPI(dir, kind)
	written(t, plan, err)
	if diff := cmp.Diff(read(t, example, "crds", "hellos.yaml"), read(t, dir, "config", "crd", "bases", "demo.example.com_hellos.yaml")); diff != "" {
		t.Error(diff)
	}
}
