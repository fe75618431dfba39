package displace

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// step returns what the element of a path leads to in a value.
func step(in any, element fieldpath.PathElement) (below any, there bool) {
	if element.FieldName != nil {
		object, _ := in.(map[string]any)
		below, there = object[*element.FieldName]
		return below, there
	}
	list, _ := in.([]any)
	i := slices.IndexFunc(list, func(entry any) bool { return isMeant(entry, element) })
	if i < 0 {
		return nil, false
	}
	return list[i], true
}

// isMeant reports whether an entry of a list has the keys of the element. One that a chart does not
// write has a default.
func isMeant(entry any, element fieldpath.PathElement) bool {
	if element.Key == nil {
		return element.Value != nil && value.Equals(*element.Value, value.NewValueInterface(entry))
	}
	object, isObject := entry.(map[string]any)
	return isObject && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
		has, there := object[key.Name]
		return there && !value.Equals(key.Value, value.NewValueInterface(has))
	})
}

// remove removes a field or an entry of a list.
func remove(in map[string]any, path fieldpath.Path) {
	var parent any = in
	for _, element := range path[:len(path)-1] {
		var there bool
		if parent, there = step(parent, element); !there {
			return
		}
	}
	last := path[len(path)-1]
	if object, ok := parent.(map[string]any); ok && last.FieldName != nil {
		delete(object, *last.FieldName)
	}
	if list, ok := parent.([]any); ok {
		replaceAt(in, path[:len(path)-1], slices.DeleteFunc(list, func(entry any) bool { return isMeant(entry, last) }))
	}
}

// replaceAt puts a list in the place of the one to which the path leads.
func replaceAt(in map[string]any, path fieldpath.Path, list []any) {
	var parent any = in
	for _, element := range path[:len(path)-1] {
		parent, _ = step(parent, element)
	}
	if object, ok := parent.(map[string]any); ok && path[len(path)-1].FieldName != nil {
		object[*path[len(path)-1].FieldName] = list
	}
}
