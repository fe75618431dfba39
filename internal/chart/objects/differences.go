package objects

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// differences returns the fields that the chart has and whose live values differ, as JSON pointers
// into the live object, sorted. applied is the live object as it would be with desired applied:
// other differences, such as the time that a webhook writes at each update, do not count. With
// byPatch the managed fields do not show which fields are the chart's.
func differences(desired, live, applied *unstructured.Unstructured, byPatch bool) []string {
	fields := chartFields(desired, live, applied, byPatch)
	leaves := fields.Leaves()
	found := map[string]bool{}
	order := map[string][][2]int{}
	for path := range fields.All() {
		if isStatus(path) {
			continue
		}
		was, is := find(live.Object, path), find(applied.Object, path)
		switch {
		case was.there != is.there:
			if was.value == nil && is.value == nil && leaves.Has(path) {
				continue // A null counts as missing.
			}
			found[missing(was, is)] = true
		case was.there && leaves.Has(path) && !equality.Semantic.DeepEqual(was.value, is.value):
			found[was.pointer.String()] = true
		case was.there && path[len(path)-1].Key != nil:
			list := was.pointer[:len(was.pointer)-1].String()
			order[list] = append(order[list], [2]int{was.index, is.index})
		}
	}
	for list, places := range order {
		if !inOrder(places) {
			found[list] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// chartFields returns the fields that the chart has or had.
func chartFields(desired, live, applied *unstructured.Unstructured, byPatch bool) *fieldpath.Set {
	fields := fieldsOf(applied, isApplied)
	if byPatch || fields.Empty() {
		return textOf(desired)
	}
	return fields.Union(fieldsOf(live, isApplied)) // The chart has dropped fields that only the live object has.
}

func isStatus(path fieldpath.Path) bool {
	return path[0].FieldName != nil && *path[0].FieldName == "status"
}

// inOrder reports whether entries that have the places in two lists are in the same order.
func inOrder(places [][2]int) bool {
	slices.SortFunc(places, func(a, b [2]int) int { return a[0] - b[0] })
	return slices.IsSortedFunc(places, func(a, b [2]int) int { return a[1] - b[1] })
}

// textOf returns the fields of the chart's text. Lists count as a whole: their keys are not known.
func textOf(desired *unstructured.Unstructured) *fieldpath.Set {
	object, err := typed.DeducedParseableType.FromUnstructured(desired.Object)
	if err != nil {
		return fieldpath.NewSet()
	}
	set, err := object.ToFieldSet()
	if err != nil {
		return fieldpath.NewSet()
	}
	return set
}

// missing returns the pointer to the part that only one of the two places has.
func missing(was, is place) string {
	lacking, other := was, is
	if was.there {
		lacking, other = is, was
	}
	return other.pointer[:len(lacking.pointer)].String()
}
