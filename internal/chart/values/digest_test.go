package values_test

import (
	"archive/tar"
	"compress/gzip"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/ensign-operator/ensign/internal/watches"
)

// umbrella has four subcharts: one with a subchart of its own, one that has two aliases, and one
// of the old form, whose dependencies are in requirements.yaml.
var umbrella = map[string]string{
	"Chart.yaml": `# a comment
version: 1.0.0
name: umbrella
apiVersion: v2
keywords: [b, a]
annotations: {z: "1", a: "2"}
dependencies:
- {name: cache, version: 1.x, repository: "", alias: sessions}
- {name: cache, version: 1.x, repository: "", alias: pages, condition: pages.enabled, tags: [web]}
- {name: web, version: 1.0.0, repository: "", import-values: [data, {child: a, parent: b}]}
`,
	"Chart.lock":                                "generated: \"2026-01-02T03:04:05.678+09:00\"\ndigest: sha256:x\ndependencies: []\n",
	"values.yaml":                               "# of the umbrella\nz: 1\na: {list: [1, two, 3.5], none: null}\n",
	"values.schema.json":                        `{"type": "object"}`,
	".helmignore":                               "ignored/\n*.bak\n",
	"ignored/notes":                             "not part of the chart\n",
	"README.md":                                 "about\n",
	"files/b.conf":                              "b\n",
	"files/a.conf":                              "a\n",
	"crds/thing.yaml":                           "kind: CustomResourceDefinition\n",
	"templates/b.yaml":                          "b: {{ .Values.z }}\n",
	"templates/a.yaml":                          "a: {{ .Files.Get \"files/a.conf\" }}\n",
	"templates/old.yaml.bak":                    "x\n",
	"charts/_not-a-chart/x":                     "x\n",
	"charts/cache/Chart.yaml":                   "apiVersion: v2\nname: cache\nversion: 1.2.3\n",
	"charts/cache/values.yaml":                  "size: 1\n",
	"charts/cache/templates/c.yaml":             "c: d\n",
	"charts/web/Chart.yaml":                     "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	"charts/web/values.yaml":                    "exports: {data: {x: y}}\na: {b: c}\n",
	"charts/web/charts/deep/Chart.yaml":         "apiVersion: v2\nname: deep\nversion: 0.1.0\n",
	"charts/web/charts/deep/templates/x.yaml":   "x: y\n",
	"charts/web/charts/deeper/Chart.yaml":       "apiVersion: v2\nname: deeper\nversion: 0.1.0\n",
	"charts/former/Chart.yaml":                  "name: former\nversion: 0.0.1\n",
	"charts/former/requirements.yaml":           "dependencies:\n- {name: within, version: 1.0.0, repository: \"\"}\n",
	"charts/former/requirements.lock":           "digest: x\ngenerated: \"2026-01-02T03:04:05Z\"\n",
	"charts/former/charts/within/Chart.yaml":    "name: within\nversion: 1.0.0\n",
	"charts/former/charts/within/templates/w.y": "w: x\n",
	"charts/tools/Chart.yaml":                   "apiVersion: v2\nname: tools\nversion: 3.0.0\ntype: library\n",
	"charts/tools/templates/_t.tpl":             "{{ define \"t\" }}t{{ end }}\n",
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	return mustBuild(t, &watches.Chart{Path: path}, nil, map[string]any{"a": "b"}).Digest
}

// archive writes the files below dir to an archive, in the order that shuffle makes.
func archive(t *testing.T, dir string, leave func(name string) bool, shuffle func(names []string)) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); err == nil && !entry.IsDir() && !leave(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	shuffle(names)
	path := filepath.Join(t.TempDir(), "chart.tgz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zipped := gzip.NewWriter(file)
	all := tar.NewWriter(zipped)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := all.WriteHeader(&tar.Header{Name: "any/" + filepath.ToSlash(name), Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := all.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, closer := range []interface{ Close() error }{all, zipped, file} {
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// ignored reports whether the umbrella's .helmignore names the file. Helm reads it for
// directories only.
func ignored(name string) bool {
	return filepath.Dir(name) == "ignored" || filepath.Ext(name) == ".bak"
}

func TestTheDigestIsTheSameAtEveryLoad(t *testing.T) {
	dir := chart(t, umbrella).Path
	want := digestOf(t, dir)
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		if got := digestOf(t, dir); got != want {
			t.Fatalf("the directory has the digest %s and then %s", want, got)
		}
		shuffle := func(names []string) {
			random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		}
		if got := digestOf(t, archive(t, dir, ignored, shuffle)); got != want {
			t.Fatalf("the directory has the digest %s, an archive of its files %s", want, got)
		}
	}
}

// TestPackagingKeepsTheDigest: helm package writes Chart.yaml and the lock file anew, leaves
// files out, and unpacks the subcharts.
func TestPackagingKeepsTheDigest(t *testing.T) {
	dir := chart(t, umbrella).Path
	want := digestOf(t, dir)
	save := func(dir, into string) string {
		loaded, err := loader.LoadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		path, err := chartutil.Save(loaded, into)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	packaged := save(dir, t.TempDir())
	if got := digestOf(t, packaged); got != want {
		t.Errorf("the directory has the digest %s, its package %s", want, got)
	}
	for _, subchart := range []string{"web", "cache", "former"} {
		save(filepath.Join(dir, "charts", subchart), filepath.Join(dir, "charts"))
		if err := os.RemoveAll(filepath.Join(dir, "charts", subchart)); err != nil {
			t.Fatal(err)
		}
		if got := digestOf(t, dir); got != want {
			t.Errorf("packaging the subchart %s changes the digest from %s to %s", subchart, want, got)
		}
	}
	if got := digestOf(t, save(dir, t.TempDir())); got != want {
		t.Errorf("the package of packages has the digest %s, want %s", got, want)
	}
}

// TestTwoVersionsOfASubchart: Helm tells them apart by the versions that the aliases name.
func TestTwoVersionsOfASubchart(t *testing.T) {
	files := map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- {name: db, version: 1.0.0, repository: \"\", alias: old}\n- {name: db, version: 2.0.0, repository: \"\", alias: new}\n",
		"charts/db1/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db1/templates/a.yaml": "a: b\n",
		"charts/db2/Chart.yaml": "apiVersion: v2\nname: db\nversion: 2.0.0\n", "charts/db2/templates/a.yaml": "a: b\n",
	}
	c := chart(t, files)
	want := digestOf(t, c.Path)
	for range 100 {
		if got := digestOf(t, c.Path); got != want {
			t.Fatalf("the digest is %s and then %s", want, got)
		}
	}
	files["charts/db1/templates/a.yaml"] = "a: c\n"
	if digestOf(t, chart(t, files).Path) == want {
		t.Error("a change of one of them does not change the digest")
	}
}

func TestEachPartOfAChartChangesTheDigest(t *testing.T) {
	seen := map[string]string{digestOf(t, chart(t, umbrella).Path): "nothing"}
	for name, text := range map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: umbrella\nversion: 1.0.1\n",
		"values.yaml":        "z: 2\n",
		"values.schema.json": `{"type": "object", "title": "other"}`,
		"files/a.conf":       "c\n",
		"files/c.conf":       "a\n",
		"templates/a.yaml":   "a: c\n",
		"crds/thing.yaml":    "kind: Other\n",
		"charts/web/charts/deep/templates/x.yaml": "x: z\n",
		"charts/cache/values.yaml":                "size: 2\n",
		"charts/new/Chart.yaml":                   "apiVersion: v2\nname: new\nversion: 1.0.0\n",
	} {
		files := maps.Clone(umbrella)
		files[name] = text
		got := digestOf(t, chart(t, files).Path)
		if other, same := seen[got]; same {
			t.Errorf("a change of %s gives the digest of a change of %s", name, other)
		}
		seen[got] = name
	}
}
