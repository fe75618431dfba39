package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// plant is one slip of an author: in a file of the project shop, one text stands in place of
// another.
type plant struct {
	about     string
	file      string
	from, to  string // Without from the file is taken away.
	want      string // "FILE:LINE ID", and a word of the message behind "|"; "" where check finds nothing
	alone     bool   // in a project of its own: the slip is in a file that all kinds share
	whyNot    string // why check finds nothing
	alsoFinds []string
}

// TestWhichPlantedFaultsAreFound plants each in a copy of a kind, all in one project.
func TestWhichPlantedFaultsAreFound(t *testing.T) {
	dir, project := t.TempDir(), shop(t, "clean")
	for n, p := range plants {
		if !p.alone {
			merge(project, p.in(t, plantName(n)))
		}
	}
	together := map[string][]string{}
	for _, f := range findings(t, dir, project) {
		place, _, _ := strings.Cut(f, " ")
		name := ofPlant.FindString(place)
		together[name] = append(together[name], f)
	}
	if got := together[""]; len(got) > 0 {
		t.Errorf("the kind without a fault has findings: %q", got)
	}
	found := 0
	for n, p := range plants {
		t.Run(p.about, func(t *testing.T) {
			got := together[plantName(n)]
			if p.alone {
				got = findings(t, t.TempDir(), p.in(t, plantName(n)))
			}
			p.compare(t, plantName(n), got)
			if p.want != "" && !t.Failed() {
				found++
			}
		})
	}
	t.Logf("%d of %d are found", found, len(plants))
}

var ofPlant = regexp.MustCompile(`plant\d\d`)

func plantName(n int) string { return fmt.Sprintf("plant%02d", n) }

// compare reports what is not found, and what is found and is no fault.
func (p plant) compare(t *testing.T, name string, got []string) {
	t.Helper()
	for _, one := range append([]string{p.want}, p.alsoFinds...) {
		if one == "" {
			continue
		}
		place, word, _ := strings.Cut(named(name, one), "|")
		at := slices.IndexFunc(got, func(f string) bool { return strings.HasPrefix(f, place+" ") && strings.Contains(f, word) })
		if at < 0 {
			t.Errorf("want %q, got %q", one, got)
			continue
		}
		got = slices.Delete(slices.Clone(got), at, at+1)
	}
	if len(got) > 0 {
		t.Errorf("want nothing else, got %q", got)
	}
}

// in returns the files of a kind with the plant.
func (p plant) in(t *testing.T, name string) map[string]string {
	t.Helper()
	files := shop(t, name)
	file, from, to := named(name, p.file), named(name, p.from), named(name, p.to)
	if n := strings.Count(files[file], from); from != "" && n != 1 {
		t.Fatalf("%s: %q is %d times in %s", p.about, from, n, file)
	}
	if files[file] = strings.Replace(files[file], from, to, 1); from == "" {
		delete(files, file)
	}
	return files
}

func named(name, text string) string {
	return strings.NewReplacer("NAME", name, "KIND", strings.ToUpper(name[:1])+name[1:]).Replace(text)
}

// shop returns the files of testdata/shop for a kind of its own.
func shop(t *testing.T, name string) map[string]string {
	t.Helper()
	files := map[string]string{}
	const root = "testdata/shop"
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(root, path)
		files[named(name, relative)] = named(name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// merge adds the files of a kind to a project.
func merge(project, files map[string]string) {
	files["watches.yaml"] = project["watches.yaml"] + files["watches.yaml"]
	maps.Copy(project, files)
}

// findings are "FILE:LINE ID MESSAGE".
func findings(t *testing.T, dir string, files map[string]string) []string {
	t.Helper()
	scratch.Write(t, dir, files)
	env := config.NewEnvironment(os.Environ())
	delete(env, "ANSIBLE_ROLES_PATH")
	o := config.Options{WatchesFile: "watches.yaml", Env: env}
	o.Dir, o.Executable = dir, filepath.Join(scratch.Repository(t), "bin", "ensign")
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range r.Relative(dir).Findings {
		all = append(all, fmt.Sprintf("%s:%d %s %s", f.File, f.Line, f.ID, f.Message))
	}
	return all
}
