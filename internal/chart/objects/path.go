package objects

import (
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// place is the place in an object of a path of managed fields.
type place struct {
	// pointer leads there, or to the first part that is missing.
	pointer Pointer
	there   bool
	value   any
	// index is the index of the last list entry in the path.
	index int
}

// find follows a path of managed fields through an object.
func find(in map[string]any, path fieldpath.Path) place {
	p := place{value: in, there: true}
	for i, element := range path {
		if i == 0 && in["kind"] == "Secret" && element.Equals(writeOnly) {
			element = fieldpath.FieldNameElement("data") // The API server writes it there.
		}
		var token string
		token, p.value, p.there = step(p.value, element, &p.index)
		p.pointer = append(p.pointer, token)
		if !p.there {
			p.value = nil
			return p
		}
	}
	return p
}

// step returns the part of a value that the element of a path names, and its token in a pointer.
func step(in any, element fieldpath.PathElement, index *int) (token string, below any, there bool) {
	if element.FieldName != nil {
		object, _ := in.(map[string]any)
		below, there = object[*element.FieldName]
		return *element.FieldName, below, there
	}
	list, _ := in.([]any)
	i := entryOf(list, element)
	if i < 0 {
		return nameIn(element), nil, false
	}
	*index = i
	if name := nameIn(element); name != "" {
		return name, list[i], true
	}
	return strconv.Itoa(i), list[i], true
}

// entryOf returns the index of the entry of a list that the element of a path names, or -1. An entry
// that lacks one of the keys matches if no other entry has all of them: a chart may leave out a key that has a
// default.
func entryOf(list []any, element fieldpath.PathElement) int {
	switch {
	case element.Index != nil && *element.Index < len(list):
		return *element.Index
	case element.Value != nil:
		return slices.IndexFunc(list, func(entry any) bool { return value.Equals(*element.Value, value.NewValueInterface(entry)) })
	case element.Key == nil:
		return -1
	}
	matches := func(lacking bool) func(any) bool {
		return func(entry any) bool {
			object, isObject := entry.(map[string]any)
			return isObject && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
				has, there := object[key.Name]
				return (there || !lacking) && !value.Equals(key.Value, value.NewValueInterface(has))
			})
		}
	}
	if i := slices.IndexFunc(list, matches(false)); i >= 0 {
		return i
	}
	return slices.IndexFunc(list, matches(true))
}

// nameIn returns the token for an entry whose only key is its name; "" for other elements.
func nameIn(element fieldpath.PathElement) string {
	if element.Key == nil || len(*element.Key) != 1 || (*element.Key)[0].Name != "name" {
		return ""
	}
	return "name=" + fmt.Sprint((*element.Key)[0].Value.Unstructured())
}

// remove removes a field or an entry of a list.
func remove(in map[string]any, path fieldpath.Path) {
	holder, last := find(in, path[:len(path)-1]).value, path[len(path)-1]
	if object, ok := holder.(map[string]any); ok && last.FieldName != nil {
		delete(object, *last.FieldName)
	}
	list, ok := holder.([]any)
	if !ok || len(path) < 2 || path[len(path)-2].FieldName == nil {
		return
	}
	if i := entryOf(list, last); i >= 0 {
		object, _ := find(in, path[:len(path)-2]).value.(map[string]any)
		object[*path[len(path)-2].FieldName] = slices.Delete(list, i, i+1)
	}
}

// extract returns the part of a value that is in the set, nil if there is none. all has the fields of all
// managers: a value without a managed part is managed as a whole.
func extract(whole any, set, all *fieldpath.Set) any {
	part := func(element fieldpath.PathElement, inner any) any {
		below, has := set.Children.Get(element)
		parts, hasParts := all.Children.Get(element)
		switch {
		case has:
			return extract(inner, below, parts)
		case hasParts || !set.Members.Has(element):
			return nil
		}
		return inner
	}
	switch whole := whole.(type) {
	case map[string]any:
		found := map[string]any{}
		for field, inner := range whole {
			if kept := part(fieldpath.FieldNameElement(field), inner); kept != nil {
				found[field] = kept
			}
		}
		if len(found) > 0 {
			return found
		}
	case []any:
		elements := map[int]fieldpath.PathElement{}
		note := func(element fieldpath.PathElement) {
			if i := entryOf(whole, element); i >= 0 {
				elements[i] = element
			}
		}
		set.Members.Iterate(note)
		set.Children.Iterate(note)
		var found []any
		for i, item := range whole {
			element, ok := elements[i]
			if !ok {
				continue
			}
			kept := part(element, item)
			if element.Key != nil {
				kept = withKey(kept, item, element)
			}
			if kept != nil {
				found = append(found, kept)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// withKey returns the held part of an entry with the key that names it.
func withKey(kept, entry any, element fieldpath.PathElement) any {
	fields, _ := kept.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	whole, _ := entry.(map[string]any)
	for _, field := range *element.Key {
		fields[field.Name] = whole[field.Name]
	}
	return fields
}
