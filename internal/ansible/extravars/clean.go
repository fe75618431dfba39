package extravars

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth is the maximum nesting of each top-level field of the object; Ansible
	// can read about 160 levels.
	maxDepth = 64
	// maxSpecBytes is the maximum size of the spec as JSON.
	maxSpecBytes = 1 << 20
	// maxNumberBytes is the maximum length of a number's text: Python refuses to read
	// integers of thousands of digits.
	maxNumberBytes = 320
	// reservedPrefix begins the keys of maps that Ansible's JSON decoder turns into
	// values of its own types, such as a marked string. A CR must not have such keys.
	reservedPrefix = "__ansible_"
)

// cleaner copies values. It leaves out values that no run may get, and adds a problem for each. The
// copies are plain JSON: maps, lists, strings, numbers, booleans, null.
type cleaner struct {
	problems *problemList
	// inSpec is set inside the spec, whose keys become names of variables.
	inSpec bool
}

// cleanObject copies the object without metadata.managedFields, which is large and
// of no use to a role.
func cleanObject(object map[string]any, problems *problemList) map[string]any {
	clean := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if metadata, ok := value.(map[string]any); ok && key == "metadata" {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			value = metadata
		}
		c := cleaner{problems: problems, inSpec: key == "spec"}
		at := (*path)(nil).field(key)
		if !c.checkKey(key, at) {
			continue
		}
		if copied, ok := c.value(value, at, 1); ok {
			clean[key] = copied
		}
	}
	if spec, ok := clean["spec"]; ok {
		clean["spec"] = limitSize(spec, problems)
	}
	return clean
}

// value copies v. The second result is false if v must be left out.
func (c cleaner) value(v any, at *path, depth int) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return c.mapping(v, at, depth)
	case []any:
		return c.list(v, at, depth)
	case string:
		if !utf8.ValidString(v) {
			c.problems.add(at, "is not valid UTF-8")
			return nil, false
		}
		return v, true
	case nil, bool, int, int64:
		return v, true
	case float64:
		return c.float(v, at)
	case json.Number:
		return c.number(v, at)
	default:
		c.problems.add(at, "is a %T, which JSON does not have", v)
		return nil, false
	}
}

func (c cleaner) mapping(m map[string]any, at *path, depth int) (any, bool) {
	if !c.checkDepth(at, depth) {
		return nil, false
	}
	clean := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		field := at.field(key)
		if !c.checkKey(key, field) {
			continue
		}
		if value, ok := c.value(m[key], field, depth+1); ok {
			clean[key] = value
		}
	}
	return clean, true
}

// list copies a list. It replaces an element that must be left out by null, so that
// the other elements keep their positions.
func (c cleaner) list(l []any, at *path, depth int) (any, bool) {
	if !c.checkDepth(at, depth) {
		return nil, false
	}
	clean := make([]any, len(l))
	for i, element := range l {
		clean[i], _ = c.value(element, at.element(i), depth+1)
	}
	return clean, true
}

// checkDepth reports whether a map or list at this depth may be copied.
func (c cleaner) checkDepth(at *path, depth int) bool {
	if depth <= maxDepth {
		return true
	}
	c.problems.add(at, "is nested deeper than %d levels", maxDepth)
	return false
}

// checkKey reports whether a key of a map may be copied.
func (c cleaner) checkKey(key string, at *path) bool {
	switch {
	case strings.HasPrefix(key, reservedPrefix):
		c.problems.add(at, "has a key that starts with %s, which Ansible keeps for itself; rename the field", reservedPrefix)
	case !utf8.ValidString(key):
		c.problems.add(at, "has a key that is not valid UTF-8")
	case c.inSpec && strings.Trim(key, " ") == "":
		c.problems.add(at, "has an empty or blank key; give it a name")
	default:
		return true
	}
	return false
}

func (c cleaner) float(f float64, at *path) (any, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.problems.add(at, "is not a finite number")
		return nil, false
	}
	return f, true
}

// number accepts a number that Python reads as a finite number of the same type.
func (c cleaner) number(n json.Number, at *path) (any, bool) {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || math.IsInf(f, 0) || len(n) > maxNumberBytes || !json.Valid([]byte(n)) {
		c.problems.add(at, "is not a finite number")
		return nil, false
	}
	return n, true
}

// limitSize removes the spec's largest fields until the remaining ones are within
// maxSpecBytes, so that a finalizer's run gets as many fields as possible.
func limitSize(spec any, problems *problemList) any {
	size := jsonSize(spec)
	if size <= maxSpecBytes {
		return spec
	}
	root := (*path)(nil).field("spec")
	fields, ok := spec.(map[string]any)
	if !ok {
		problems.add(root, "measures %d bytes as JSON; at most %d are allowed", size, maxSpecBytes)
		return nil
	}
	sizes := make(map[string]int, len(fields))
	for key, value := range fields {
		sizes[key] = jsonSize(map[string]any{key: value}) - len("{")
	}
	largestFirst := slices.SortedFunc(maps.Keys(fields), func(a, b string) int {
		if sizes[a] != sizes[b] {
			return sizes[b] - sizes[a]
		}
		return strings.Compare(a, b)
	})
	remaining := size
	for _, key := range largestFirst {
		if remaining <= maxSpecBytes {
			break
		}
		problems.add(root.field(key), "is %d of the %d bytes that the spec measures as JSON; at most %d are allowed",
			sizes[key], size, maxSpecBytes)
		remaining -= sizes[key]
		delete(fields, key)
	}
	return fields
}
