package readcache

import (
	"bufio"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// listBuffer is how many bytes of a list are sent at once.
const listBuffer = 32 << 10

// scope gives the objects of a store among which a question chooses.
func scope(store toolscache.Indexer, q question) []*object {
	var found []any
	switch {
	case q.name != "":
		if one, ok, err := store.GetByKey(q.key()); ok && err == nil {
			found = []any{one}
		}
	case q.namespace != "":
		found, _ = store.ByIndex(toolscache.NamespaceIndex, q.namespace) // It knows the index.
	default:
		found = store.List()
	}
	list := make([]*object, len(found))
	for i, one := range found {
		list[i] = one.(*object) //nolint:forcetypeassert // The transform makes nothing else.
	}
	return list
}

// chosen gives the objects that a question asks for, in the API server's order. It
// takes the place of those among which they are.
func chosen(among []*object, q question) []*object {
	found := slices.DeleteFunc(among, func(o *object) bool {
		return q.selector != nil && !q.selector.Matches(labels.Set(o.labels))
	})
	slices.SortFunc(found, func(a, b *object) int { return strings.Compare(a.name, b.name) })
	return found
}

func uids(found []*object) []types.UID {
	list := make([]types.UID, len(found))
	for i, o := range found {
		list[i] = o.uid
	}
	return list
}

func (f *form) writeObject(w http.ResponseWriter, o *object) {
	f.begin(w, len(f.object)+len(o.json))
	// A client that hung up does not read the answer; there is nobody to tell.
	_, _ = w.Write(f.object) //nolint:gosec // JSON, and declared as such: nothing in it is a script.
	_, _ = w.Write(o.json[1:])
	_, _ = w.Write([]byte{'\n'})
}

func (f *form) writeList(w http.ResponseWriter, list []*object, version string) {
	const items, end = `"},"items":[`, "]}\n"
	size := len(f.list) + len(version) + len(items) + len(end) + max(0, len(list)-1)
	for _, o := range list {
		size += len(f.item) + len(o.json) - 1
	}
	f.begin(w, size)
	// An error stays with the writer and ends what follows.
	out := bufio.NewWriterSize(w, min(size, listBuffer))
	_, _ = out.Write(f.list)
	_, _ = out.WriteString(version)
	_, _ = out.WriteString(items)
	for i, o := range list {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(f.item)
		_, _ = out.Write(o.json[1:])
	}
	_, _ = out.WriteString(end)
	_ = out.Flush()
}

// begin writes the header of an answer of so many bytes.
func (f *form) begin(w http.ResponseWriter, size int) {
	header := w.Header()
	for _, warning := range f.warnings {
		header.Add("Warning", warning)
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-cache, private") // As the API server has it.
	header.Set("Content-Length", strconv.Itoa(size))
	header.Set("X-Cache", "HIT")
}
