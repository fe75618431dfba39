package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The lines between which Splice puts figures. They are not shown.
const (
	spliceBegin = "<!-- bench: begin. What follows is written by `make bench`. -->"
	spliceEnd   = "<!-- bench: end -->"
)

// Markdown writes two tables: the figures of the charts that compare the same series as
// the first one, and what became of the goals.
func (r Report) Markdown(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.Machine)
	if len(r.Charts) > 0 {
		series := r.Charts[0].Series
		fmt.Fprintf(&text, "\n| | %s |\n|---|%s\n", strings.Join(series, " | "), strings.Repeat("---:|", len(series)))
		for _, chart := range r.Charts {
			if !chart.Stacked && len(chart.Series) == len(series) {
				chart.markdown(&text)
			}
		}
	}
	text.WriteString("\n| Goal | measured | goal | |\n|---|---:|---:|---|\n")
	for _, row := range r.Rows {
		if row.Goal != nil {
			fmt.Fprintf(&text, "| %s: %s | %s | %s | %s |\n", row.Part, row.Name, amount(row.Value, row.Unit), row.goal(), row.verdict())
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

// markdown writes the rows of a chart.
func (c Chart) markdown(to *strings.Builder) {
	for _, g := range c.Groups {
		fmt.Fprintf(to, "| %s: %s |", c.Title, strings.ReplaceAll(g.Name, "\n", " "))
		for _, bar := range g.Bars {
			fmt.Fprintf(to, " %s |", figure(bar, c.Unit))
		}
		to.WriteString("\n")
	}
}

// Splice puts text into a document in the place of what stands between two lines that
// are there for it.
func Splice(document, text string) (string, error) {
	before, rest, begun := strings.Cut(document, spliceBegin+"\n")
	_, after, ended := strings.Cut(rest, spliceEnd+"\n")
	if !begun || !ended {
		return "", errors.New("it has no place for figures: two lines, " + spliceBegin + " and " + spliceEnd)
	}
	return before + spliceBegin + "\n" + strings.TrimRight(text, "\n") + "\n" + spliceEnd + "\n" + after, nil
}
