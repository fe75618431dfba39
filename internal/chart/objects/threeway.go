package objects

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// empty is the patch without changes.
const empty = "{}"

// threeWayPatch returns the patch that makes the live object one of the chart, as Helm 3 and
// operator-sdk's Helm operator do. It removes fields that the chart no longer has, sets those that
// it has, and leaves those that other managers have added. original is the chart's former object,
// and target the present one. Kinds that the client knows have a strategic merge patch, all others
// a JSON merge patch.
//
// A list with a duplicate key, such as two variables of one name, cannot be merged by its keys: the
// patch would change the first of them, or remove both. Such a list is replaced as a whole.
func threeWayPatch(original, target, live *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	lists, texts, err := listsAndTexts(original, target, live)
	switch {
	case err != nil:
		return nil, "", err
	case lists == nil:
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[2])
		return patch, types.MergePatchType, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(texts[0], texts[1], texts[2], lists, true)
	if err != nil {
		return nil, "", err
	}
	return withWholeLists(patch, original, target, live, lists)
}

// listsAndTexts returns which lists of the objects' kind can be merged by keys, nil for a kind that the client does not
// know, and the objects as JSON.
func listsAndTexts(objects ...*unstructured.Unstructured) (lists strategicpatch.LookupPatchMeta, texts [][]byte, err error) {
	for _, object := range objects {
		text, err := json.Marshal(object.Object)
		if err != nil {
			return nil, nil, err
		}
		texts = append(texts, text)
	}
	known, err := scheme.Scheme.New(objects[len(objects)-1].GroupVersionKind())
	if err != nil {
		return nil, texts, nil //nolint:nilerr // See above.
	}
	lists, err = strategicpatch.NewPatchMetaFromStruct(known)
	return lists, texts, err
}

// withWholeLists makes a strategic merge patch replace the lists that cannot be merged by their keys.
func withWholeLists(text []byte, original, target, live *unstructured.Unstructured, lists strategicpatch.LookupPatchMeta) ([]byte, types.PatchType, error) {
	patch := map[string]any{}
	err := json.Unmarshal(text, &patch)
	if err == nil && replaceLists(patch, original.Object, target.Object, live.Object, lists) {
		text, err = json.Marshal(patch)
	}
	return text, types.StrategicMergePatchType, err
}

// merge returns the live object with that patch applied; nil for a kind that the client does not know, because
// it cannot tell which entries of lists are the same.
func merge(original, target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	lists, texts, err := listsAndTexts(live)
	if lists == nil || err != nil {
		return nil, err
	}
	patch, _, err := threeWayPatch(original, target, live)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(texts[0], patch, lists)
	if err != nil {
		return nil, err
	}
	merged := &unstructured.Unstructured{}
	return merged, merged.UnmarshalJSON(text)
}

// patchTo returns the patch from the live object to the wanted one, of a kind that the client knows.
func patchTo(live, wanted *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	lists, texts, err := listsAndTexts(live, wanted)
	if err != nil {
		return nil, "", err
	}
	text, err := strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(texts[0], texts[1], lists)
	if err != nil {
		return nil, "", err
	}
	return withWholeLists(text, live, wanted, live, lists)
}

// withUID adds the UID of the object to its patch: the API server refuses it for a successor of the same name.
func withUID(patch []byte, live *unstructured.Unstructured) ([]byte, error) {
	fields := map[string]any{}
	err := json.Unmarshal(patch, &fields)
	if err == nil {
		err = unstructured.SetNestedField(fields, string(live.GetUID()), "metadata", "uid")
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// replaceLists makes the patch replace the changed lists with a duplicate key in one of the three
// objects. It reports whether there are any.
func replaceLists(patch, original, target, live map[string]any, known strategicpatch.LookupPatchMeta) (replaced bool) {
	for field, value := range patch {
		switch changed := value.(type) {
		case map[string]any:
			if below, _, err := known.LookupPatchMetadataForStruct(field); err == nil {
				replaced = replaceLists(changed, mapAt(original, field), mapAt(target, field), mapAt(live, field), below) || replaced
			}
		case []any:
			below, meta, err := known.LookupPatchMetadataForSlice(field)
			key := meta.GetPatchMergeKey()
			if err != nil || key == "" || !slices.Contains(meta.GetPatchStrategies(), "merge") {
				continue
			}
			former, wanted, there := itemsAt(original, field), itemsAt(target, field), itemsAt(live, field)
			if twice(former, key) || twice(wanted, key) || twice(there, key) {
				patch[field] = append([]any{map[string]any{"$patch": "replace"}}, wanted...)
				delete(patch, "$setElementOrder/"+field)
				replaced = true
				continue
			}
			for _, item := range changed {
				if one, ok := item.(map[string]any); ok {
					replaced = replaceLists(one, itemWith(former, key, one[key]), itemWith(wanted, key, one[key]), itemWith(there, key, one[key]), below) || replaced
				}
			}
		}
	}
	return replaced
}

func mapAt(object map[string]any, field string) map[string]any {
	value, _ := object[field].(map[string]any)
	return value
}

func itemsAt(object map[string]any, field string) []any {
	value, _ := object[field].([]any)
	return value
}

// twice reports whether two items of the list have the same key.
func twice(items []any, key string) bool {
	seen := map[any]bool{}
	for _, item := range items {
		one, ok := item.(map[string]any)
		if !ok {
			continue
		}
		value := fmt.Sprint(one[key])
		if seen[value] {
			return true
		}
		seen[value] = true
	}
	return false
}

// itemWith returns the item of the list with the key; nil if there is none.
func itemWith(items []any, key string, value any) map[string]any {
	for _, item := range items {
		if one, ok := item.(map[string]any); ok && fmt.Sprint(one[key]) == fmt.Sprint(value) {
			return one
		}
	}
	return nil
}
