package strip

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Writer is a client that wrote an object in the second of its last write.
type Writer struct {
	// Manager is the client's name in the managed fields.
	Manager string
	// Fields names fields that it alone manages; "" if it is the only manager of the object.
	Fields string
}

// String returns the manager and its fields.
func (w Writer) String() string {
	if w.Fields == "" {
		return w.Manager
	}
	return w.Manager + " (" + w.Fields + ")"
}

const (
	// maxWriters bounds the writers of an object, and maxWriterFields the fields of each that are named.
	maxWriters, maxWriterFields = 2, 3
	// maxWriterText is the longest text about the fields of a writer, and maxFieldsBytes the longest JSON of
	// an entry of managed fields that is read for it.
	maxWriterText, maxFieldsBytes = 256, 64 << 10
)

// writersOf returns the clients that wrote the object last, and when. Managed fields have the
// time in seconds. They do not show a write that only removed fields, began a deletion, or used the
// subresource scale.
func writersOf(entries []metav1.ManagedFieldsEntry) (writers []Writer, written int64) {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "" || e.Time == nil })
	var last metav1.Time
	for _, entry := range entries {
		if last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	for i, entry := range entries {
		if !entry.Time.Equal(&last) || len(writers) == maxWriters {
			continue
		}
		writer := Writer{Manager: unique.Make(entry.Manager).Value()} // Many objects have the same.
		if len(entries) > 1 {
			writer.Fields = ownFields(entries, i)
		}
		writers = append(writers, writer)
	}
	return writers, last.Unix()
}

// ownFields names fields of an entry that no other entry has. It has no values: an element of a set is its value.
func ownFields(entries []metav1.ManagedFieldsEntry, i int) string {
	own := fieldsOfEntry(entries[i])
	for j, other := range entries {
		if j != i {
			own = own.Difference(fieldsOfEntry(other))
		}
	}
	var names []string
	for path := range own.Leaves().All() { // It does not end before its end.
		if end := slices.IndexFunc(path, func(e fieldpath.PathElement) bool { return e.Value != nil }); end >= 0 {
			path = path[:end]
		}
		if name := strings.Map(printable, strings.TrimPrefix(path.String(), ".")); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	text := strings.Join(names[:min(len(names), maxWriterFields)], ", ")
	if more := len(names) - maxWriterFields; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return strings.ToValidUTF8(text[:min(len(text), maxWriterText)], "")
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return unicode.ReplacementChar
}

// fieldsOfEntry returns the fields of an entry; none if they cannot be read.
func fieldsOfEntry(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || len(entry.FieldsV1.GetRawBytes()) > maxFieldsBytes || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}
