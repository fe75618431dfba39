package ownership

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// renewed returns the references with the API version of the owner that the manager watches, in
// each reference to the owner, and reports whether that is a change. The garbage collector cannot
// find an owner in a version that is not served any more: the object would outlive it.
func (t Target) renewed(references []any) (after []any, changed bool) {
	after = slices.Clone(references)
	for i, reference := range after {
		if t.isOutdated(reference) {
			renewed := maps.Clone(reference.(map[string]any)) //nolint:forcetypeassert // It is one to the owner.
			renewed["apiVersion"] = t.Owner.GVK.GroupVersion().String()
			after[i], changed = renewed, true
		}
	}
	return after, changed
}

// isOutdated reports whether the reference is to the owner, in another API version of its kind.
func (t Target) isOutdated(reference any) bool {
	r, ok := reference.(map[string]any)
	version, _ := r["apiVersion"].(string)
	kind, _ := r["kind"].(string)
	return ok && t.isReferenceToOwner(reference) && version != t.Owner.GVK.GroupVersion().String() &&
		schema.FromAPIVersionAndKind(version, kind).GroupKind() == t.Owner.GVK.GroupKind()
}

// renewals returns the operations that renew references in their places. If another
// client changes the list first, the API server refuses the patch.
func renewals(before, after []any) []map[string]any {
	var all []map[string]any
	for i := range after {
		old, _ := before[i].(map[string]any)
		renewed, _ := after[i].(map[string]any)
		if old["apiVersion"] == renewed["apiVersion"] {
			continue
		}
		path := fmt.Sprintf("/metadata/%s/%d/", referencesKey, i)
		all = append(all,
			map[string]any{"op": "test", "path": path + "uid", "value": renewed["uid"]},
			map[string]any{"op": "replace", "path": path + "apiVersion", "value": renewed["apiVersion"]})
	}
	return all
}

// removals returns the operations that remove the references to the owner.
func (t Target) removals(before []any) []map[string]any {
	var all []map[string]any
	for i := range slices.Backward(before) { // The places before one stay.
		if t.isReferenceToOwner(before[i]) {
			path := fmt.Sprintf("/metadata/%s/%d", referencesKey, i)
			all = append(all,
				map[string]any{"op": "test", "path": path + "/uid", "value": string(t.Owner.UID)},
				map[string]any{"op": "remove", "path": path})
		}
	}
	return all
}
