package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

func TestParse(t *testing.T) {
	usual := settings{parts: []string{"memory", "warm", "proxy", "children", "mysql", "releases"}, resources: 1000, runs: 5, rounds: 5, repeats: 5, children: 10000, releases: 200}
	some := usual
	some.parts, some.json, some.strict, some.resources, some.runs, some.rounds, some.repeats = []string{"warm", "memory"}, true, true, 10, 2, 3, 4
	for args, want := range map[string]settings{
		"": usual,
		"--parts=warm,memory --json --strict --crs=10 --runs=2 --rounds=3 --repeats=4": some,
	} {
		got, err := parse(strings.Fields(args), io.Discard)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); err != nil || diff != "" {
			t.Errorf("%s: error %v, %s", args, err, diff)
		}
	}
	for why, args := range map[string][]string{
		"a table of nothing":                  {"--parts=proxy", "--table=f.md"},
		"two parts that look like one":        {"--parts=memory proxy"},
		"no part":                             {"--parts="},
		"an argument that is no flag":         {"memory"},
		"a median of nothing":                 {"--rounds=0"},
		"more runs than there are resources":  {"--crs=4"},
		"no run, whose memory cannot be seen": {"--runs=0"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%s is no error", why)
		}
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "memory,warm,proxy,children,mysql,releases") {
		t.Errorf("got error %v, and help that does not name the parts: %s", err, help.String())
	}
}

func TestItRunsInTheRootOfTheTreeAndTellsOfABusyMachine(t *testing.T) {
	if _, err := open(settings{}, io.Discard); err == nil {
		t.Error("it took hack/bench for the root")
	}
	t.Chdir("../..")
	b, err := open(settings{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(b.dir); err != nil || !strings.Contains(b.machine(), "cores, go1.") || !strings.Contains(b.machine(), ", load ") {
		t.Errorf("error %v, machine %q", err, b.machine())
	}
	for load, want := range map[float64]string{1: ", load 1.0 at the start", 2.75: ", load 2.8 at the start: BUSY, so that times are rough"} {
		if got := describeLoad(load, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestShow(t *testing.T) {
	missed := []report.Row{report.Row{Name: "one", Value: 2, Goal: report.AtMost(1)}.Judged(), report.Row{Value: 1, Goal: report.AtMost(1)}.Judged()}
	for why, c := range map[string]struct {
		settings settings
		rows     []report.Row
		want     string // is in what is printed; "": nothing is
		fail     bool
	}{
		"a table":                {rows: missed, want: "MISSED: one."},
		"no table without a row": {settings: settings{strict: true}},
		"a program that reads JSON always gets some": {settings: settings{json: true}, want: `"rows": []`},
		"missed goals where they are errors":         {settings: settings{strict: true, json: true}, rows: missed, want: `"met": false`, fail: true},
		"met goals":                                  {settings: settings{strict: true}, rows: missed[1:], want: "1 of 1 goals met.\n"},
	} {
		var out strings.Builder
		err := c.settings.show(report.Report{Rows: c.rows}, &out)
		if (err != nil) != c.fail || !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
			t.Errorf("%s: error %v, printed %q", why, err, out.String())
		}
	}
}

func TestSteadyAndHigh(t *testing.T) {
	for why, c := range map[string]struct {
		samples []float64
		want    bool
	}{
		"too few to tell":          {[]float64{50, 50}, false},
		"they hardly move":         {[]float64{100, 100.5, 99.5, 100, 100, 100, 100, 100, 100, 100}, true},
		"one moved":                {[]float64{60, 50, 50, 50, 50, 50, 50, 50, 50, 50}, false},
		"it still falls, by a bit": {[]float64{100, 99, 98, 97, 96, 95, 94, 93, 92, 91}, false},
	} {
		if got := steady(c.samples); got != c.want {
			t.Errorf("%s: got %t", why, got)
		}
	}
	if got := percentile99(append(make([]float64, 98), 2, 1)); got != 2 {
		t.Errorf("the highest two of a hundred are 1 and 2, and the percentile is %v", got)
	}
}
