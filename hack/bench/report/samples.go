package report

import "slices"

// Samples are measurements of one thing in one unit.
type Samples []float64

// Median is the one in the middle, or the mean of the two there; 0 of none.
func (s Samples) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Row is the median of the samples, with what they lay between. The caller adds
// part, name and goal.
func (s Samples) Row(unit string) Row {
	row := Row{Value: s.Median(), Unit: unit}
	if len(s) > 0 {
		row.Low, row.High = slices.Min(s), slices.Max(s)
	}
	return row
}

// Ratio compares two series that were measured in turns: its value is the ratio
// of their medians, and its spread that of the neighbours' ratios. The series are
// equally long and the second holds no 0.
func Ratio(ours, theirs Samples) Row {
	pairs := make(Samples, 0, len(ours))
	for i := range min(len(ours), len(theirs)) {
		pairs = append(pairs, ours[i]/theirs[i])
	}
	row := pairs.Row("")
	if median := theirs.Median(); median != 0 {
		row.Value = ours.Median() / median
	}
	return row
}

// Steady reports whether the last so many samples differ by no more than the
// fraction of the largest of them.
func (s Samples) Steady(last int, fraction float64) bool {
	if len(s) < last {
		return false
	}
	tail := s[len(s)-last:]
	return slices.Max(tail)-slices.Min(tail) <= fraction*slices.Max(tail)
}
