package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Report {
	return Report{Machine: "a machine", Rows: []Row{
		{Part: "Memory", Name: "idle", Value: 61.234, Low: 60, High: 62.5, Unit: "MiB", Goal: AtMost(120), Note: "one way"},
		{Part: "Memory", Name: "peak", Value: 123.4, Low: 123.4, High: 123.4, Unit: "MiB", Note: "another way"},
		{Part: "Speed", Name: "decode", Value: 99.9, Low: 99.9, High: 99.9, Unit: "MB/s", Goal: AtLeast(100), Note: "one way"},
		{Part: "Speed", Name: "ratio", Value: 1.0512, Low: 0.9, High: 1.2, Goal: AtMost(1.05)},
	}}
}

func TestANoteNamesARowOnce(t *testing.T) {
	row := Row{Part: "One", Name: "wall time", Note: "of both"}
	other := row
	other.Part = "Another"
	var got strings.Builder
	if err := (Report{Rows: []Row{row, other}}).Table(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.String(), "\n* wall time: of both\n") {
		t.Error(got.String())
	}
}

func TestTable(t *testing.T) {
	want := `a machine

           measured    low … high      goal
Memory
  idle     61.2 MiB    60.0 … 62.5     ≤ 120 MiB    met
  peak     123 MiB
Speed
  decode   99.9 MB/s                   ≥ 100 MB/s   MISSED
  ratio    1.051       0.900 … 1.200   ≤ 1.05       MISSED

* idle; decode: one way
* peak: another way

1 of 3 goals met; MISSED: decode; ratio.
`
	var got strings.Builder
	if err := example().Table(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestTableOfGoalsThatAreMet(t *testing.T) {
	r := example()
	r.Rows = r.Rows[:1]
	var got strings.Builder
	if err := r.Table(&got); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(got.String(), "\n1 of 1 goals met.\n") || strings.Contains(got.String(), "MISSED") {
		t.Error(got.String())
	}
}

func TestJSON(t *testing.T) {
	var text strings.Builder
	if err := example().JSON(&text); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"machine": "a machine", "rows": []any{
		map[string]any{
			"part": "Memory", "name": "idle", "value": 61.234, "low": 60.0, "high": 62.5, "unit": "MiB",
			"goal": map[string]any{"atMost": 120.0}, "met": true, "note": "one way",
		},
		map[string]any{"part": "Memory", "name": "peak", "value": 123.4, "low": 123.4, "high": 123.4, "unit": "MiB", "note": "another way"},
		map[string]any{
			"part": "Speed", "name": "decode", "value": 99.9, "low": 99.9, "high": 99.9, "unit": "MB/s",
			"goal": map[string]any{"atLeast": 100.0}, "met": false, "note": "one way",
		},
		map[string]any{
			"part": "Speed", "name": "ratio", "value": 1.0512, "low": 0.9, "high": 1.2, "unit": "",
			"goal": map[string]any{"atMost": 1.05}, "met": false,
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGoals(t *testing.T) {
	cases := map[string]struct {
		goal  *Goal
		value float64
		want  bool
	}{
		"below the most":      {AtMost(2), 1.99, true},
		"just the most":       {AtMost(2), 2, true},
		"above the most":      {AtMost(2), 2.01, false},
		"above the least":     {AtLeast(2), 2.01, true},
		"just the least":      {AtLeast(2), 2, true},
		"less than the least": {AtLeast(2), 1.99, false},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := c.goal.Met(c.value); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	for name, write := range map[string]func() error{
		"table": func() error { return example().Table(fullDisk{}) },
		"JSON":  func() error { return example().JSON(fullDisk{}) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := write(); !errors.Is(err, errFull) {
				t.Errorf("got %v", err)
			}
		})
	}
}
