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
	// maxDepth is how deep each field of the object may nest; Ansible manages
	// about 160.
	maxDepth = 64
	// maxSpecBytes is what the spec may measure as JSON.
	maxSpecBytes = 1 << 20
	// maxNumberBytes bounds a number's text: Python refuses to read integers of
	// thousands of digits.
	maxNumberBytes = 320
	// reserved starts the keys by which Ansible's JSON decoder knows a marked
	// value. Written by a CR, they would turn data into something else.
	reserved = "__ansible_"
)

// cleaner copies values and leaves out what no run may get, telling each time.
// What it returns is plain JSON: maps, lists, strings, numbers, booleans, null.
type cleaner struct {
	faults *report
	// variables is set inside the spec, whose keys become names of variables.
	variables bool
}

// cleanObject copies the object without metadata.managedFields, which is of no
// use to a role and large.
func cleanObject(object map[string]any, faults *report) map[string]any {
	clean := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if metadata, ok := value.(map[string]any); ok && key == "metadata" {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			value = metadata
		}
		c := cleaner{faults: faults, variables: key == "spec"}
		at := (*path)(nil).field(key)
		if !c.usableKey(key, at) {
			continue
		}
		if copied, ok := c.value(value, at, 1); ok {
			clean[key] = copied
		}
	}
	if spec, ok := clean["spec"]; ok {
		clean["spec"] = fitting(spec, faults)
	}
	return clean
}

// value copies v. The second result is false where v must be left out.
func (c cleaner) value(v any, at *path, depth int) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return c.mapping(v, at, depth)
	case []any:
		return c.list(v, at, depth)
	case string:
		if !utf8.ValidString(v) {
			c.faults.add(at, "is not valid UTF-8")
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
		c.faults.add(at, "is a %T, which JSON does not have", v)
		return nil, false
	}
}

func (c cleaner) mapping(m map[string]any, at *path, depth int) (any, bool) {
	if !c.shallow(at, depth) {
		return nil, false
	}
	clean := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		field := at.field(key)
		if !c.usableKey(key, field) {
			continue
		}
		if value, ok := c.value(m[key], field, depth+1); ok {
			clean[key] = value
		}
	}
	return clean, true
}

// list keeps the positions of its elements: null stands for one left out.
func (c cleaner) list(l []any, at *path, depth int) (any, bool) {
	if !c.shallow(at, depth) {
		return nil, false
	}
	clean := make([]any, len(l))
	for i, element := range l {
		clean[i], _ = c.value(element, at.element(i), depth+1)
	}
	return clean, true
}

// shallow stops the walk before it can go deeper than Ansible could.
func (c cleaner) shallow(at *path, depth int) bool {
	if depth <= maxDepth {
		return true
	}
	c.faults.add(at, "is nested deeper than %d levels", maxDepth)
	return false
}

func (c cleaner) usableKey(key string, at *path) bool {
	switch {
	case strings.HasPrefix(key, reserved):
		c.faults.add(at, "has a key that starts with %s, which Ansible keeps for itself; rename the field", reserved)
	case !utf8.ValidString(key):
		c.faults.add(at, "has a key that is not valid UTF-8")
	case c.variables && strings.Trim(key, " ") == "":
		c.faults.add(at, "has an empty or blank key; give it a name")
	default:
		return true
	}
	return false
}

func (c cleaner) float(f float64, at *path) (any, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		c.faults.add(at, "is not a finite number")
		return nil, false
	}
	return f, true
}

// number accepts what Python reads as a finite number of the same kind.
func (c cleaner) number(n json.Number, at *path) (any, bool) {
	f, err := strconv.ParseFloat(n.String(), 64)
	if err != nil || math.IsInf(f, 0) || len(n) > maxNumberBytes || !json.Valid([]byte(n)) {
		c.faults.add(at, "is not a finite number")
		return nil, false
	}
	return n, true
}

// fitting leaves out the spec's largest fields until the rest is small enough
// to be read: a finalizer's run gets as much of it as it can.
func fitting(spec any, faults *report) any {
	size := jsonSize(spec)
	if size <= maxSpecBytes {
		return spec
	}
	root := (*path)(nil).field("spec")
	fields, ok := spec.(map[string]any)
	if !ok {
		faults.add(root, "measures %d bytes as JSON; at most %d are allowed", size, maxSpecBytes)
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
	rest := size
	for _, key := range largestFirst {
		if rest <= maxSpecBytes {
			break
		}
		faults.add(root.field(key), "is %d of the %d bytes that the spec measures as JSON; at most %d are allowed",
			sizes[key], size, maxSpecBytes)
		rest -= sizes[key]
		delete(fields, key)
	}
	return fields
}
