package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/jobevent"
)

func TestParseRates(t *testing.T) {
	cases := map[string]struct {
		output  string
		want    []rate
		wantErr bool
	}{
		"several benchmarks, each several times": {
			output: `goos: linux
cpu: 13th Gen
BenchmarkDecode/events         	     127	   4674131 ns/op	 224.60 MB/s	 1234 B/op	 12 allocs/op
BenchmarkDecode/events         	     130	   4600000 ns/op	 230.00 MB/s	 1234 B/op	 12 allocs/op
BenchmarkDecode/large_results  	      10	 104674131 ns/op	 100.25 MB/s	 1234 B/op	 12 allocs/op
PASS
ok  	github.com/ensign-operator/ensign/internal/jobevent	4.5s
`,
			want: []rate{{"events", report.Samples{224.6, 230}}, {"large results", report.Samples{100.25}}},
		},
		"one that does not count bytes is left out": {
			output: "BenchmarkA/x 1 5 ns/op\nBenchmarkA/y 1 5 ns/op 7 MB/s\n",
			want:   []rate{{"y", report.Samples{7}}},
		},
		"a benchmark without parts has no name of its own": {
			output: "BenchmarkA 1 5 ns/op 7 MB/s\n",
			want:   []rate{{"", report.Samples{7}}},
		},
		"no benchmark of that name": {output: "PASS\nok x 0.1s\n", wantErr: true},
		"nothing at all":            {output: "", wantErr: true},
		"a rate that is no number":  {output: "BenchmarkA/x 1 5 ns/op fast MB/s\n", wantErr: true},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got, err := parseRates(c.output)
			if (err != nil) != c.wantErr {
				t.Fatalf("got error %v, want one: %t", err, c.wantErr)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(rate{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLongLinesAreWhatTheySay(t *testing.T) {
	for _, l := range longLines() {
		t.Run(l.name, func(t *testing.T) {
			if l.size != longLine {
				t.Errorf("it has %d bytes", l.size)
			}
			l.size = 1 << 20
			row, err := l.measure(1)
			if err != nil {
				t.Fatal(err)
			}
			if row.Value <= 0 || row.Goal == nil || row.Unit != "MiB" {
				t.Errorf("got %+v", row)
			}
		})
	}
}

func TestALineThatGivesNothingIsNoMeasurement(t *testing.T) {
	l := line{name: "text", unit: "text", size: 100, wanted: func(e jobevent.Event, _ string) bool { return e.Kind != "" }}
	if _, err := l.measure(1); err == nil {
		t.Error("text was taken for an event")
	}
}
