package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/faults/mutation"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func names(t *testing.T, args ...string) []string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), append(args, "-list"), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(out.String())
}

func TestFlagsGiveTheOrderAndTheNames(t *testing.T) {
	first, again, other := names(t, "-fast", "-seed", "7"), names(t, "-fast", "-seed", "7"), names(t, "-fast", "-seed", "8")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same seed (-first +again):\n%s", diff)
	}
	if cmp.Equal(first, other) {
		t.Error("another seed gives the same order")
	}
	if len(first) != len(plan.Fast()) {
		t.Errorf("got %d names, want %d", len(first), len(plan.Fast()))
	}
	if diff := cmp.Diff([]string{"update/status-result/lost"}, names(t, "-plans", "^update/status-result/lost$")); diff != "" {
		t.Errorf("a plan that is chosen by its name (-want +got):\n%s", diff)
	}
}

// A mutant that does not apply any more tests nothing. This is found here, long
// before somebody runs them all.
func TestEveryMutantApplies(t *testing.T) {
	root := scratch.Repository(t)
	all, err := loadMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Errorf("got %d mutants, want 15 and more", len(all))
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			expectApplies(t, root, m.Patch)
			if _, err := plan.Select(append(plan.Baselines(), plan.All()...), m.plans); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEveryMutantOfChartsApplies(t *testing.T) {
	root := scratch.Repository(t)
	all, err := loadChartMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Errorf("got %d mutants, want 10 and more", len(all))
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			expectApplies(t, root, m.Patch)
			if _, err := regexp.Compile(m.spec); err != nil {
				t.Error(err)
			}
		})
	}
}

// expectApplies applies a patch to copies, and expects that they differ.
func expectApplies(t *testing.T, root string, patch mutation.Patch) {
	t.Helper()
	replaced, err := patch.Apply(t.Context(), root, filepath.Join(t.TempDir(), "mutated"))
	if err != nil || len(replaced) == 0 {
		t.Fatal(err, replaced)
	}
	for name, mutated := range replaced {
		before, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(mutated)
		if err != nil {
			t.Fatal(err)
		}
		if string(before) == string(after) {
			t.Errorf("%s is as it was", name)
		}
	}
}

func TestReportOfMutants(t *testing.T) {
	named := func(name string) mutant {
		return mutant{Patch: mutation.Patch{Name: name}, invariants: []string{"I2"}, breaks: "what"}
	}
	caught := &sentence{mutant: named("01-caught"), by: "a/b/c", saw: oracle.Violation{Invariant: "I2", Text: strings.Repeat("ä", 200) + "\nmore"}}
	survived := &sentence{mutant: named("02-alive")}
	stale := &sentence{mutant: named("03-stale"), err: errors.New("does not apply")}
	var out strings.Builder
	if err := report(&out, []*sentence{caught}); err != nil {
		t.Errorf("all caught: %v", err)
	}
	err := report(&out, []*sentence{caught, survived, stale})
	if err == nil || !strings.Contains(err.Error(), "02-alive survived") || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("got error %v, want one that names both", err)
	}
	for _, want := range []string{"1 of 1 mutants caught", "1 of 3 mutants caught", "a/b/c", "SURVIVED", "ERROR", "I2: ää"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", &out, want)
		}
	}
}

func TestReportOfMutantsOfCharts(t *testing.T) {
	named := func(name, said string) *chartMutant {
		return &chartMutant{Patch: mutation.Patch{Name: name}, spec: "a spec", breaks: "what", said: said}
	}
	var out strings.Builder
	if err := reportChartMutants(&out, []*chartMutant{named("01-caught", "it noticed")}); err != nil {
		t.Errorf("all caught: %v", err)
	}
	stale := named("03-stale", "")
	stale.err = errors.New("does not apply")
	err := reportChartMutants(&out, []*chartMutant{named("01-caught", "it noticed"), named("02-alive", ""), stale})
	if err == nil || !strings.Contains(err.Error(), "02-alive survived: what") || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("got error %v, want one that names both", err)
	}
	for _, want := range []string{"1 of 1 mutants of charts caught", "1 of 3 mutants of charts caught", "it noticed", "SURVIVED"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", &out, want)
		}
	}
}
