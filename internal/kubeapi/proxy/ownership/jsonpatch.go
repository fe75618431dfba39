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

// maxOperations and maxCopyBytes are the API server's own limits for a JSON patch: how
// many operations it may have, and how many bytes they may copy.
const (
	maxOperations = 10000
	maxCopyBytes  = 3 << 20
)

// operations are a JSON patch.
type operations []operation

type operation struct {
	raw json.RawMessage
	// Op is empty where the operation is unusable, as the API server will say.
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
		// By its members' exact names, as the API server reads them.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw[i], &members); err != nil {
			return nil, fmt.Errorf("read operation %d of the JSON patch: %w", i, err)
		}
		patch[i].raw = raw[i]
		for name, into := range map[string]*string{"op": &patch[i].Op, "path": &patch[i].Path, "from": &patch[i].From} {
			if member, ok := members[name]; ok && json.Unmarshal(member, into) != nil {
				return nil, fmt.Errorf("operation %d of the JSON patch: %q is no text", i, name)
			}
		}
	}
	return patch, nil
}

func (p operations) needs(Target) Needs {
	if slices.ContainsFunc(p, operation.touchesMark) {
		return NeedsObject
	}
	return NeedsNothing
}

// touchesMark reports whether the operation could take a mark away, or bring one.
func (o operation) touchesMark() bool {
	switch o.Op {
	case "test":
		return false
	case "move":
		return touchesMark(o.Path) || touchesMark(o.From)
	default:
		return touchesMark(o.Path)
	}
}

func touchesMark(pointer string) bool {
	path := tokens(pointer)
	switch {
	case len(path) == 0:
		return true
	case path[0] != "metadata":
		return false
	case len(path) == 1 || path[1] == referencesKey:
		return true
	default:
		return path[1] == annotationsKey && (len(path) == 2 || isMark(path[2]))
	}
}

// tokens splits a JSON pointer as the API server's library does, which does not look
// at what stands before the first slash.
func tokens(pointer string) []string {
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
	if live == nil || len(p) > maxOperations || p.needs(t) == NeedsNothing {
		return nil, nil // There is nothing to patch, or too much, which the API server says.
	}
	desired, err := p.apply(live)
	if err != nil {
		return nil, nil //nolint:nilerr // What does not apply here the API server refuses, in its own words.
	}
	before, ok := desired["metadata"].(map[string]any)
	if !ok {
		return nil, nil // An object without metadata is refused too.
	}
	after := maps.Clone(before)
	changed, err := t.settle(metadata(live), after)
	if err != nil || !changed {
		return nil, err
	}
	return p.with(difference(before, after))
}

// apply returns what the API server makes of the live object. Tests are left out: where one
// fails, the API server changes nothing.
func (p operations) apply(live map[string]any) (patched map[string]any, err error) {
	defer func() { // The library panics at some patches, and so at the API server.
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("apply the JSON patch: %v", panicked)
		}
	}()
	// The limit is the library's only setting, and global. The API server sets it the same way.
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

// with returns the patch with further operations at its end.
func (p operations) with(more []map[string]any) ([]byte, error) {
	all := make([]any, 0, len(p)+len(more))
	for i := range p {
		all = append(all, p[i].raw)
	}
	for _, o := range more {
		all = append(all, o)
	}
	return json.Marshal(all)
}

// difference returns the operations that add to metadata what settle did, each as small
// as can be, so that what others change meanwhile stays.
func difference(before, after map[string]any) []map[string]any {
	var added []map[string]any
	add := func(path string, value any) {
		added = append(added, map[string]any{"op": "add", "path": "/metadata/" + path, "value": value})
	}
	was, _ := references(before)
	is, _ := references(after)
	switch {
	case len(is) == len(was):
	case len(is) == 0:
		added = append(added, map[string]any{"op": "remove", "path": "/metadata/" + referencesKey})
	case len(is) == len(was)+1 && before[referencesKey] != nil:
		add(referencesKey+"/-", is[len(was)])
	default:
		add(referencesKey, is)
	}
	old, _ := annotations(before)
	notes, _ := annotations(after)
	if before[annotationsKey] == nil && len(notes) > 0 {
		add(annotationsKey, notes)
		return added
	}
	for name, value := range notes {
		if isMark(name) && old[name] != value {
			add(annotationsKey+"/"+strings.ReplaceAll(name, "/", "~1"), value)
		}
	}
	return added
}
