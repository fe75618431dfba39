package displace

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func isHelms(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// isOthers leaves what is written by a subresource, such as an autoscaler's replicas.
func isOthers(entry *metav1.ManagedFieldsEntry) bool {
	return !isHelms(entry) && entry.Subresource == ""
}

// heldBy returns the fields of the managers that are meant.
func heldBy(object *unstructured.Unstructured, meant func(*metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, entry := range object.GetManagedFields() {
		if set := setOf(&entry); set != nil && entry.APIVersion == object.GetAPIVersion() && meant(&entry) {
			all = all.Union(set)
		}
	}
	return all
}

// unheld returns the fields outside of lists that nobody holds, and of which the chart says nothing. The
// API server's own defaults are such, and a forced apply leaves them: the rollingUpdate of a Deployment stays
// beside the chart's strategy Recreate.
func unheld(live, desired *unstructured.Unstructured) (found []fieldpath.Path) {
	entries := live.GetManagedFields()
	if slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return entry.APIVersion != live.GetAPIVersion() }) {
		return nil // It may hold a field by another path.
	}
	held := heldBy(live, func(*metav1.ManagedFieldsEntry) bool { return true })
	var walk func(fields, said map[string]any, held *fieldpath.Set, at fieldpath.Path)
	walk = func(fields, said map[string]any, held *fieldpath.Set, at fieldpath.Path) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			element := fieldpath.FieldNameElement(name)
			path, below := append(at.Copy(), element), held.WithPrefix(element)
			under, isMap := fields[name].(map[string]any)
			text, isSaid := said[name]
			textBelow, _ := text.(map[string]any)
			switch {
			case !isSaid && !held.Members.Has(element) && below.Empty():
				found = append(found, path)
			case isMap:
				walk(under, textBelow, below, path)
			}
		}
	}
	live, desired = live.DeepCopy(), desired.DeepCopy()
	for _, object := range []*unstructured.Unstructured{live, desired} {
		for _, name := range []string{"metadata", "status", "apiVersion", "kind"} {
			delete(object.Object, name)
		}
	}
	walk(live.Object, desired.Object, held, nil)
	return found
}

// setOf returns the fields of an entry; nil if they cannot be read.
func setOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return set
}

// move returns the managed fields of the object, with those of others that are moved as Helm's; nil
// if Helm has not applied the object.
func move(live *unstructured.Unstructured, moved *fieldpath.Set) (entries []metav1.ManagedFieldsEntry, err error) {
	has := false
	for _, entry := range live.GetManagedFields() {
		set := setOf(&entry)
		switch {
		case set == nil || entry.APIVersion != live.GetAPIVersion() || entry.Subresource != "":
			entries = append(entries, entry)
			continue
		case isHelms(&entry):
			set, has = set.Union(moved), true
		default:
			set = set.Difference(moved)
		}
		if set.Empty() {
			continue
		}
		if err := write(&entry, set); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	if !has {
		return nil, nil
	}
	return entries, nil
}

func write(entry *metav1.ManagedFieldsEntry, set *fieldpath.Set) error {
	text, err := set.ToJSON()
	entry.FieldsV1 = &metav1.FieldsV1{}
	entry.FieldsV1.SetRawBytes(text)
	return err
}
