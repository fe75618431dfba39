package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/charts"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// isDerived reports whether a file of a project is one of this repository's.
func isDerived(name string) bool {
	return slices.ContainsFunc(derivedDirs, func(dir string) bool { return strings.HasPrefix(name, dir+"/") })
}

var derivedDirs = []string{"config/prometheus", "config/grafana", "config/network-policy", "config/overlays", chartDir}

// TestTheChartIsThatOfThisRepository but for words about its kinds.
func TestTheChartIsThatOfThisRepository(t *testing.T) {
	dir, root := t.TempDir(), scratch.Repository(t)
	plan, err := Init(dir, Project{Domain: "myapp.myorg.tld", ProjectName: "ensign", Program: "ensign"})
	written(t, plan, err)
	plan, err = CreateAPI(dir, Kind{APIVersion: "myapp.myorg.tld/v1", Kind: "MySQLCluster", GenerateRole: true, Namespaced: true})
	written(t, plan, err)
	files := 0
	err = fs.WalkDir(os.DirFS(filepath.Join(root, "charts", "ensign")), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		if entry.Type() == fs.ModeSymlink {
			if _, err := os.Stat(filepath.Join(dir, chartDir, name)); err != nil {
				t.Errorf("%s leads nowhere: %v", name, err)
			}
			return nil
		}
		want := regexp.MustCompile(`(?m)The Ensign operator for .*$`).ReplaceAllString(read(t, root, "charts", "ensign", name), "The operator ensign.")
		want = strings.ReplaceAll(want, "; a test compares them", "")
		if diff := cmp.Diff(want, read(t, dir, chartDir, name)); diff != "" {
			t.Errorf("%s (-repository +project):\n%s", name, diff)
		}
		return nil
	})
	if err != nil || files < 12 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestDerivedFilesHaveTheProjectsNames and nothing of this repository's but what is Ensign's in each operator.
func TestDerivedFilesHaveTheProjectsNames(t *testing.T) {
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "example.com", ProjectName: "shop", Program: "ensign"})
	written(t, plan, err)
	// Addresses, labels and fields of Ensign's, its metrics, the names of templates and of the dashboard.
	ours := regexp.MustCompile(`ensign-operator/ensign|ensign\.io/|ensign_operator_\w+|"ensign\.\w+"|"ensign-operator"|"Ensign operator"|"ensign"|an operator of Ensign|Ensign\w*|#ensign\w+|ensign\.json`)
	for _, part := range derivedDirs {
		err := filepath.WalkDir(filepath.Join(dir, filepath.FromSlash(part)), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			for line := range strings.Lines(ours.ReplaceAllString(read(t, name), "")) {
				if strings.Contains(line, "ensign") || strings.Contains(strings.ToLower(line), "mysql") {
					t.Errorf("%s: %s", strings.TrimPrefix(name, dir), line)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestAProjectWithGoHasNoChart because its webhooks need certificates.
func TestAProjectWithGoHasNoChart(t *testing.T) {
	dir := t.TempDir()
	plan, err := Init(dir, Project{Domain: "example.com", ProjectName: "shop", Repo: "example.com/shop", Program: "ensign"})
	written(t, plan, err)
	if _, err := os.Stat(filepath.Join(dir, chartDir)); err == nil {
		t.Error("it has one")
	}
	if read(t, dir, "config/prometheus/rules.yaml") == "" {
		t.Error("it has no alerts")
	}
}

// TestLinksOfAnEmbeddedChartAreLeftOut: files/ has links, which cannot be embedded.
func TestLinksOfAnEmbeddedChartAreLeftOut(t *testing.T) {
	if found, err := fs.Glob(charts.Files, "ensign/files/*"); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}
