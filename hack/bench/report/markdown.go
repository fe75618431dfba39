package report

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// The lines between which Splice puts figures. They are not shown.
const (
	spliceBegin = "<!-- bench: begin. What follows is written by `make bench`. -->"
	spliceEnd   = "<!-- bench: end -->"
)

// Cell is the place of a figure in a table of Markdown. Tables, lines and columns stand in
// the order in which the rows first name them. The zero value is no place.
type Cell struct{ Table, Line, Column string }

// Markdown returns the tables of what has a cell, and one of what became of the goals.
func (r Report) Markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.Machine)
	var tables []string
	lines, columns, cells := map[string][]string{}, map[string][]string{}, map[Cell]string{}
	for _, row := range r.Rows {
		if c := row.Cell; c.Table != "" {
			tables, cells[c] = with(tables, c.Table), row.amount()
			lines[c.Table], columns[c.Table] = with(lines[c.Table], c.Line), with(columns[c.Table], c.Column)
		}
	}
	for _, table := range tables {
		fmt.Fprintf(&text, "\n| | %s |\n|---|%s\n", strings.Join(columns[table], " | "), strings.Repeat("---:|", len(columns[table])))
		for _, line := range lines[table] {
			fmt.Fprintf(&text, "| %s |", line)
			for _, column := range columns[table] {
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
	before, rest, begins := strings.Cut(string(document), spliceBegin+"\n")
	_, after, ends := strings.Cut(rest, spliceEnd+"\n")
	if !begins || !ends {
		return errors.New("write the figures: " + file + " has no place for them")
	}
	text := before + spliceBegin + "\n" + r.Markdown() + spliceEnd + "\n" + after
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // A document that anybody may see.
}
