package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	cases := map[string]struct {
		samples Samples
		want    float64
	}{
		"nothing was measured":                     {nil, 0},
		"one sample is its own median":             {Samples{3}, 3},
		"of an odd number it is one of them":       {Samples{9, 1, 5}, 5},
		"of an even number it is between the two":  {Samples{4, 1, 2, 100}, 3},
		"an outlier does not move it":              {Samples{2, 2, 2, 2, 1000}, 2},
		"equal samples are their median":           {Samples{7, 7, 7, 7}, 7},
		"the order in which they came is no topic": {Samples{3, 2, 1}, 2},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := c.samples.Median(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestMedianLeavesTheSamplesInOrder(t *testing.T) {
	samples := Samples{3, 1, 2}
	samples.Median()
	if diff := cmp.Diff(Samples{3, 1, 2}, samples); diff != "" {
		t.Error(diff)
	}
}

func TestSamplesRow(t *testing.T) {
	cases := map[string]struct {
		samples Samples
		want    Row
	}{
		"the spread is of all samples": {Samples{3, 1, 2}, Row{Value: 2, Low: 1, High: 3, Unit: "s"}},
		"one sample has no spread":     {Samples{5}, Row{Value: 5, Low: 5, High: 5, Unit: "s"}},
		"no samples are no panic":      {nil, Row{Unit: "s"}},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.samples.Row("s")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRatio(t *testing.T) {
	cases := map[string]struct {
		ours, theirs Samples
		want         Row
	}{
		"equal series": {Samples{2, 2}, Samples{2, 2}, Row{Value: 1, Low: 1, High: 1}},
		"of the medians, while the spread is of those who ran side by side": {
			Samples{1, 2, 9}, Samples{1, 4, 3}, Row{Value: 2.0 / 3, Low: 0.5, High: 3},
		},
		"a machine that slows down slows both": {Samples{1, 2, 4}, Samples{1, 2, 4}, Row{Value: 1, Low: 1, High: 1}},
		"nothing was measured":                 {nil, nil, Row{}},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Ratio(c.ours, c.theirs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSteady(t *testing.T) {
	cases := map[string]struct {
		samples Samples
		want    bool
	}{
		"too few to tell":                         {Samples{50, 50}, false},
		"none at all":                             {nil, false},
		"the last ones do not move":               {Samples{10, 90, 50, 50, 50}, true},
		"the last ones hardly move":               {Samples{100, 100.5, 99.5}, true},
		"the last one moved":                      {Samples{50, 50, 60}, false},
		"it moved before, within those looked at": {Samples{60, 50, 50}, false},
		"it still falls":                          {Samples{70, 65, 60}, false},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := c.samples.Steady(3, 0.01); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
