package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/ansible/extravars"
)

func TestParse(t *testing.T) {
	usual := settings{parts: []string{"memory", "warm", "proxy", "children"}, resources: 1000, runs: 5, rounds: 5, repeats: 5, children: 10000}
	cases := map[string]struct {
		args    []string
		change  func(*settings)
		wantErr bool
	}{
		"nothing said measures everything": {},
		"two parts, in any order": {
			args:   []string{"--parts=warm,memory", "--json"},
			change: func(s *settings) { s.parts, s.json = []string{"warm", "memory"}, true },
		},
		"numbers": {
			args:   []string{"--crs=10", "--runs=2", "--rounds=3", "--repeats=4"},
			change: func(s *settings) { s.resources, s.runs, s.rounds, s.repeats = 10, 2, 3, 4 },
		},
		"missed goals are errors":             {args: []string{"--strict"}, change: func(s *settings) { s.strict = true }},
		"a table of nothing":                  {args: []string{"--parts=proxy", "--table=f.md"}, wantErr: true},
		"two parts that look like one":        {args: []string{"--parts=memory proxy"}, wantErr: true},
		"no part":                             {args: []string{"--parts="}, wantErr: true},
		"an argument that is no flag":         {args: []string{"memory"}, wantErr: true},
		"a median of nothing":                 {args: []string{"--rounds=0"}, wantErr: true},
		"more runs than there are resources":  {args: []string{"--crs=4"}, wantErr: true},
		"no run, whose memory cannot be seen": {args: []string{"--runs=0"}, wantErr: true},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got, err := parse(c.args, io.Discard)
			if (err != nil) != c.wantErr {
				t.Fatalf("got error %v, want one: %t", err, c.wantErr)
			}
			want := usual
			if c.change != nil {
				c.change(&want)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" && !c.wantErr {
				t.Error(diff)
			}
		})
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "memory,warm,proxy,children") {
		t.Errorf("got error %v, and help that does not name the parts: %s", err, help.String())
	}
}

func TestItRunsInTheRootOfTheTreeOnly(t *testing.T) {
	if _, err := open(settings{}, io.Discard); err == nil {
		t.Error("it took hack/bench for the root")
	}
	t.Chdir("../..")
	b, err := open(settings{}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(b.dir); err != nil {
		t.Error(err)
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
		t.Run(why, func(t *testing.T) {
			var out strings.Builder
			err := c.settings.show(report.Report{Rows: c.rows}, &out)
			if (err != nil) != c.fail || !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
				t.Errorf("error %v, printed %q", err, out.String())
			}
		})
	}
}

func TestABusyMachineIsTold(t *testing.T) {
	for load, want := range map[float64]string{0.12: ", load 0.1 at the start", 1: ", load 1.0 at the start", 2.75: ", load 2.8 at the start: BUSY, so that times are rough"} {
		if got := describeLoad(load, 2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := (&bench{about: ", Python 3.13", load: ", load 0.1"}).machine(); !strings.HasSuffix(got, ", Python 3.13, load 0.1") || !strings.Contains(got, "cores") {
		t.Errorf("got %q", got)
	}
}

func TestResourcesAreOfTheirSizeAndOneKindIsRefused(t *testing.T) {
	for _, runnable := range []bool{true, false} {
		object := resource("bench-00007", runnable)
		encoded, err := json.Marshal(object)
		if size := len(encoded); err != nil || size < 2000 || size > 2100 {
			t.Errorf("it has %d bytes, error %v", size, err)
		}
		_, err = extravars.Build(object.Object, extravars.Options{GVK: benchKind().WithVersion("v1"), SnakeCase: true, MarkUnsafe: true})
		if (err == nil) != runnable {
			t.Errorf("runnable %t: got error %v", runnable, err)
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
