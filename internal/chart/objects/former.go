package objects

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// formerManagers returns the managers that have written Helm's annotation, and so the whole object: an
// operator has the name of its program, for example helm-operator or manager, and Helm 3 is helm.
// Managers that only changed some fields, such as an autoscaler, have not written that annotation and
// keep their fields.
func formerManagers(entries []metav1.ManagedFieldsEntry) sets.Set[string] {
	managers := sets.New[string]()
	annotation := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", releaseName))
	for _, entry := range csaupgrade.FindFieldsOwners(entries, metav1.ManagedFieldsOperationUpdate, annotation) {
		if entry.Subresource == "" && entry.Manager != patchManager {
			managers.Insert(entry.Manager)
		}
	}
	return managers
}

// isBare reports whether a manifest only has the identity of an object, as after a take-over.
func isBare(object *unstructured.Unstructured) bool {
	for field := range object.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return false
		}
	}
	return len(object.GetLabels()) == 0 && len(object.GetAnnotations()) == 0
}

// held returns the live object with only the fields that the release and its former managers hold.
// It replaces the release's object where its manifest is not known.
func held(live *unstructured.Unstructured) *unstructured.Unstructured {
	managers := formerManagers(live.GetManagedFields())
	theirs, all := fieldpath.NewSet(), fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() { // The entry may have any version: the former operator may have used another.
		set := setOf(&entry)
		if set == nil {
			continue
		}
		all = all.Union(set)
		if isOurs(&entry) || entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == "" && managers.Has(entry.Manager) {
			theirs = theirs.Union(set)
		}
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
	return object
}
