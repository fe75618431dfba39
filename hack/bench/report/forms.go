package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// The lines between which Splice puts figures. They are not shown.
const (
	spliceBegin = "<!-- bench: begin. What follows is written by `make bench`. -->\n"
	spliceEnd   = "<!-- bench: end -->\n"
)

// JSON writes the report as one object, whose rows are always a list.
func (r Report) JSON(w io.Writer) error {
	r.Rows = append([]Row{}, r.Rows...)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// Table writes the report for people. Notes follow the table, where they may be long; one
// that several rows share stands there once.
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
	notes := r.distinct(func(row Row) (string, bool) { return row.Note, true })
	for _, note := range notes {
		names := r.distinct(func(row Row) (string, bool) { return row.Name, row.Note == note })
		fmt.Fprintf(&text, "\n* %s: %s", strings.Join(names, "; "), note)
	}
	if len(notes) > 0 {
		text.WriteString("\n")
	}
	missed, goals := r.Missed()
	fmt.Fprintf(&text, "\n%d of %d goals met", goals-len(missed), goals)
	if len(missed) > 0 {
		fmt.Fprintf(&text, "; MISSED: %s", strings.Join(missed, "; "))
	}
	text.WriteString(".\n")
	_, err := io.WriteString(w, text.String())
	return err
}

// Markdown returns the tables of the rows with a cell, and one that says which goals are met.
func (r Report) Markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.Machine)
	cells := map[Cell]string{}
	for _, row := range r.Rows {
		cells[row.Cell] = row.amount()
	}
	for _, table := range r.distinct(func(row Row) (string, bool) { return row.Cell.Table, true }) {
		columns := r.distinct(func(row Row) (string, bool) { return row.Cell.Column, row.Cell.Table == table })
		fmt.Fprintf(&text, "\n| | %s |\n|---|%s\n", strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
		for _, line := range r.distinct(func(row Row) (string, bool) { return row.Cell.Line, row.Cell.Table == table }) {
			fmt.Fprintf(&text, "| %s |", line)
			for _, column := range columns {
				fmt.Fprintf(&text, " %s |", cells[Cell{table, line, column}])
			}
			text.WriteString("\n")
		}
	}
	text.WriteString("\n| Goal | measured | goal | |\n|---|---:|---:|---|\n")
	for _, row := range r.Rows {
		if goal, verdict := row.goal(); goal != "" {
			fmt.Fprintf(&text, "| %s: %s | %s | %s | %s |\n", row.Part, row.Name, row.amount(), goal, verdict)
		}
	}
	return text.String()
}

// Splice puts the tables into the place that a Markdown document has for them.
func (r Report) Splice(file string) error {
	document, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	before, rest, begins := strings.Cut(string(document), spliceBegin)
	_, after, ends := strings.Cut(rest, spliceEnd)
	if !begins || !ends {
		return errors.New("write the figures: " + file + " has no place for them")
	}
	text := before + spliceBegin + r.Markdown() + spliceEnd + after
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // A document that anybody may see.
}

// distinct returns the texts of the rows for which of says true, without "" and doubles, in
// the order of the rows.
func (r Report) distinct(of func(Row) (text string, counts bool)) (texts []string) {
	for _, row := range r.Rows {
		if t, counts := of(row); counts && t != "" && !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return texts
}
