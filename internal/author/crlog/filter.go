package crlog

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
)

// Object is the CR whose lines are looked for.
type Object struct {
	// Kind is a kind as people write it: see kinds.Is.
	Kind string
	// Namespace is that of the CR, or AnyNamespace; "" if it is in none.
	Namespace string
	Name      string
}

// AnyNamespace is the namespace of an Object that may be in any.
const AnyNamespace = "*"

// Filter chooses the lines of one log. The zero value keeps none.
type Filter struct {
	object Object
	// keeps is true if the last record was kept: what follows it may belong to it.
	keeps bool
	// block is true if the last record about a CR of the object's name was kept: a block of
	// that name belongs to it.
	block bool
	// frame holds the first line of a block until the next one shows whose it is.
	frame string
	state state
}

// state is where in the log the next line stands.
type state int

const (
	outside  state = iota
	begins         // after the first line of a block
	inBlock        // in a block that is kept
	offBlock       // in a block that is not
)

// NewFilter returns a filter for the lines of one log.
func NewFilter(object Object) *Filter { return &Filter{object: object} }

// Lines returns what is to be shown now that the line was read: none, the line, or also a
// line before it. The line has no line feed.
func (f *Filter) Lines(line string) []string {
	switch f.state {
	case begins:
		object, _, isBlock := strings.Cut(line, " | ")
		f.state = offBlock
		if isBlock && f.block && f.isNamed(object) {
			f.state = inBlock
			return []string{f.frame, line}
		}
		return nil
	case inBlock, offBlock:
		kept := f.state == inBlock
		if line == eventlog.BlockFooter {
			f.state = outside
		}
		return only(kept, line)
	default:
	}
	if line == eventlog.TaskHeader || line == eventlog.ChartHeader {
		f.state, f.frame = begins, line
		return nil
	}
	if about, ok := parse(line); ok {
		f.keeps = f.isAbout(about)
		if f.isNamed(about.name()) {
			f.block = f.keeps
		}
	} else if !continues.MatchString(line) {
		f.keeps = false
	}
	return only(f.keeps, line)
}

// continues matches a line of a stack trace, which belongs to the record before it.
var continues = regexp.MustCompile(`^(\t|\S+$)`)

func only(kept bool, line string) []string {
	if kept {
		return []string{line}
	}
	return nil
}

// record has the keys of a record that say what it is about.
type record struct {
	// CR and Watch are those of a run: namespace/name, and "group/version, Kind=kind".
	CR    string `json:"cr"`
	Watch string `json:"watch"`
	// Object and Kind are those of a controller.
	Object string `json:"object"`
	Kind   string `json:"kind"`
}

func (r record) name() string {
	if r.CR != "" {
		return r.CR
	}
	return r.Object
}

// parse reads a record of either format; ok is false if the line is none.
func parse(line string) (r record, ok bool) {
	fields := line
	if !strings.HasPrefix(line, "{") { // The console's fields are separated by tabs, and their values escaped.
		if !isRecord.MatchString(line) {
			return record{}, false
		}
		_, last, found := strings.Cut(line, "\t{")
		if !found {
			return record{}, true
		}
		fields = "{" + last
	}
	var loose map[string]any // A key may have a value of another type.
	if json.Unmarshal([]byte(fields), &loose) != nil {
		return record{}, fields != line
	}
	text := func(key string) string { s, _ := loose[key].(string); return s }
	return record{CR: text("cr"), Watch: text("watch"), Object: text("object"), Kind: text("kind")}, true
}

// isRecord matches the time and the level of a record in the format console.
var isRecord = regexp.MustCompile(`^[0-9][-+.:0-9TZe]*\t[A-Za-z0-9()-]+\t`)

// isAbout reports whether the record is about the object.
func (f *Filter) isAbout(r record) bool {
	if !f.isNamed(r.name()) {
		return false
	}
	if gvk, kind, found := strings.Cut(r.Watch, ", Kind="); found {
		version, err := schema.ParseGroupVersion(strings.TrimPrefix(gvk, "/")) // The core group is "/v1".
		return err == nil && kinds.Is(f.object.Kind, schema.GroupKind{Group: version.Group, Kind: kind})
	}
	// A controller says no group.
	word, _, _ := strings.Cut(f.object.Kind, ".")
	return r.Kind == "" || kinds.Is(word, schema.GroupKind{Kind: r.Kind})
}

// isNamed reports whether "namespace/name", or "name", is the object's.
func (f *Filter) isNamed(text string) bool {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = "", text
	}
	return name == f.object.Name && (f.object.Namespace == AnyNamespace || namespace == f.object.Namespace)
}
