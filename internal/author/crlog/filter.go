package crlog

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/kinds"
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
	// keeps is true if the last record was kept: the lines of a stack trace belong to it.
	keeps bool
	// block is true if the last record about a CR of the object's name was kept: the lines of a
	// block of that name belong to it.
	block bool
	// records is true if the log has records.
	records bool
}

// NewFilter returns a filter for the lines of one log.
func NewFilter(object Object) *Filter { return &Filter{object: object} }

// Keeps reports whether the next line of the log is about the object. The line has no line feed.
// Both formats have the fields of a record as JSON. The format console also has
// task output, each line of which begins with the CR.
func (f *Filter) Keeps(line string) bool {
	if about, ok := parse(line); ok {
		f.records, f.keeps = true, f.isAbout(about)
		if f.isNamed(about.name()) {
			f.block = f.keeps
		}
		return f.keeps
	}
	if object, _, found := strings.Cut(line, " | "); found {
		f.records = true // It follows one, perhaps before the part of the log that is read.
		return f.block && f.isNamed(object)
	}
	f.keeps = f.keeps && stackTrace.MatchString(line)
	return f.keeps
}

// stackTrace matches a line of a stack trace.
var stackTrace = regexp.MustCompile(`^(\t|\S+$)`)

// record has the keys of a record that say what it is about.
type record struct {
	// cr and watch are those of a run: namespace/name, and "group/version, Kind=kind".
	cr, watch string
	// object and kind are those of a controller.
	object, kind string
}

func (r record) name() string {
	if r.cr != "" {
		return r.cr
	}
	return r.object
}

// parse reads a record; ok is false if the line is none. A record of the format console has time,
// level, name and message before its fields, separated by tabs.
func parse(line string) (r record, ok bool) {
	fields, isRecord := line, strings.HasPrefix(line, "{")
	if !isRecord {
		isRecord = consoleRecord.MatchString(line)
		_, fields, _ = strings.Cut(line, "\t{")
		fields = "{" + fields
	}
	var loose map[string]any // A key may have a value of another type.
	if !isRecord || json.Unmarshal([]byte(fields), &loose) != nil {
		return record{}, isRecord && fields != line
	}
	text := func(key string) string { s, _ := loose[key].(string); return s }
	return record{cr: text("cr"), watch: text("watch"), object: text("object"), kind: text("kind")}, true
}

// consoleRecord matches the time and the level of a record in the format console.
var consoleRecord = regexp.MustCompile(`^[0-9][-+.:0-9TZe]*\t[A-Za-z0-9()-]+\t`)

// isAbout reports whether the record is about the object.
func (f *Filter) isAbout(r record) bool {
	if !f.isNamed(r.name()) {
		return false
	}
	if gvk, kind, found := strings.Cut(r.watch, ", Kind="); found {
		version, err := schema.ParseGroupVersion(strings.TrimPrefix(gvk, "/")) // The core group is "/v1".
		return err == nil && kinds.Is(f.object.Kind, schema.GroupKind{Group: version.Group, Kind: kind})
	}
	// A controller says no group.
	word, _, _ := strings.Cut(f.object.Kind, ".")
	return r.kind == "" || kinds.Is(word, schema.GroupKind{Kind: r.kind})
}

// isNamed reports whether "namespace/name", or "name", is the object's.
func (f *Filter) isNamed(text string) bool {
	namespace, name, found := strings.Cut(text, "/")
	if !found {
		namespace, name = "", text
	}
	return name == f.object.Name && (f.object.Namespace == AnyNamespace || namespace == f.object.Namespace)
}
