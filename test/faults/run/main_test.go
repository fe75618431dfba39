package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	for _, k := range []kind{ofPlans(), ofCharts(), ofShards(), ofJobs()} {
		all, err := k.load(root, "")
		if err != nil || len(all) < 4 {
			t.Errorf("got %d %s (error %v), want 4 and more", len(all), k.called, err)
		}
		for _, m := range all {
			t.Run(k.mark+"/"+m.name, func(t *testing.T) {
				expectApplies(t, root, m)
				if _, err := regexp.Compile(m.marks[len(m.marks)-1]); err != nil {
					t.Error(err)
				}
				if len(m.marks) > 1 {
					if _, err := plansOf(m); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

// expectApplies applies a mutant to copies, and expects that they differ.
func expectApplies(t *testing.T, root string, m *mutant) {
	t.Helper()
	replaced, err := m.apply(t.Context(), root, filepath.Join(t.TempDir(), "mutated"))
	if err != nil || len(replaced) == 0 {
		t.Fatal(err, replaced)
	}
	for name, mutated := range replaced {
		before, errBefore := os.ReadFile(name)
		after, errAfter := os.ReadFile(mutated)
		if err := errors.Join(errBefore, errAfter); err != nil || string(before) == string(after) {
			t.Errorf("%s is as it was (error %v)", name, err)
		}
	}
}

func TestReportOfMutants(t *testing.T) {
	caught := &mutant{name: "01-caught", marks: []string{"I2"}, by: "a/b/c", because: strings.Repeat("ä", 200) + "\nmore"}
	survived := &mutant{name: "02-alive", marks: []string{"I3"}, breaks: "what"}
	stale := &mutant{name: "03-stale", marks: []string{"I4"}, err: errors.New("does not apply")}
	var out strings.Builder
	if err := ofPlans().report(&out, []*mutant{caught}); err != nil {
		t.Errorf("all caught: %v", err)
	}
	err := ofPlans().report(&out, []*mutant{caught, survived, stale})
	if err == nil || !strings.Contains(err.Error(), "02-alive survived: what") || !strings.Contains(err.Error(), "does not apply") {
		t.Errorf("got error %v, want one that names both", err)
	}
	for _, want := range []string{"1 of 1 mutants caught", "1 of 3 mutants caught", "a/b/c", "SURVIVED", "ERROR", "ää…"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s\nwant %q in it", &out, want)
		}
	}
}

func TestMutantsGetTheTimeThatAGoodProgramTakes(t *testing.T) {
	for name, c := range map[string]struct {
		report string
		want   time.Duration
	}{
		"a fast machine: what is as it should be comes in less": {`[{"SpecReports": [{"RunTime": 2000000000}]}]`, 40 * time.Second},
		"a slow one: the longest spec says how slow":            {`[{"SpecReports": [{"RunTime": 90000000000}, {"RunTime": 1}]}, {"SpecReports": null}]`, 90 * time.Second},
		"no report: nothing says how slow it is":                {``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "report.json")
			if err := os.WriteFile(path, []byte(c.report), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := waitTimeoutAfter(path)
			if got != c.want || (err != nil) != (c.want == 0) {
				t.Errorf("got %s (error %v), want %s", got, err, c.want)
			}
		})
	}
}
