// Package report holds the measurements of a benchmark, as rows with goals, and the forms in which
// they are printed. It measures nothing itself.
package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Report has the measurements of one call.
type Report struct {
	// Machine says in one line where and under which circumstances.
	Machine string `json:"machine"`
	Rows    []Row  `json:"rows"`
}

// Row is one figure.
type Row struct {
	// Part is the part to which the figure belongs; rows of one part stand together.
	Part string `json:"part"`
	Name string `json:"name"`
	// Value is the figure, and Low and High the range of the samples.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Mean says that Value is the mean of samples instead of their median, which is one of few
	// values where they are counted in coarse units.
	Mean bool `json:"mean,omitempty"`
	// Unit is that of all three; "" for a ratio.
	Unit string `json:"unit"`
	// Goal is nil where none is set, and so is Met, which says whether it is reached: see
	// Judged.
	Goal *Goal `json:"goal,omitempty"`
	Met  *bool `json:"met,omitempty"`
	// Note says how the figure came about, where its name does not.
	Note string `json:"note,omitempty"`
	// Estimated says that it was not measured but calculated from one that was.
	Estimated bool `json:"estimated,omitempty"`
	// Cell is where the tables of Markdown have the figure.
	Cell Cell `json:"-"`
}

// Cell is the place of a figure in a table of Markdown. Tables, lines and columns stand in the
// order in which the rows first name them. The zero value means none.
type Cell struct{ Table, Line, Column string }

// Goal is the goal of a figure: one of these, the other one is 0.
type Goal struct {
	AtMost  float64 `json:"atMost,omitempty"`
	AtLeast float64 `json:"atLeast,omitempty"`
}

// AtMost returns the goal of a figure that should be small, and nil, no goal, for 0.
func AtMost(limit float64) *Goal {
	if limit == 0 {
		return nil
	}
	return &Goal{AtMost: limit}
}

// AtLeast is the goal of a figure that should be large.
func AtLeast(limit float64) *Goal { return &Goal{AtLeast: limit} }

// Of makes the row with the median of samples, or their mean, and their range.
func (r Row) Of(samples ...float64) Row {
	r.Value, r.Low, r.High = r.center(samples), slices.Min(samples), slices.Max(samples)
	return r
}

// Ratio returns the row with a comparison of two series that were measured in turns, and
// are equally long: its value is the ratio of their medians, or means, and its spread that of
// the neighbours' ratios.
func (r Row) Ratio(ours, theirs []float64) Row {
	pairs := make([]float64, len(ours))
	for i := range ours {
		pairs[i] = ours[i] / theirs[i]
	}
	r = r.Of(pairs...)
	r.Value = r.center(ours) / r.center(theirs)
	return r
}

// Paired returns the row with a comparison of two series that were measured in turns, and are
// equally long, where a small difference counts. Its value is the median, or mean, of the neighbours'
// differences, as a part of theirs. Its spread is the interval that has the true one with a
// confidence of 95 %. That of a median takes six samples or more.
func (r Row) Paired(ours, theirs []float64) Row {
	base, ratios := r.center(theirs), make([]float64, len(ours))
	for i := range ours {
		ratios[i] = 1 + (ours[i]-theirs[i])/base
	}
	s := r.summary(ratios)
	r.Value, r.Low, r.High = s.Center, s.Lo, s.Hi
	return r
}

func (r Row) center(samples []float64) float64 { return r.summary(samples).Center }

func (r Row) summary(samples []float64) benchmath.Summary {
	if r.Mean {
		return summary(benchmath.AssumeNormal, samples)
	}
	return summary(benchmath.AssumeNothing, samples)
}

// Median returns the median of one sample or more.
func Median(samples []float64) float64 { return summary(benchmath.AssumeNothing, samples).Center }

func summary(of benchmath.Assumption, samples []float64) benchmath.Summary {
	sample := benchmath.NewSample(slices.Clone(samples), &benchmath.DefaultThresholds)
	return of.Summary(sample, 0.95)
}

// Judged returns the row with Met.
func (r Row) Judged() Row {
	if r.Goal != nil {
		met := (r.Goal.AtLeast == 0 || r.Value >= r.Goal.AtLeast) && (r.Goal.AtMost == 0 || r.Value <= r.Goal.AtMost)
		r.Met = &met
	}
	return r
}

// Missed are the names of the figures that miss their goals, of so many.
func (r Report) Missed() (names []string, goals int) {
	for _, row := range r.Rows {
		if row.Met == nil {
			continue
		}
		if goals++; !*row.Met {
			names = append(names, row.Name)
		}
	}
	return names, goals
}

func (r Row) amount() string {
	text := strings.TrimSpace(number(r.Value) + " " + r.Unit)
	if r.Estimated {
		return "≈ " + text
	}
	return text
}

func (r Row) spread() string {
	if r.Low == r.High {
		return ""
	}
	return number(r.Low) + " … " + number(r.High)
}

// goal tells the goal and whether it is met.
func (r Row) goal() (goal, verdict string) {
	switch {
	case r.Met == nil:
		return "", ""
	case r.Goal.AtLeast > 0:
		goal = fmt.Sprint("≥ ", r.Goal.AtLeast)
	default:
		goal = fmt.Sprint("≤ ", r.Goal.AtMost)
	}
	goal = strings.TrimSpace(goal + " " + r.Unit)
	if *r.Met {
		return goal, "met"
	}
	return goal, "MISSED"
}

// number has as many digits as can be told apart on a machine that does other
// things too.
func number(value float64) string {
	digits := 3
	switch {
	case value >= 100:
		digits = 0
	case value >= 10:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}
