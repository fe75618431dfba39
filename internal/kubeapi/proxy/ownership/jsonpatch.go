package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// maxOperations and maxCopyBytes are the API server's limits for a JSON patch: the number of its
// operations, and of the bytes that they copy.
const (
	maxOperations = 10000
	maxCopyBytes  = 3 << 20
)

// operations are a JSON patch.
type operations []operation

type operation struct {
	raw json.RawMessage
	// Op is empty in an invalid operation, which the API server will refuse.
	Op   string `json:"op"`
	Path string `json:"path"`
	From string `json:"from"`
}

func readOperations(body []byte) (format, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, fmt.Errorf("read the JSON patch: %w", err)
	}
	patch := make(operations, len(raw))
	for i := range raw {
		// A map matches names exactly, as the API server does.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw[i], &members); err != nil {
			return nil, fmt.Errorf("read operation %d of the JSON patch: %w", i, err)
		}
		patch[i].raw = raw[i]
		for name, into := range map[string]*string{"op": &patch[i].Op, "path": &patch[i].Path, "from": &patch[i].From} {
			if member, ok := members[name]; ok && json.Unmarshal(member, into) != nil {
				return nil, fmt.Errorf("operation %d of the JSON patch: %q is not a string", i, name)
			}
		}
	}
	return patch, nil
}

func (p operations) needs(t Target) Needs {
	if slices.ContainsFunc(p, func(o operation) bool { return o.touches(t) }) {
		return NeedsObject
	}
	return wishOf(t)
}

// touches reports whether the operation could add or remove a link to an owner or a label of the target.
func (o operation) touches(t Target) bool {
	switch o.Op {
	case "test":
		return false
	case "move":
		return touches(t, o.Path) || touches(t, o.From)
	default:
		return touches(t, o.Path)
	}
}

// touches reports whether a change at the pointer could add or remove a link to an owner or a
// label of the target.
func touches(t Target, pointer string) bool {
	path := splitPointer(pointer)
	switch {
	case len(path) == 0:
		return true
	case path[0] != "metadata":
		return false
	case len(path) == 1 || path[1] == referencesKey || t.touchesLabels(path):
		return true
	default:
		return path[1] == annotationsKey && (len(path) == 2 || concernsLink(path[2]))
	}
}

// splitPointer splits a JSON pointer. Like the API server's library, it ignores the text before the
// first slash.
func splitPointer(pointer string) []string {
	_, rest, found := strings.Cut(pointer, "/")
	if !found {
		return nil
	}
	path := strings.Split(rest, "/")
	for i := range path {
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
	}
	return path
}

func (p operations) addOwner(t Target, live map[string]any) ([]byte, error) {
	if live == nil || len(p) > maxOperations {
		return nil, nil // The API server refuses a patch without an object, or with too many operations.
	}
	if !slices.ContainsFunc(p, func(o operation) bool { return o.touches(t) }) {
		return p.renew(t, metadata(live))
	}
	desired, err := p.apply(live)
	if err != nil {
		return nil, nil //nolint:nilerr // The API server refuses such a patch with its own message.
	}
	before, ok := desired["metadata"].(map[string]any)
	if !ok {
		return nil, nil // The API server refuses an object without metadata.
	}
	after := maps.Clone(before)
	changed, err := t.ensure(metadata(live), after)
	if err != nil || !changed {
		return nil, err
	}
	return p.withAppended(append(difference(before, after), labelDifference(before, after)...))
}

// renew adds operations for the references to the owner that are outdated. The patch does not
// touch references.
func (p operations) renew(t Target, live map[string]any) ([]byte, error) {
	before, err := references(live)
	if err != nil {
		return nil, nil //nolint:nilerr // The API server never returns such an object.
	}
	after, changed := t.renewed(before)
	if keeps, err := keepsItself(live); !changed || keeps || err != nil {
		return nil, nil //nolint:nilerr // The API server never returns such an object.
	}
	return p.withAppended(renewals(before, after))
}

// apply returns the object that results from the patch. It leaves test operations out: if one
// fails, the API server changes nothing.
func (p operations) apply(live map[string]any) (patched map[string]any, err error) {
	defer func() { // The library panics for some patches, in the API server too.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("apply the JSON patch: %v", panicked)
		}
	}()
	// The library has this limit only as a global variable. The API server sets it the same way.
	atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, 0, maxCopyBytes)
	object, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	var raw []json.RawMessage
	for i := range p {
		if p[i].Op != "test" {
			raw = append(raw, p[i].raw)
		}
	}
	body, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, err
	}
	if object, err = patch.Apply(object); err != nil {
		return nil, err
	}
	return readJSON(object)
}

// withAppended returns the patch with more operations at its end.
func (p operations) withAppended(more []map[string]any) ([]byte, error) {
	all := make([]any, 0, len(p)+len(more))
	for i := range p {
		all = append(all, p[i].raw)
	}
	for _, o := range more {
		all = append(all, o)
	}
	return json.Marshal(all)
}

// difference returns the operations for the changes that ensureOwner has made to metadata. They are
// as small as possible, so that concurrent changes by other clients are kept.
func difference(before, after map[string]any) []map[string]any {
	var added []map[string]any
	add := func(path string, value any) {
		added = append(added, map[string]any{"op": "add", "path": "/metadata/" + path, "value": value})
	}
	oldReferences, _ := references(before)
	newReferences, _ := references(after)
	switch {
	case len(newReferences) == len(oldReferences):
		added = renewals(oldReferences, newReferences)
	case len(newReferences) == 0:
		added = append(added, map[string]any{"op": "remove", "path": "/metadata/" + referencesKey})
	case len(newReferences) == len(oldReferences)+1 && before[referencesKey] != nil:
		add(referencesKey+"/-", newReferences[len(oldReferences)])
	default:
		add(referencesKey, newReferences)
	}
	oldAnnotations, _ := annotations(before)
	newAnnotations, _ := annotations(after)
	if before[annotationsKey] == nil && len(newAnnotations) > 0 {
		add(annotationsKey, newAnnotations)
		return added
	}
	for name, value := range newAnnotations {
		if isOwnerAnnotation(name) && oldAnnotations[name] != value {
			add(annotationsKey+"/"+strings.ReplaceAll(name, "/", "~1"), value)
		}
	}
	return added
}
