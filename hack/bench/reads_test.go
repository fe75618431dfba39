package main

import (
	"testing"

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
