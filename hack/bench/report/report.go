// Package report holds what a benchmark has measured: samples and what they come
// to, rows with goals, charts, and the forms in which they are printed. It measures
// nothing itself.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Report is what one call measured.
type Report struct {
	// Machine says in one line where and under which circumstances.
	Machine string `json:"machine"`
	Rows    []Row  `json:"rows"`
	// Charts show some of the figures.
	Charts []Chart `json:"charts,omitempty"`
}

// Row is one figure.
type Row struct {
	// Part is what the figure belongs to; rows of one part stand together.
	Part string `json:"part"`
	Name string `json:"name"`
	// Value is the figure, and Low and High what the samples lay between.
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Unit is that of all three; "" for a ratio.
	Unit string `json:"unit"`
	// Goal is nil where none is set.
	Goal *Goal `json:"goal,omitempty"`
	// Note says how the figure came about, where its name does not.
	Note string `json:"note,omitempty"`
}

// Goal is what a figure is held against.
type Goal struct {
	// AtLeast makes the limit the least that is wanted, instead of the most.
	AtLeast bool
	Limit   float64
}

// AtMost is the goal of a figure that should be small.
func AtMost(limit float64) *Goal { return &Goal{Limit: limit} }

// AtLeast is the goal of a figure that should be large.
func AtLeast(limit float64) *Goal { return &Goal{AtLeast: true, Limit: limit} }

// Met reports whether the value reaches the goal.
func (g Goal) Met(value float64) bool {
	if g.AtLeast {
		return value >= g.Limit
	}
	return value <= g.Limit
}

// MarshalJSON returns the goal as {"atMost": limit} or {"atLeast": limit}.
func (g Goal) MarshalJSON() ([]byte, error) {
	name := "atMost"
	if g.AtLeast {
		name = "atLeast"
	}
	return json.Marshal(map[string]float64{name: g.Limit})
}

// MarshalJSON adds whether the goal is met; without a goal it says nothing of it.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	row := struct {
		plain

		Met *bool `json:"met,omitempty"`
	}{plain: plain(r)}
	if r.Goal != nil {
		met := r.Goal.Met(r.Value)
		row.Met = &met
	}
	return json.Marshal(row)
}

// JSON writes the report as one object, whose rows are always a list.
func (r Report) JSON(w io.Writer) error {
	if r.Rows == nil {
		r.Rows = []Row{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

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
		fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%s\n", row.Name, amount(row.Value, row.Unit), row.spread(), row.goal(), row.verdict())
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	r.notes(&text)
	fmt.Fprintf(&text, "\n%s\n", r.judgement())
	if _, err := io.WriteString(w, trimmed(text.String())); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// notes follow the table, where they may be long; one that several rows share
// stands there once.
func (r Report) notes(text *strings.Builder) {
	var order []string
	names := map[string][]string{}
	for _, row := range r.Rows {
		if row.Note == "" {
			continue
		}
		if names[row.Note] == nil {
			order = append(order, row.Note)
		}
		if !slices.Contains(names[row.Note], row.Name) { // Parts may have rows of the same name.
			names[row.Note] = append(names[row.Note], row.Name)
		}
	}
	for _, note := range order {
		fmt.Fprintf(text, "\n* %s: %s", strings.Join(names[note], "; "), note)
	}
	if len(order) > 0 {
		text.WriteString("\n")
	}
}

// Missed are the names of the figures that miss their goals.
func (r Report) Missed() []string {
	var names []string
	for _, row := range r.Rows {
		if row.Goal != nil && !row.Goal.Met(row.Value) {
			names = append(names, row.Name)
		}
	}
	return names
}

// judgement counts the goals.
func (r Report) judgement() string {
	goals, missed := 0, r.Missed()
	for _, row := range r.Rows {
		if row.Goal != nil {
			goals++
		}
	}
	if len(missed) == 0 {
		return fmt.Sprintf("%d of %d goals met.", goals, goals)
	}
	return fmt.Sprintf("%d of %d goals met; MISSED: %s.", goals-len(missed), goals, strings.Join(missed, "; "))
}

func (r Row) spread() string {
	if r.Low == r.High {
		return ""
	}
	return number(r.Low) + " … " + number(r.High)
}

func (r Row) goal() string {
	switch {
	case r.Goal == nil:
		return ""
	case r.Goal.AtLeast:
		return "≥ " + limit(r.Goal.Limit, r.Unit)
	default:
		return "≤ " + limit(r.Goal.Limit, r.Unit)
	}
}

func (r Row) verdict() string {
	switch {
	case r.Goal == nil:
		return ""
	case r.Goal.Met(r.Value):
		return "met"
	default:
		return "MISSED"
	}
}

func amount(value float64, unit string) string {
	return strings.TrimSpace(number(value) + " " + unit)
}

func limit(value float64, unit string) string {
	return strings.TrimSpace(strconv.FormatFloat(value, 'f', -1, 64) + " " + unit)
}

// number has as many digits as can be told apart on a machine that does other
// things too.
func number(value float64) string {
	switch {
	case value >= 100:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value >= 10:
		return strconv.FormatFloat(value, 'f', 1, 64)
	default:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
}

// trimmed has no blanks at the ends of lines, where empty columns leave them.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
