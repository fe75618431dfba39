package campaign

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/ensign-operator/ensign/test/faults/plan"
)

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
		lines := map[string][]Result{}
		for _, r := range results {
			value := dimension.value(r.Plan)
			lines[value] = append(lines[value], r)
		}
		for _, value := range slices.Sorted(maps.Keys(lines)) {
			violations, bad := 0, Bad(lines[value])
			for _, r := range bad {
				violations += len(r.Violations)
			}
			slowest := slices.MaxFunc(lines[value], func(a, b Result) int { return cmp.Compare(a.Took, b.Took) })
			fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%.1f s\t%s\n", dimension.name, value,
				len(lines[value]), len(lines[value])-len(bad), violations, slowest.Took.Seconds(), slowest.Plan)
		}
		fmt.Fprintln(out, "\t\t\t\t\t\t")
	}
	return out.Flush()
}

// Bad are the results in which something is wrong.
func Bad(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), Result.Good)
}
