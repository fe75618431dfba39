package report

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The lines between which Splice puts figures. They are not shown.
const (
	spliceBegin = "<!-- bench: begin. What follows is written by `make bench`. -->"
	spliceEnd   = "<!-- bench: end -->"
)

// Cell is the place of a figure in the tables of Markdown. Lines of one title stand
// together, and titles whose lines have the same columns share a table. The zero value
// is no place.
type Cell struct{ Title, Line, Column string }

// Markdown returns the tables of what has a cell, and one of what became of the goals.
func (r Report) Markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", r.Machine)
	var titles, heads []string
	lines, columns, cells := map[string][]string{}, map[string][]string{}, map[Cell]string{}
	for _, row := range r.Rows {
		if c := row.Cell; c.Title != "" {
			titles, cells[c] = with(titles, c.Title), row.amount()
			lines[c.Title], columns[c.Title] = with(lines[c.Title], c.Line), with(columns[c.Title], c.Column)
		}
	}
	head := func(title string) string { return strings.Join(columns[title], " | ") }
	for _, title := range titles {
		heads = with(heads, head(title))
	}
	slices.SortStableFunc(titles, func(a, b string) int { return slices.Index(heads, head(a)) - slices.Index(heads, head(b)) })
	for i, title := range titles {
		if i == 0 || head(titles[i-1]) != head(title) {
			fmt.Fprintf(&text, "\n| | %s |\n|---|%s\n", head(title), strings.Repeat("---:|", len(columns[title])))
		}
		for _, line := range lines[title] {
			fmt.Fprintf(&text, "| %s: %s |", title, line)
			for _, column := range columns[title] {
				fmt.Fprintf(&text, " %s |", cells[Cell{title, line, column}])
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
