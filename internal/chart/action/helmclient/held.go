package helmclient

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// said returns what the chart said of a live object before: the original, or, where that says nothing,
// what former managers hold of the object. The original of what was found or adopted is the target.
func said(original, target *resource.Info, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if original == nil || original.Object == target.Object {
		return held(live)
	}
	before, err := objectOf(original.Object)
	if err == nil && isBare(before) {
		return held(live)
	}
	return before, err
}

// isBare reports whether a manifest says no more of an object than which it is, as that of a release
// that was taken over.
func isBare(object *unstructured.Unstructured) bool {
	for field := range object.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return false
		}
	}
	return len(object.GetLabels()) == 0 && len(object.GetAnnotations()) == 0
}

// held returns the live object with no more than what its former managers hold: what the release has
// made of it, where nobody knows its manifest.
func held(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	managers := formerManagers(live.GetManagedFields())
	theirs, err := setOf(live, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && managers.Has(entry.Manager)
	})
	if err != nil {
		return nil, err
	}
	all, err := setOf(live, func(metav1.ManagedFieldsEntry) bool { return true })
	if err != nil {
		return nil, err
	}
	found, _ := extract(live.Object, theirs, all).(map[string]any)
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, found)
	delete(object.Object, "metadata")
	object.SetGroupVersionKind(live.GroupVersionKind())
	object.SetName(live.GetName())
	object.SetNamespace(live.GetNamespace())
	for _, field := range []string{"labels", "annotations"} { // The API proxy sets the rest.
		if theirs, has, _ := unstructured.NestedMap(found, "metadata", field); has {
			_ = unstructured.SetNestedMap(object.Object, theirs, "metadata", field)
		}
	}
	return object, nil
}

// setOf returns the fields of those entries together.
func setOf(live *unstructured.Unstructured, which func(metav1.ManagedFieldsEntry) bool) (*fieldpath.Set, error) {
	all := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil || !which(entry) {
			continue
		}
		one := &fieldpath.Set{}
		if err := one.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read the fields of the manager %q: %w", entry.Manager, err)
		}
		all = all.Union(one)
	}
	return all, nil
}

// extract returns the part of a value that is in the set, nil if there is none. all says which values
// have parts: a value of which nobody holds a part is held as a whole.
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
		var found []any
		for _, item := range whole {
			element, ok := elementOf(item, set)
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

// elementOf returns the element of the set that is an item of a list.
func elementOf(item any, set *fieldpath.Set) (found fieldpath.PathElement, ok bool) {
	look := func(element fieldpath.PathElement) {
		switch {
		case element.Value != nil && same(*element.Value, item):
			found, ok = element, true
		case element.Key != nil:
			fields, isMap := item.(map[string]any)
			for _, field := range *element.Key {
				isMap = isMap && same(field.Value, fields[field.Name])
			}
			if isMap {
				found, ok = element, true
			}
		}
	}
	set.Members.Iterate(look)
	set.Children.Iterate(look)
	return found, ok
}

// same compares by value: a number in the set may be whole where that of the object is not.
func same(a value.Value, b any) bool { return value.Equals(a, value.NewValueInterface(b)) }

// withKey returns what is held of an item with its key, which names it.
func withKey(kept, item any, element fieldpath.PathElement) any {
	fields, _ := kept.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	whole, _ := item.(map[string]any)
	for _, field := range *element.Key {
		fields[field.Name] = whole[field.Name]
	}
	return fields
}
