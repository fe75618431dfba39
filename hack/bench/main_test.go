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
	usual := settings{parts: []string{"memory", "warm", "proxy", "children"}, resources: 1000, runs: 5, rounds: 5, repeats: 5, children: 10000}
	cases := map[string]struct {
		args    []string
		change  func(*settings)
		wantErr bool
	}{
		"nothing said measures everything": {},
		"one part":                         {args: []string{"--parts", "warm"}, change: func(s *settings) { s.parts = []string{"warm"} }},
		"two parts, in any order": {
			args:   []string{"--parts=warm,memory", "--json"},
			change: func(s *settings) { s.parts, s.json = []string{"warm", "memory"}, true },
		},
		"numbers": {
			args:   []string{"--crs=10", "--runs=2", "--rounds=3", "--repeats=4"},
			change: func(s *settings) { s.resources, s.runs, s.rounds, s.repeats = 10, 2, 3, 4 },
		},
		"missed goals are errors": {args: []string{"--strict"}, change: func(s *settings) { s.strict = true }},
		"a plot of all that is known": {
			args:   []string{"--full", "--plot", "f.svg", "--table", "f.md"},
			change: func(s *settings) { s.full, s.plot, s.table = true, "f.svg", "f.md" },
		},
		"a plot of nothing":                   {args: []string{"--parts=proxy", "--plot=f.svg"}, wantErr: true},
		"a table of nothing":                  {args: []string{"--parts=proxy", "--table=f.md"}, wantErr: true},
		"a part that is none":                 {args: []string{"--parts=decoding"}, wantErr: true},
		"two parts that look like one":        {args: []string{"--parts=memory proxy"}, wantErr: true},
		"no part":                             {args: []string{"--parts="}, wantErr: true},
		"an argument that is no flag":         {args: []string{"memory"}, wantErr: true},
		"a median of nothing":                 {args: []string{"--rounds=0"}, wantErr: true},
		"no decoding":                         {args: []string{"--repeats=0"}, wantErr: true},
		"nothing to read":                     {args: []string{"--children=0"}, wantErr: true},
		"more runs than there are resources":  {args: []string{"--crs=4"}, wantErr: true},
		"no run, whose memory cannot be seen": {args: []string{"--runs=0"}, wantErr: true},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got, err := parse(c.args, io.Discard)
			if (err != nil) != c.wantErr {
				t.Fatalf("got error %v, want one: %t", err, c.wantErr)
			}
			if c.wantErr {
				return
			}
			want := usual
			if c.change != nil {
				c.change(&want)
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHelpNamesTheParts(t *testing.T) {
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got error %v", err)
	}
	for _, p := range parts() {
		if !strings.Contains(help.String(), p.name) {
			t.Errorf("the help does not name %q:\n%s", p.name, help.String())
		}
	}
}

func TestWants(t *testing.T) {
	s := settings{parts: []string{"memory", "warm"}}
	got := map[string]bool{}
	for _, p := range parts() {
		got[p.name] = s.wants(p.name)
	}
	if diff := cmp.Diff(map[string]bool{"memory": true, "warm": true, "proxy": false, "children": false}, got); diff != "" {
		t.Error(diff)
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
	row := report.Row{Part: "part", Name: "name", Value: 1, Unit: "s"}
	cases := map[string]struct {
		json bool
		rows []report.Row
		want string // is in what is printed; "": nothing is
	}{
		"a table":                {rows: []report.Row{row}, want: "measured"},
		"no table without a row": {},
		"JSON":                   {json: true, rows: []report.Row{row}, want: `"name": "name"`},
		"a program that reads JSON always gets some": {json: true, want: `"rows": []`},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			var out strings.Builder
			err := settings{json: c.json}.show(report.Report{Rows: c.rows}, &out)
			if err != nil || !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
				t.Errorf("error %v, printed %q", err, out.String())
			}
		})
	}
}

func TestMissedGoalsAreErrorsWhereThatIsAskedFor(t *testing.T) {
	met, missed := report.Row{Value: 1, Goal: report.AtMost(1)}, report.Row{Value: 2, Goal: report.AtMost(1)}
	for why, test := range map[string]struct {
		strict bool
		rows   []report.Row
		want   bool
	}{
		"goals that are met":   {true, []report.Row{met, {Value: 9}}, false},
		"one that is missed":   {true, []report.Row{met, missed}, true},
		"it is not asked for":  {false, []report.Row{missed}, false},
		"nothing was measured": {true, nil, false},
	} {
		t.Run(why, func(t *testing.T) {
			if err := (settings{strict: test.strict}).judge(report.Report{Rows: test.rows}); (err != nil) != test.want {
				t.Errorf("error %v", err)
			}
		})
	}
}
