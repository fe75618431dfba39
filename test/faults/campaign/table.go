package campaign

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

// line is one line of the table.
type line struct {
	plans, good, violations int
	slowest                 Result
}

func (l *line) add(r Result) {
	l.plans++
	if r.Good() {
		l.good++
	}
	l.violations += len(r.Violations)
	if r.Took > l.slowest.Took || l.plans == 1 {
		l.slowest = r
	}
}

// Table writes a line for each operation, point and fault, and one for all.
func Table(w io.Writer, results []Result) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "dimension\tvalue\tplans\tconverged\tviolations\tslowest\tplan of that")
	for _, dimension := range []struct {
		name  string
		value func(plan.Plan) string
	}{
		{"operation", func(p plan.Plan) string { return string(p.Operation) }},
		{"point", func(p plan.Plan) string { return string(p.Point) }},
		{"fault", func(p plan.Plan) string { return string(p.Fault) }},
		{"all", func(plan.Plan) string { return "" }},
	} {
		var order []string
		lines := map[string]*line{}
		for _, r := range results {
			value := dimension.value(r.Plan)
			if lines[value] == nil {
				order, lines[value] = append(order, value), &line{}
			}
			lines[value].add(r)
		}
		for _, value := range order {
			l := lines[value]
			fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%.1f s\t%s\n", dimension.name, value, l.plans, l.good, l.violations, l.slowest.Took.Seconds(), l.slowest.Plan)
		}
		fmt.Fprintln(out, strings.Repeat("\t", 6))
	}
	return out.Flush()
}

// Bad are the results in which something is wrong.
func Bad(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), Result.Good)
}

// Quantile returns the time to settle that this share of the plans, 0 to 1, did not
// exceed.
func Quantile(results []Result, share float64) time.Duration {
	if len(results) == 0 {
		return 0
	}
	sorted := slices.SortedFunc(slices.Values(results), func(a, b Result) int { return cmp.Compare(a.Took, b.Took) })
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)].Took
}
