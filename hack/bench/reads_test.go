package main

import (
	"testing"
	"time"

	"github.com/ensign-operator/ensign/hack/bench/report"
)

func TestPercentile(t *testing.T) {
	hundred := make(report.Samples, 100)
	for i := range hundred {
		hundred[i] = float64(99 - i)
	}
	for name, test := range map[string]struct {
		samples report.Samples
		percent int
		want    float64
	}{
		"of a hundred":      {hundred, 99, 99},
		"the middle":        {hundred, 50, 50},
		"of one":            {report.Samples{7}, 99, 7},
		"of none, no panic": {nil, 99, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(test.samples, test.percent); got != test.want {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
}

func TestParseTicks(t *testing.T) {
	for stat, want := range map[string]time.Duration{
		"12 (a (strange) name) S 1 1 1 0 -1 4194304 100 0 0 0 250 50 0 0 20 0": 3 * time.Second,
		"12 (bench) S 1": -1,
		"12 (bench) S 1 1 1 0 -1 4194304 100 0 0 0 x 50 0 0 20 0": -1,
		"": -1,
	} {
		got, err := parseTicks(stat)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: want %s, got %s, %v", stat, want, got, err)
		}
	}
}
