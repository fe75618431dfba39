package report

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// comment silences the findings of an ID at its line or, if the comment has a line of its own, at
// the next line that is not a comment.
type comment struct {
	file     string
	line, at int
	id       string
	reason   string
}

var pattern = regexp.MustCompile(`#\s*ensign:\s*ignore=([A-Za-z0-9_-]*)[ \t]*([^#]*)`)

// comments are those of the files that have findings.
type comments map[string][]comment

func (c comments) of(file string) []comment {
	if _, known := c[file]; !known {
		text, _ := os.ReadFile(file) // A file that cannot be read has none.
		c[file] = parse(file, strings.Split(string(text), "\n"))
	}
	return c[file]
}

func parse(file string, lines []string) []comment {
	var found []comment
	for i, line := range lines {
		for _, match := range pattern.FindAllStringSubmatch(line, -1) {
			at := i
			for strings.HasPrefix(strings.TrimSpace(lines[at]), "#") && at+1 < len(lines) {
				at++
			}
			reason := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(match[2]), "}"))
			found = append(found, comment{file, i + 1, at + 1, match[1], strings.TrimSpace(strings.TrimSuffix(reason, "#"))})
		}
	}
	return found
}

// silence returns the reason of a comment at the finding's line.
func (c comments) silence(f Finding) (string, bool) {
	for _, comment := range c.of(f.File) {
		if comment.id == f.ID && comment.reason != "" && (comment.at == f.Line || comment.line == f.Line) {
			return comment.reason, true
		}
	}
	return "", false
}

// faults are findings about comments that silence nothing because a part is missing.
func (c comments) faults() []Finding {
	var found []Finding
	for _, file := range slices.Sorted(maps.Keys(c)) {
		for _, comment := range c[file] {
			if comment.id == "" || comment.reason == "" {
				found = append(found, Finding{
					ID: "ignore-without-reason", Severity: Warning, File: file, Line: comment.line, Column: 1,
					Message: "the comment silences nothing: it lacks an ID or a reason",
					Why:     "a finding that is silenced without a reason is looked into again by everybody who reads it",
					Remedy:  "write # ensign: ignore=ID and, behind it, why the finding is none here",
				})
			}
		}
	}
	return found
}
