package dashboard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/dashboard"
)

func read(t *testing.T) dashboard.Dashboard {
	t.Helper()
	d, err := dashboard.Read("../../config/grafana/ensign.json")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheDashboardCanBeImported(t *testing.T) {
	d := read(t)
	if d.UID == "" || len(d.UID) > 40 || d.Title == "" || d.SchemaVersion < 36 {
		t.Errorf("uid %q, title %q, schemaVersion %d", d.UID, d.Title, d.SchemaVersion)
	}
	if !slices.ContainsFunc(d.Templating.List, func(v dashboard.Variable) bool {
		return v.Name == "datasource" && v.Type == "datasource" && string(v.Query) == `"prometheus"`
	}) {
		t.Error("no variable for the data source")
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range d.Panels {
		if ids[panel.ID] || panel.ID == 0 {
			t.Errorf("panel %q: its id %d is not its own", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		for x := panel.GridPos.X; x < panel.GridPos.X+panel.GridPos.W; x++ {
			for y := panel.GridPos.Y; y < panel.GridPos.Y+panel.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q or the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		for _, target := range panel.Targets {
			if want := (dashboard.Source{Type: "prometheus", UID: "${datasource}"}); target.Datasource != want || panel.Datasource != want {
				t.Errorf("panel %q does not ask the data source that was chosen", panel.Title)
			}
		}
		if isRow := panel.Type == "row"; (len(panel.Targets) == 0) != isRow || (panel.Description == "") != isRow {
			t.Errorf("panel %q has %d queries, and counts %q", panel.Title, len(panel.Targets), panel.Description)
		}
	}
}

func TestTheDashboardShowsTheFourSignalsAndTheQueue(t *testing.T) {
	var rows []string
	for _, panel := range read(t).Panels {
		if panel.Type == "row" {
			rows = append(rows, panel.Title)
		}
	}
	if diff := cmp.Diff([]string{"At a glance", "Resources", "Traffic", "Latency", "Errors", "Saturation", "Queue"}, rows); diff != "" {
		t.Error(diff)
	}
}

func TestEveryQueryIsWellFormed(t *testing.T) {
	selectors, err := read(t).Selectors()
	if err != nil {
		t.Fatal(err)
	}
	if len(selectors) < 30 {
		t.Errorf("only %d selectors", len(selectors))
	}
	for _, s := range selectors {
		if !slices.Contains(s.Labels, "job") || !slices.Contains(s.Labels, "namespace") {
			t.Errorf("%s is asked for of all installs", s.Metric)
		}
	}
}

func TestParse(t *testing.T) {
	for query, want := range map[string][]dashboard.Selector{
		`up`: {{Metric: "up"}},
		`sum by (a, b) (rate(x_total{c="d", e=~"f.*"}[5m])) / sum(y) > 0 or vector(0)`: {
			{Metric: "x_total", Labels: []string{"a", "b", "c", "e"}}, {Metric: "y"},
		},
		`histogram_quantile(0.95, sum by (le) (rate(z_bucket[1h])))`:     {{Metric: "z_bucket", Labels: []string{"le"}}},
		`histogram_quantile(0.95, sum without (a) (rate(z_bucket[1h])))`: {{Metric: "z_bucket", Labels: []string{"le"}}},
		`x / on (a) y`:                {{Metric: "x", Labels: []string{"a"}}, {Metric: "y", Labels: []string{"a"}}},
		`min by (a) (x and on (b) y)`: {{Metric: "x", Labels: []string{"a", "b"}}, {Metric: "y", Labels: []string{"b"}}},
		`(1 - max by (a) (x)) * 100`:  {{Metric: "x", Labels: []string{"a"}}},
	} {
		got, err := dashboard.Parse(query)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestWhatIsWrongIsRefused(t *testing.T) {
	for query, want := range map[string]string{
		`rate(x)`: "range vector",
		`x[5m]`:   "cannot show a matrix",
		`histogram_quantile(0.9, sum(rate(x_bucket[5m])))`:               "without the label le",
		`histogram_quantile(0.9, sum without (le) (rate(x_bucket[5m])))`: "without the label le",
	} {
		if found, err := dashboard.Parse(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v, %v", query, want, found, err)
		}
	}
}
