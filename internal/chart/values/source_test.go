package values

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// family is a chart with all that Helm changes in a loaded chart.
var family = map[string]string{
	"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n" +
		"- {name: web, version: 1.0.0, repository: \"\", condition: web.enabled, import-values: [{child: port, parent: webPort}]}\n" +
		"- {name: db, version: 1.0.0, repository: \"\", alias: store, tags: [data]}\n",
	"values.yaml": "web: {enabled: true}\nlist: [{a: b}]\n", "values.schema.json": `{"type":"object"}`, "templates/a.yaml": "a: {{ tpl .Values.x . }}\n",
	"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "charts/web/values.yaml": "port: {http: 80}\n",
	"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "charts/db/values.yaml": "size: 1\n",
}

// sourceOf returns the source of a chart whose files seem to be old enough.
func sourceOf(t *testing.T, path string) *Source {
	t.Helper()
	s := &Source{watch: &watches.Chart{Path: path}, now: func() time.Time { return time.Now().Add(time.Hour) }}
	if _, err := s.load(); err != nil {
		t.Fatal(err)
	}
	return s
}

func written(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	scratch.Write(tb, dir, files)
	return dir
}

func TestAChartIsLoadedOncePerChangeOfItsFiles(t *testing.T) {
	dir := written(t, family)
	s := sourceOf(t, dir)
	first := s.loaded
	if again, err := s.load(); err != nil || again != first {
		t.Errorf("an unchanged chart is loaded again, %v", err)
	}
	values := filepath.Join(dir, "values.yaml")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for _, change := range []struct {
		what string
		make func() error
	}{
		{"a file is edited", func() error { return os.WriteFile(values, []byte("web: {enabled: true}\nlist: [{a: c}]\n"), 0o600) }},
		{"a file of a subchart is edited", func() error {
			return os.WriteFile(filepath.Join(dir, "charts/db/values.yaml"), []byte("size: 2\n"), 0o600)
		}},
		{"a file is replaced by one of its size and time", func() error { return replaceAlike(values, "web: {enabled: true}\nlist: [{a: d}]\n") }},
		{"a template is added", func() error { return os.WriteFile(filepath.Join(dir, "templates/b.yaml"), nil, 0o600) }},
		{"a template is removed", func() error { return os.Remove(filepath.Join(dir, "templates/b.yaml")) }},
		{"a template is renamed", func() error {
			return os.Rename(filepath.Join(dir, "templates/a.yaml"), filepath.Join(dir, "templates/c.yaml"))
		}},
		{"a file becomes a link", func() error {
			return cmp.Or(os.WriteFile(elsewhere, []byte("list: []\n"), 0o600), os.Remove(values), os.Symlink(elsewhere, values))
		}},
		{"the target of a link is edited", func() error { return os.WriteFile(elsewhere, []byte("list: [1]\n"), 0o600) }},
		{"a link leads to another directory", func() error {
			return cmp.Or(os.Rename(filepath.Join(dir, "charts/db"), filepath.Join(dir, "..", "db")), os.Symlink(filepath.Join(dir, "..", "db"), filepath.Join(dir, "charts/db")))
		}},
	} {
		before := s.loaded
		if err := change.make(); err != nil {
			t.Fatal(err)
		}
		if after, err := s.load(); err != nil || after == before {
			t.Errorf("%s, and the chart is not loaded again, %v", change.what, err)
		}
		if before = s.loaded; before == nil {
			t.Fatalf("%s, and the chart is not kept", change.what)
		}
	}
}

// replaceAlike writes a file as a tool does that keeps modification times.
func replaceAlike(path, text string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return cmp.Or(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
}

// Two writes within one tick of the file system's clock look the same, so that a chart is kept only
// once its files have been left alone for a time.
func TestFilesThatWereJustWrittenAreLoadedEachTime(t *testing.T) {
	dir := written(t, family)
	s, err := NewSource(&watches.Chart{Path: dir}, nil)
	if err != nil || s.loaded != nil {
		t.Fatalf("the chart is kept at once: %+v, %v", s.loaded, err)
	}
	for later, want := range map[time.Duration]bool{settleTime - time.Second: false, settleTime + time.Minute: true} {
		if got := fingerprintOf(dir, time.Now().Add(later)) != unknownFiles; got != want {
			t.Errorf("after %s there is a fingerprint: %v", later, got)
		}
	}
}

func TestNobodyChangesALoadedChart(t *testing.T) {
	s := sourceOf(t, written(t, family))
	before := forHelm(s.loaded.chart)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			spec := map[string]any{"web": map[string]any{"enabled": i%2 == 0}, "tags": map[string]any{"data": i%3 == 0}, "list": []any{int64(i)}, "store": map[string]any{"size": int64(i)}}
			if _, err := s.Build(spec, map[string]any{"webPort": map[string]any{"https": int64(443)}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if !reflect.DeepEqual(before, s.loaded.chart) {
		t.Errorf("the chart was changed: %+v", s.loaded.chart)
	}
}

func TestALinkIntoItsOwnDirectoryEndsTheLook(t *testing.T) {
	dir := written(t, family)
	if err := os.Symlink(dir, filepath.Join(dir, "templates", "again")); err != nil {
		t.Fatal(err)
	}
	if fingerprintOf(dir, time.Now().Add(time.Hour)) != unknownFiles {
		t.Error("there is a fingerprint")
	}
}

// BenchmarkBuild is what an attempt costs on a chart with 30 templates.
func BenchmarkBuild(b *testing.B) {
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "values.yaml": strings.Repeat("#\n", 100) + "a: b\n"}
	for i := range 30 {
		files[fmt.Sprintf("templates/t%d.yaml", i)] = strings.Repeat("{{- if .Values.a }}\nkey: {{ .Values.a | quote }}\n{{- end }}\n", 50)
	}
	dir := written(b, files)
	spec := map[string]any{"replicaCount": int64(3)}
	for name, age := range map[string]time.Duration{"loaded each time": 0, "loaded once": time.Hour} {
		b.Run(name, func(b *testing.B) {
			s := &Source{watch: &watches.Chart{Path: dir}, now: func() time.Time { return time.Now().Add(age) }}
			for b.Loop() {
				if _, err := s.Build(spec, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
