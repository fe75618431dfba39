package extravars

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What a message may hold, so that a spec full of faults still fits a
// condition and a log line.
const (
	maxKeptFaults   = 1000
	maxListedFaults = 100
	maxJoinedPaths  = 4
	maxPathBytes    = 160
	maxKeyBytes     = 64
	maxMessageBytes = 3 << 10
)

// InvalidSpecError says why no run can be made of an object. Only a change of
// the object mends it.
type InvalidSpecError struct {
	// Problems has one line for each fault, sorted, each starting with the path
	// of what is wrong. Past a hundred, a last line says how many more there are.
	Problems []string
}

// Error joins the problems; what does not fit 3 KiB is counted instead.
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

// fault is one thing that the object says and the run must not get.
type fault struct {
	paths   []string
	problem string
}

// report collects faults. It keeps the first of them only; since everything is
// walked in the order of its keys, these are always the same ones.
type report struct {
	kept  []fault
	count int
}

func (r *report) add(at *path, format string, args ...any) {
	r.addAll([]*path{at}, format, args...)
}

func (r *report) addAll(at []*path, format string, args ...any) {
	r.count++
	if len(r.kept) >= maxKeptFaults {
		return
	}
	paths := make([]string, len(at))
	for i := range at {
		paths[i] = at[i].String()
	}
	r.kept = append(r.kept, fault{paths, fmt.Sprintf(format, args...)})
}

func (r *report) merge(other report) {
	r.kept = append(r.kept, other.kept...)
	r.count += other.count
}

// problems are the faults as sentences, places the paths of them alone.
func (r *report) problems() []string {
	lines := make([]string, len(r.kept))
	for i, f := range r.kept {
		lines[i] = joined(f.paths) + ": " + f.problem
	}
	return r.listed(lines)
}

func (r *report) places() []string {
	var lines []string
	for _, f := range r.kept {
		lines = append(lines, f.paths...)
	}
	return r.listed(lines)
}

func (r *report) listed(lines []string) []string {
	slices.Sort(lines)
	if len(lines) > maxListedFaults {
		hidden := len(lines) - maxListedFaults + r.count - len(r.kept)
		lines = append(lines[:maxListedFaults:maxListedFaults], fmt.Sprintf("and %d more", hidden))
	}
	return lines
}

func joined(paths []string) string {
	if len(paths) > maxJoinedPaths {
		rest := fmt.Sprintf("%d more", len(paths)-maxJoinedPaths)
		paths = append(paths[:maxJoinedPaths:maxJoinedPaths], rest)
	}
	return strings.Join(paths, " and ")
}

// path is a place in the object. It becomes text only where something is wrong
// with it. The nil path is the object itself.
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

// String writes the path the way kubectl's users do: spec.users[0].name. Keys
// that are no plain words are quoted, so that no key can pass for a path or
// reach a terminal unescaped.
func (p *path) String() string {
	var elements []string
	for ; p != nil; p = p.parent {
		elements = append(elements, p.last())
	}
	slices.Reverse(elements)
	text := strings.TrimPrefix(strings.Join(elements, ""), ".")
	return shorten(text, maxPathBytes)
}

func (p *path) last() string {
	switch {
	case p.inList:
		return "[" + strconv.Itoa(p.index) + "]"
	case plainWord(p.key):
		return "." + shorten(p.key, maxKeyBytes)
	default:
		return "[" + quote(p.key) + "]"
	}
}

func plainWord(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r >= utf8.RuneSelf || r != '_' && r != '-' && !isAlphanumeric(byte(r))
	}) < 0
}

func isAlphanumeric(c byte) bool {
	return isLower(c) || isUpper(c) || '0' <= c && c <= '9'
}

func quote(text string) string { return strconv.Quote(shorten(text, maxKeyBytes)) }

// shorten cuts between characters, never inside one.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
