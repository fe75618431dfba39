package report

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Report {
	r := Report{Machine: "a machine", Rows: []Row{
		{Part: "Memory", Name: "idle", Value: 120, Low: 60, High: 122.5, Unit: "MiB", Goal: AtMost(120), Note: "one way", Cell: Cell{"ways", "Wall time: a role", "plain"}},
		{Part: "Memory", Name: "peak", Value: 123.4, Low: 123.4, High: 123.4, Unit: "MiB", Note: "another way", Cell: Cell{"parts", "a role", "start"}},
		{Part: "Speed", Name: "decode", Value: 99.9, Low: 99.9, High: 99.9, Unit: "MB/s", Goal: AtLeast(100), Note: "one way", Cell: Cell{"ways", "CPU: a role", "plain"}},
		{Part: "Speed", Name: "encode", Value: 100, Low: 100, High: 100, Unit: "MB/s", Goal: AtLeast(100)},
		{Part: "Speed", Name: "lag", Value: -0.5, Low: -0.5, High: -0.5, Unit: "ms", Goal: AtMost(3)},
		{Part: "Speed", Name: "ratio", Value: 1.0512, Low: 0.9, High: 1.2, Goal: AtMost(1.05), Cell: Cell{"ways", "Wall time: a role", "warm"}},
		{Part: "Speed", Name: "decode", Value: 16, Low: 16, High: 16, Unit: "s", Note: "one way", Estimated: true, Cell: Cell{"ways", "CPU: a role", "warm"}},
	}}
	for i, row := range r.Rows {
		r.Rows[i] = row.Judged()
	}
	return r
}

func TestForms(t *testing.T) {
	trailing := regexp.MustCompile(`(?m) +$`)
	for name, test := range map[string]struct {
		print func(*strings.Builder) error
		want  string
	}{
		"a table": {func(text *strings.Builder) error { return example().Table(text) }, `a machine

           measured    low … high      goal
Memory
  idle     120 MiB     60.0 … 122      ≤ 120 MiB    met
  peak     123 MiB
Speed
  decode   99.9 MB/s                   ≥ 100 MB/s   MISSED
  encode   100 MB/s                    ≥ 100 MB/s   met
  lag      -0.500 ms                   ≤ 3 ms       met
  ratio    1.051       0.900 … 1.200   ≤ 1.05       MISSED
  decode   ≈ 16.0 s

* idle; decode: one way
* peak: another way

3 of 5 goals met; MISSED: decode; ratio.
`},
		"JSON": {func(text *strings.Builder) error { return Report{Rows: example().Rows[:1]}.JSON(text) }, `{
  "machine": "",
  "rows": [
    {
      "part": "Memory",
      "name": "idle",
      "value": 120,
      "low": 60,
      "high": 122.5,
      "unit": "MiB",
      "goal": {
        "atMost": 120
      },
      "met": true,
      "note": "one way"
    }
  ]
}
`},
		"JSON of nothing": {func(text *strings.Builder) error { return Report{}.JSON(text) }, "{\n  \"machine\": \"\",\n  \"rows\": []\n}\n"},
	} {
		var got strings.Builder
		if err := test.print(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, trailing.ReplaceAllString(got.String(), "")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMarkdownIsPutIntoItsPlace(t *testing.T) {
	const tables = `a machine

| | plain | warm |
|---|---:|---:|
| Wall time: a role | 120 MiB | 1.051 |
| CPU: a role | 99.9 MB/s | ≈ 16.0 s |

| | start |
|---|---:|
| a role | 123 MiB |

| Goal | measured | goal | |
|---|---:|---:|---|
| Memory: idle | 120 MiB | ≤ 120 MiB | met |
| Speed: decode | 99.9 MB/s | ≥ 100 MB/s | MISSED |
| Speed: encode | 100 MB/s | ≥ 100 MB/s | met |
| Speed: lag | -0.500 ms | ≤ 3 ms | met |
| Speed: ratio | 1.051 | ≤ 1.05 | MISSED |
`
	page, err := os.ReadFile("../../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), spliceBegin)
	_, after, _ := strings.Cut(rest, spliceEnd)
	for name, test := range map[string]struct {
		document, want string
		fail           bool
	}{
		"the page that there is": {string(page), before + spliceBegin + "\n" + tables + spliceEnd + after, false},
		"no place":               {"# A\n", "# A\n", true},
		"the end first":          {spliceEnd + "\n" + spliceBegin + "\n", spliceEnd + "\n" + spliceBegin + "\n", true},
	} {
		file := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(file, []byte(test.document), 0o600); err != nil {
			t.Fatal(err)
		}
		err := example().Splice(file)
		got, readErr := os.ReadFile(file)
		if diff := cmp.Diff(test.want, string(got)); (err != nil) != test.fail || readErr != nil || diff != "" {
			t.Errorf("%s: errors %v, %v\n%s", name, err, readErr, diff)
		}
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
