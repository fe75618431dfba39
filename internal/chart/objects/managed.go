package objects

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The names under which the fields of a release's objects are managed.
const (
	// FieldManager applies objects, as Helm does.
	FieldManager = "helm"
	// patchManager writes objects that server-side apply refuses. It has another name because Helm 3
	// has updated objects as "helm" too.
	patchManager = "helm-patch"
)

// isApplied reports whether the entry has the fields that were applied for the release.
func isApplied(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// isPatched reports whether the entry has the fields that were patched because server-side apply
// was refused.
func isPatched(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == patchManager && entry.Subresource == ""
}

// isOurs reports whether the entry has fields of the release.
func isOurs(entry *metav1.ManagedFieldsEntry) bool {
	return (entry.Manager == FieldManager || entry.Manager == patchManager) && entry.Subresource == ""
}

// isOthers leaves out fields that are written by a subresource, such as an autoscaler's replicas.
func isOthers(entry *metav1.ManagedFieldsEntry) bool {
	return !isOurs(entry) && entry.Subresource == ""
}

// fieldsOf returns the fields of the entries that match, in the version of the object.
func fieldsOf(object *unstructured.Unstructured, meant func(*metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, entry := range object.GetManagedFields() {
		if set := setOf(&entry); set != nil && entry.APIVersion == object.GetAPIVersion() && meant(&entry) {
			all = all.Union(set)
		}
	}
	return all
}

// setOf returns the fields of an entry; nil if they cannot be read.
func setOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return set
}

// unheld returns the fields outside of lists that neither a manager nor the chart has. These are defaults of
// the API server, and a forced apply leaves them: the rollingUpdate of a Deployment stays beside the chart's
// strategy Recreate.
func unheld(live, desired *unstructured.Unstructured) (found []fieldpath.Path) {
	entries := live.GetManagedFields()
	if slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return entry.APIVersion != live.GetAPIVersion() }) {
		return nil // It may hold a field by another path.
	}
	held := fieldsOf(live, func(*metav1.ManagedFieldsEntry) bool { return true })
	var walk func(fields, desired map[string]any, held *fieldpath.Set, at fieldpath.Path)
	walk = func(fields, desired map[string]any, held *fieldpath.Set, at fieldpath.Path) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			element := fieldpath.FieldNameElement(name)
			path, below := append(at.Copy(), element), held.WithPrefix(element)
			under, isMap := fields[name].(map[string]any)
			text, isDesired := desired[name]
			textBelow, _ := text.(map[string]any)
			switch {
			case len(at) == 0 && isIdentity(name):
			case !isDesired && !held.Members.Has(element) && below.Empty():
				found = append(found, path)
			case isMap:
				walk(under, textBelow, below, path)
			}
		}
	}
	walk(live.Object, desired.Object, held, nil)
	return found
}

// isIdentity reports whether a field of an object is not part of its content.
func isIdentity(field string) bool {
	return slices.Contains([]string{"metadata", "status", "apiVersion", "kind"}, field)
}

// giveFields returns the managed fields of the object with the moved ones as applied ones.
func giveFields(live *unstructured.Unstructured, moved *fieldpath.Set) (entries []metav1.ManagedFieldsEntry, err error) {
	has := false
	for _, entry := range live.GetManagedFields() {
		set := setOf(&entry)
		switch {
		case set == nil || entry.APIVersion != live.GetAPIVersion() || entry.Subresource != "":
			entries = append(entries, entry)
			continue
		case isApplied(&entry):
			set, has = set.Union(moved), true
		default:
			set = set.Difference(moved)
		}
		if set.Empty() {
			continue
		}
		if err := writeFields(&entry, set); err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	if has {
		return entries, nil
	}
	entry := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: live.GetAPIVersion()}
	err = writeFields(&entry, moved)
	return append(entries, entry), err
}

// writeFields sets the fields of an entry.
func writeFields(entry *metav1.ManagedFieldsEntry, set *fieldpath.Set) error {
	text, err := set.ToJSON()
	entry.FieldsType, entry.FieldsV1 = "FieldsV1", &metav1.FieldsV1{}
	entry.FieldsV1.SetRawBytes(text)
	return err
}

// entriesPatch is a JSON patch that replaces the managed fields of the object as it was read, and changes
// nothing else.
func entriesPatch(live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) ([]byte, error) {
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}
