package report

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Report {
	cpu := Cell{Title: "CPU", Line: "a role", Column: "plain"}
	parts := Cell{Title: "Parts", Line: "a role", Column: "start"}
	wall, warm := Cell{Title: "Wall time", Line: "a role", Column: "plain"}, Cell{Title: "Wall time", Line: "a role", Column: "warm"}
	r := Report{Machine: "a machine", Rows: []Row{
		{Part: "Memory", Name: "idle", Value: 61.234, Low: 60, High: 62.5, Unit: "MiB", Goal: AtMost(120), Note: "one way", Cell: wall},
		{Part: "Memory", Name: "peak", Value: 123.4, Low: 123.4, High: 123.4, Unit: "MiB", Note: "another way", Cell: parts},
		{Part: "Speed", Name: "decode", Value: 99.9, Low: 99.9, High: 99.9, Unit: "MB/s", Goal: AtLeast(100), Note: "one way", Cell: cpu},
		{Part: "Speed", Name: "ratio", Value: 1.0512, Low: 0.9, High: 1.2, Goal: AtMost(1.05), Cell: warm},
		{Part: "Speed", Name: "decode", Value: 16, Low: 16, High: 16, Unit: "s", Note: "one way", Estimated: true, Cell: Cell{"CPU", "a role", "warm"}},
	}}
	for i, row := range r.Rows {
		r.Rows[i] = row.Judged()
	}
	return r
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
  decode   ≈ 16.0 s

* idle; decode: one way
* peak: another way

1 of 3 goals met; MISSED: decode; ratio.
`
	var got strings.Builder
	if err := example().Table(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, regexp.MustCompile(`(?m) +$`).ReplaceAllString(got.String(), "")); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdownIsPutIntoItsPlace(t *testing.T) {
	const tables = `a machine

| | plain | warm |
|---|---:|---:|
| Wall time: a role | 61.2 MiB | 1.051 |
| CPU: a role | 99.9 MB/s | ≈ 16.0 s |

| | start |
|---|---:|
| Parts: a role | 123 MiB |

| Goal | measured | goal | |
|---|---:|---:|---|
| Memory: idle | 61.2 MiB | ≤ 120 MiB | met |
| Speed: decode | 99.9 MB/s | ≥ 100 MB/s | MISSED |
| Speed: ratio | 1.051 | ≤ 1.05 | MISSED |
`
	page, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		document, want string
		fail           bool
	}{
		"in the place of what was there": {document: "# A\n\n" + spliceBegin + "\nold\n" + spliceEnd + "\n\nend\n", want: "# A\n\n" + spliceBegin + "\n" + tables + spliceEnd + "\n\nend\n"},
		"no place":                       {document: "# A\n", want: "# A\n", fail: true},
		"the end first":                  {document: spliceEnd + "\n" + spliceBegin + "\n", want: spliceEnd + "\n" + spliceBegin + "\n", fail: true},
		"the page that there is":         {document: string(page)},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(file, []byte(test.document), 0o600); err != nil {
				t.Fatal(err)
			}
			err := example().Splice(file)
			got, readErr := os.ReadFile(file)
			if (err != nil) != test.fail || readErr != nil || !strings.Contains(string(got), tables) != test.fail {
				t.Errorf("errors %v, %v\n%s", err, readErr, got)
			}
			if diff := cmp.Diff(test.want, string(got)); test.want != "" && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	var text strings.Builder
	if err := example().JSON(&text); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Rows []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{
		{"part": "Memory", "name": "idle", "value": 61.234, "low": 60.0, "high": 62.5, "unit": "MiB", "goal": map[string]any{"atMost": 120.0}, "met": true, "note": "one way"},
		{"part": "Memory", "name": "peak", "value": 123.4, "low": 123.4, "high": 123.4, "unit": "MiB", "note": "another way"},
		{"part": "Speed", "name": "decode", "value": 99.9, "low": 99.9, "high": 99.9, "unit": "MB/s", "goal": map[string]any{"atLeast": 100.0}, "met": false, "note": "one way"},
	}
	if diff := cmp.Diff(want, got.Rows[:3]); diff != "" {
		t.Error(diff)
	}
}

func TestSamples(t *testing.T) {
	for why, test := range map[string]struct{ got, want Row }{
		"the median, and the spread of all":                  {Row{Unit: "s"}.Of(9, 1, 2), Row{Value: 2, Low: 1, High: 9, Unit: "s"}},
		"of an even number it is between the two":            {Row{}.Of(4, 1, 2, 100), Row{Value: 3, Low: 1, High: 100}},
		"one sample has no spread":                           {Row{}.Of(5), Row{Value: 5, Low: 5, High: 5}},
		"the ratio of medians, the spread of who ran beside": {Row{}.Ratio([]float64{1, 2, 9}, []float64{1, 4, 3}), Row{Value: 2.0 / 3, Low: 0.5, High: 3}},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s\n%s", why, diff)
		}
	}
	samples := []float64{3, 1, 2}
	if Median(samples); !slices.Equal(samples, []float64{3, 1, 2}) {
		t.Errorf("the samples are in another order: %v", samples)
	}
}

func TestGoals(t *testing.T) {
	for why, test := range map[string]struct {
		goal  *Goal
		value float64
		want  bool
	}{
		"just the most":       {AtMost(2), 2, true},
		"above the most":      {AtMost(2), 2.01, false},
		"just the least":      {AtLeast(2), 2, true},
		"less than the least": {AtLeast(2), 1.99, false},
	} {
		if got := (Row{Goal: test.goal, Value: test.value}).Judged(); *got.Met != test.want {
			t.Errorf("%s: got %t", why, *got.Met)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	if table, text := example().Table(fullDisk{}), example().JSON(fullDisk{}); !errors.Is(table, errFull) || !errors.Is(text, errFull) {
		t.Errorf("got %v and %v", table, text)
	}
}
