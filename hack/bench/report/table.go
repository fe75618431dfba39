package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.Machine)
	columns := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintf(columns, "\n\tmeasured\tlow … high\tgoal\t\n")
	part := ""
	for _, row := range r.Rows {
		if row.Part != part {
			part = row.Part
			fmt.Fprintf(columns, "%s\t\t\t\t\n", part)
		}
		goal, verdict := row.goal()
		fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%s\n", row.Name, row.amount(), row.spread(), goal, verdict)
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	r.notes(&text)
	missed, goals := r.Missed()
	fmt.Fprintf(&text, "\n%d of %d goals met", goals-len(missed), goals)
	if len(missed) > 0 {
		fmt.Fprintf(&text, "; MISSED: %s", strings.Join(missed, "; "))
	}
	text.WriteString(".\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// notes follow the table, where they may be long; one that several rows share
// stands there once.
func (r Report) notes(text *strings.Builder) {
	var order []string
	names := map[string][]string{}
	for _, row := range r.Rows {
		if row.Note != "" {
			order, names[row.Note] = with(order, row.Note), with(names[row.Note], row.Name)
		}
	}
	for _, note := range order {
		fmt.Fprintf(text, "\n* %s: %s", strings.Join(names[note], "; "), note)
	}
	if len(order) > 0 {
		text.WriteString("\n")
	}
}

// with returns the list with the text in it.
func with(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
