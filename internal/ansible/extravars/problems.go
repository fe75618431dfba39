package extravars

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// These limits make the message for a spec with many problems fit into a condition
// and a log line.
const (
	maxKeptProblems   = 1000
	maxListedProblems = 100
	maxJoinedPaths    = 4
	maxPathBytes      = 160
	maxKeyBytes       = 64
	maxMessageBytes   = 3 << 10
)

// InvalidSpecError says why the operator cannot run content for an object. A retry
// helps only after the object has changed.
type InvalidSpecError struct {
	// Problems has a line for each problem. Each line begins with the path of the
	// field. The lines are sorted. If there are more than a hundred, a last line says
	// how many more there are.
	Problems []string
}

// Error joins the problems. If they are longer than 3 KiB, it ends with the number of
// those left out.
func (e *InvalidSpecError) Error() string {
	var text strings.Builder
	for i, problem := range e.Problems {
		if text.Len()+len(problem) > maxMessageBytes {
			fmt.Fprintf(&text, "; and %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(problem)
	}
	return text.String()
}

// problem is a field, or several fields together, that the run must not get.
type problem struct {
	paths   []string
	message string
}

// problemList collects problems. It keeps only the first maxKeptProblems. Callers add
// them in the sorted order of keys, so the kept ones are always the same.
type problemList struct {
	first []problem
	count int // of all, kept or not
}

func (l *problemList) add(at *path, format string, args ...any) {
	l.addAll([]*path{at}, format, args...)
}

func (l *problemList) addAll(at []*path, format string, args ...any) {
	l.count++
	if len(l.first) >= maxKeptProblems {
		return
	}
	paths := make([]string, len(at))
	for i := range at {
		paths[i] = at[i].String()
	}
	l.first = append(l.first, problem{paths, fmt.Sprintf(format, args...)})
}

func (l *problemList) merge(other problemList) {
	l.first = append(l.first, other.first...)
	l.count += other.count
}

// lines returns the problems as text.
func (l *problemList) lines() []string {
	lines := make([]string, len(l.first))
	for i, p := range l.first {
		lines[i] = joinPaths(p.paths) + ": " + p.message
	}
	return l.truncate(lines)
}

// paths returns the paths of the fields with problems.
func (l *problemList) paths() []string {
	var lines []string
	for _, p := range l.first {
		lines = append(lines, p.paths...)
	}
	return l.truncate(lines)
}

// truncate sorts the lines and replaces those after the first maxListedProblems by
// their number.
func (l *problemList) truncate(lines []string) []string {
	slices.Sort(lines)
	if len(lines) > maxListedProblems {
		hidden := len(lines) - maxListedProblems + l.count - len(l.first)
		lines = append(lines[:maxListedProblems:maxListedProblems], fmt.Sprintf("and %d more", hidden))
	}
	return lines
}

func joinPaths(paths []string) string {
	if len(paths) > maxJoinedPaths {
		rest := fmt.Sprintf("%d more", len(paths)-maxJoinedPaths)
		paths = append(paths[:maxJoinedPaths:maxJoinedPaths], rest)
	}
	return strings.Join(paths, " and ")
}

// path is the path of a value in the object. It is made into text only for problems.
// The nil path is the object itself.
type path struct {
	parent *path
	key    string
	index  int // of a list's element, when inList
	inList bool
}

func (p *path) field(key string) *path { return &path{parent: p, key: key} }

func (p *path) fields(keys []string) []*path {
	fields := make([]*path, len(keys))
	for i, key := range keys {
		fields[i] = p.field(key)
	}
	return fields
}

func (p *path) element(i int) *path { return &path{parent: p, index: i, inList: true} }

// String returns the path in the notation of kubectl: spec.users[0].name. It quotes
// keys that are not plain words, so that no key can look like a path or reach a
// terminal unescaped.
func (p *path) String() string {
	var elements []string
	for ; p != nil; p = p.parent {
		elements = append(elements, p.lastElement())
	}
	slices.Reverse(elements)
	text := strings.TrimPrefix(strings.Join(elements, ""), ".")
	return shorten(text, maxPathBytes)
}

func (p *path) lastElement() string {
	switch {
	case p.inList:
		return "[" + strconv.Itoa(p.index) + "]"
	case isPlainWord(p.key):
		return "." + shorten(p.key, maxKeyBytes)
	default:
		return "[" + quote(p.key) + "]"
	}
}

func isPlainWord(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r >= utf8.RuneSelf || r != '_' && r != '-' && !isAlphanumeric(byte(r))
	}) < 0
}

func isAlphanumeric(c byte) bool {
	return isLower(c) || isUpper(c) || '0' <= c && c <= '9'
}

func quote(text string) string { return strconv.Quote(shorten(text, maxKeyBytes)) }

// shorten returns at most limit bytes of text, cut between two characters, and "…".
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
