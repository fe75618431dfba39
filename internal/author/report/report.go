// Package report holds findings about content and writes them as text, JSON or SARIF. It also
// applies the comments by which a line's author silences a finding.
package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ensign-operator/ensign/internal/author/fix"
)

// Severity is how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

func (s Severity) rank() int { return map[Severity]int{Error: 3, Warning: 2, Info: 1}[s] }

// AtLeast reports whether s is as bad as other.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }

// Finding is something that is wrong, or may be. Line and Column are 0 if it concerns the file
// as a whole.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	// Message is the fault, Why its effect, and Remedy the remedy.
	Message string `json:"message"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy"`
	// Fix are the edits of check --fix; nil where nothing mechanical helps.
	Fix []*fix.Edit `json:"-"`
}

// Place returns FILE:LINE:COLUMN.
func (f Finding) Place() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}

// Silenced is a finding that a comment silences, with the comment's reason.
type Silenced struct {
	Finding

	Reason string `json:"reason"`
}

// Report is the result of a check.
type Report struct {
	Findings []Finding  `json:"findings"`
	Silenced []Silenced `json:"silenced"`
	// Files and Tasks are how many were read.
	Files int `json:"files"`
	Tasks int `json:"tasks"`
}

// New returns a report of the findings, each once and in the order of files and lines, without
// those that comments silence.
func New(findings []Finding) Report {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	findings = slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.ID == b.ID && a.Place() == b.Place() && a.Message == b.Message
	})
	r := Report{Findings: []Finding{}, Silenced: []Silenced{}}
	comments := comments{}
	for _, f := range findings {
		if reason, silent := comments.silence(f); silent {
			r.Silenced = append(r.Silenced, Silenced{f, reason})
			continue
		}
		r.Findings = append(r.Findings, f)
	}
	r.Findings = append(r.Findings, comments.faults()...)
	return r
}

// Count returns how many findings have the severity.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Fails reports whether a finding is as bad as s.
func (r Report) Fails(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity.AtLeast(s) })
}
