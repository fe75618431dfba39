package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each folder of molecule/ is a scenario that `make molecule` runs.
func TestEveryScenarioIsRun(t *testing.T) {
	found, err := filepath.Glob("../../molecule/*/molecule.yml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, path := range found {
		want[filepath.Base(filepath.Dir(path))] = true
	}
	got := map[string]bool{}
	for _, s := range scenarios() {
		got[s.name] = true
	}
	if difference := cmp.Diff(want, got); difference != "" {
		t.Error(difference)
	}
}

func TestChoose(t *testing.T) {
	for name, test := range map[string]struct {
		names   []string
		want    int
		wantErr string
	}{
		"all of them":        {nil, len(scenarios()), ""},
		"one of them":        {[]string{"cluster"}, 1, ""},
		"one that is absent": {[]string{"cluster", "clutser"}, 1, "clutser"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(test.names)
			if len(got) != test.want || (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got %v and %v", got, err)
			}
		})
	}
}

// What the scenarios need is missing: nothing runs, and the remedy is named.
func TestWithoutPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "make controlplane") {
		t.Errorf("got %v, want the remedy", err)
	}
}
