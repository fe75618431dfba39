package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/sides"
)

// document has a place for figures.
func document(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFiguresAreShownWholeOrNotAtAll(t *testing.T) {
	chart := report.Chart{Title: "one", Unit: "s", Series: []string{"plain"}, Groups: []report.Group{{Name: "a role", Bars: []report.Bar{{Value: 1}}}}}
	rows := []report.Row{{Part: "A part", Name: "a figure", Value: 17, Unit: "s", Goal: report.AtMost(18)}}
	for why, test := range map[string]struct {
		charts int
		want   bool
	}{
		"everything was measured":       {plotted, true},
		"it ended before its end":       {plotted - 1, false},
		"the part was not asked to run": {0, false},
	} {
		t.Run(why, func(t *testing.T) {
			plot, table := filepath.Join(t.TempDir(), "bench.svg"), document(t)
			s, figures := settings{plot: plot, table: table}, sides.Figures{Rows: rows, Charts: slices.Repeat([]report.Chart{chart}, test.charts)}
			if err := s.draw("a machine", figures); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(plot); (err == nil) != test.want {
				t.Errorf("the plot: %v", err)
			}
			text, err := os.ReadFile(table)
			if err != nil || strings.Contains(string(text), "| A part: a figure | 17.0 s | ≤ 18 s | met |") != test.want {
				t.Errorf("the table (error %v): %s", err, text)
			}
		})
	}
}

func TestWhatCannotBeShownIsAnError(t *testing.T) {
	figures := sides.Figures{Charts: make([]report.Chart, plotted)}
	nowhere, empty := filepath.Join(t.TempDir(), "no", "file"), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for why, test := range map[string]struct {
		settings settings
		want     bool
	}{
		"nothing is asked for":              {settings{}, false},
		"no directory for the plot":         {settings{plot: nowhere}, true},
		"no document for the table":         {settings{table: nowhere}, true},
		"a document without a place for it": {settings{table: empty}, true},
	} {
		t.Run(why, func(t *testing.T) {
			if err := test.settings.draw("a machine", figures); (err != nil) != test.want {
				t.Errorf("error %v", err)
			}
		})
	}
}
