package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A mutant that does not apply any more tests nothing. This is found here, long
// before somebody runs them all.
func TestEveryMutantApplies(t *testing.T) {
	all, err := Load(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Errorf("got %d mutants, want 15 and more", len(all))
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := m.apply(t.Context(), root(t), filepath.Join(dir, "mutated")); err != nil {
				t.Fatal(err)
			}
			for _, name := range m.files {
				before, err := os.ReadFile(filepath.Join(root(t), name))
				if err != nil {
					t.Fatal(err)
				}
				after, err := os.ReadFile(filepath.Join(dir, "mutated", name))
				if err != nil {
					t.Fatal(err)
				}
				if string(before) == string(after) {
					t.Errorf("%s is as it was", name)
				}
			}
			if _, err := plan.Select(append(plan.Baselines(), plan.All()...), m.Plans); err != nil {
				t.Error(err)
			}
		})
	}
}

// write makes a patch of a file of this package.
func write(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name+".patch"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

const header = "Invariant: I2 end\nPlans: ^update/\nIt breaks this\nand that.\n\n"

func TestHeader(t *testing.T) {
	all, err := Load(write(t, "07-x", header+"--- a/go.mod\n+++ b/go.mod\n@@ -1 +1 @@\n-a\n+b\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := all[0]
	m.path = ""
	want := Mutant{Name: "07-x", Invariants: []string{"I2", "end"}, Plans: "^update/", Breaks: "It breaks this and that.", files: []string{"go.mod"}}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(Mutant{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFaultyHeaders(t *testing.T) {
	const patch = "--- a/go.mod\n+++ b/go.mod\n"
	for name, test := range map[string]struct{ text, want string }{
		"no invariant":        {"Plans: x\nWhy.\n" + patch, "Invariant: I2"},
		"an unknown one":      {"Invariant: I11\nPlans: x\nWhy.\n" + patch, "Invariant: I2"},
		"no plans":            {"Invariant: I2\nWhy.\n" + patch, "Plans: "},
		"nothing that breaks": {"Invariant: I2\nPlans: x\n" + patch, "does not say"},
		"no file":             {header, "touches no file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(write(t, "m", test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("got no error of a directory without mutants")
	}
}

func TestAPatchThatDoesNotApplySaysSo(t *testing.T) {
	for name, test := range map[string]struct{ patch, want string }{
		"other code than it knows": {"--- a/go.mod\n+++ b/go.mod\n@@ -1 +1 @@\n-no such line\n+b\n", "go.mod"},
		"a file that is gone":      {"--- a/gone.go\n+++ b/gone.go\n@@ -1 +1 @@\n-a\n+b\n", "gone.go"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Load(write(t, "m", header+test.patch))
			if err != nil {
				t.Fatal(err)
			}
			_, err = all[0].Build(t.Context(), root(t), t.TempDir())
			if err == nil || !strings.Contains(err.Error(), "does not apply to the code as it is") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
