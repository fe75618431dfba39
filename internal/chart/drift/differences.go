package drift

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/ensign-operator/ensign/internal/chart/fields"
)

// differences returns the fields of which the chart says something and which are not as it says,
// as JSON pointers into the live object, sorted. applied is the live object as it would be with
// what desired says: what differs beside that, such as the time that a webhook writes at each
// update, is no drift.
func differences(desired, live, applied *unstructured.Unstructured) []string {
	said := saidIn(applied)
	if said == nil {
		said = textOf(desired)
	}
	// A field that is the chart's in the live object only is one that the chart has dropped.
	all := said.Union(orNone(saidIn(live)))
	leaves := all.Leaves()
	found := map[string]bool{}
	order := map[string][][2]int{}
	for path := range all.All() {
		if isStatus(path) {
			continue
		}
		was, is := find(live.Object, path), find(applied.Object, path)
		switch {
		case was.there != is.there:
			if was.value == nil && is.value == nil && leaves.Has(path) {
				continue // A null is as good as nothing.
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

func isStatus(path fieldpath.Path) bool {
	return path[0].FieldName != nil && *path[0].FieldName == "status"
}

// inOrder reports whether entries that have the places in two lists are in the same order.
func inOrder(places [][2]int) bool {
	slices.SortFunc(places, func(a, b [2]int) int { return a[0] - b[0] })
	return slices.IsSortedFunc(places, func(a, b [2]int) int { return a[1] - b[1] })
}

// saidIn returns the fields that the object has from an apply by Helm; nil if that is not known.
func saidIn(object *unstructured.Unstructured) *fieldpath.Set {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != fieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		said := &fieldpath.Set{}
		if entry.APIVersion == object.GetAPIVersion() && entry.FieldsV1 != nil && said.FromJSON(entry.FieldsV1.GetRawReader()) == nil {
			return said
		}
	}
	return nil
}

func orNone(set *fieldpath.Set) *fieldpath.Set {
	if set == nil {
		return fieldpath.NewSet()
	}
	return set
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

// place is where a path leads in an object.
type place struct {
	// pointer leads there, or to the first part that is not there.
	pointer fields.Pointer
	there   bool
	value   any
	// index is that of the last entry of a list on the way.
	index int
}

// writeOnly is a field of Secrets that no answer has.
var writeOnly = fieldpath.FieldNameElement("stringData") //nolint:gochecknoglobals // A constant.

// find follows a path of managed fields through an object.
func find(in map[string]any, path fieldpath.Path) place {
	p := place{value: in}
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

// step returns what the element of a path leads to in a value, and its token in a pointer.
func step(in any, element fieldpath.PathElement, index *int) (token string, value any, there bool) {
	if element.FieldName != nil {
		object, _ := in.(map[string]any)
		value, there = object[*element.FieldName]
		return *element.FieldName, value, there
	}
	list, _ := in.([]any)
	i := slices.IndexFunc(list, func(entry any) bool { return isMeant(entry, element) })
	if element.Index != nil && *element.Index < len(list) {
		i = *element.Index
	}
	if i < 0 {
		return nameIn(element), nil, false
	}
	*index = i
	if name := nameIn(element); name != "" {
		return name, list[i], true
	}
	return strconv.Itoa(i), list[i], true
}

// isMeant reports whether an entry of a list has the keys of an element, or is its value.
func isMeant(entry any, element fieldpath.PathElement) bool {
	switch {
	case element.Key != nil:
		object, isObject := entry.(map[string]any)
		return isObject && !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
			return !value.Equals(key.Value, value.NewValueInterface(object[key.Name]))
		})
	case element.Value != nil:
		return value.Equals(*element.Value, value.NewValueInterface(entry))
	}
	return false
}

// nameIn returns the token for an entry that is known by its name alone; "" for others.
func nameIn(element fieldpath.PathElement) string {
	if element.Key == nil || len(*element.Key) != 1 || (*element.Key)[0].Name != "name" {
		return ""
	}
	return "name=" + fmt.Sprint((*element.Key)[0].Value.Unstructured())
}

// missing returns the pointer to what one of the two places lacks, as the other has it.
func missing(was, is place) string {
	lacking, other := was, is
	if was.there {
		lacking, other = is, was
	}
	return other.pointer[:len(lacking.pointer)].String()
}
