package ownership

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// The directives of strategic merge patches that can remove fields.
const (
	directiveKey = "$patch"
	retainKey    = "$retainKeys"
)

// mergePatch is a JSON merge patch or a strategic one.
type mergePatch struct {
	object    map[string]any
	strategic bool
}

func (p *mergePatch) needs(t Target) Needs {
	if p.touches(t) {
		return NeedsMetadata
	}
	return wishOf(t)
}

// touches reports whether the patch could add or remove a link to an owner or a label of the target.
func (p *mergePatch) touches(t Target) bool {
	if hasAnyKey(p.object, directiveKey, retainKey) {
		return true
	}
	value, given := p.object["metadata"]
	metadata, ok := value.(map[string]any)
	if !ok {
		return given
	}
	if hasAnyKey(metadata, directiveKey, retainKey, referencesKey) || t.patchesLabels(metadata) {
		return true
	}
	value, given = metadata[annotationsKey]
	annotations, ok := value.(map[string]any)
	if !ok {
		return given
	}
	for name := range annotations {
		if concernsLink(name) || name == directiveKey || name == retainKey {
			return true
		}
	}
	return false
}

func hasAnyKey(object map[string]any, keys ...string) bool {
	for _, key := range keys {
		if _, ok := object[key]; ok {
			return true
		}
	}
	return false
}

// addOwner applies the patch to the live metadata. If the result needs another link, the patch's
// metadata is replaced by the difference between the live metadata and the corrected result.
func (p *mergePatch) addOwner(t Target, live map[string]any) ([]byte, error) {
	if live == nil {
		return nil, nil // The API server refuses a patch without an object.
	}
	if !p.touches(t) && !t.lacksLink(metadata(live), metadata(p.object)) {
		return p.renew(t, metadata(live))
	}
	if p.strategic && p.object[directiveKey] == "replace" {
		// The rest of the patch replaces the object.
		return (&document{object: p.object}).addOwner(t, live)
	}
	before := map[string]any{"metadata": metadata(live)}
	after, err := p.merge(before)
	if err != nil {
		return nil, nil //nolint:nilerr // The API server refuses such a patch with its own message.
	}
	desired := metadata(after)
	changed, err := t.ensure(metadata(live), desired)
	if err != nil || !changed {
		return nil, err
	}
	patch, err := p.difference(before, map[string]any{"metadata": desired})
	if err != nil {
		return nil, fmt.Errorf("keep the owner in the patch: %w", err)
	}
	original, corrected := metadata(p.object), metadata(patch)
	for _, precondition := range []string{"uid", "resourceVersion"} {
		if value, ok := original[precondition]; ok {
			corrected[precondition] = value
		}
	}
	p.object["metadata"] = corrected
	return encode(p.object, false)
}

// renew adds the references to the owner that are outdated, in the version of today. The patch
// does not touch references.
func (p *mergePatch) renew(t Target, live map[string]any) ([]byte, error) {
	before, err := references(live)
	if err != nil {
		return nil, nil //nolint:nilerr // The API server never returns such an object.
	}
	after, changed := t.renewed(before)
	if keeps, err := keepsItself(live); !changed || keeps || err != nil {
		return nil, nil //nolint:nilerr // The API server never returns such an object.
	}
	desired, err := member(p.object, "metadata")
	if err != nil {
		return nil, err
	}
	if p.strategic { // The list is merged by uid.
		var renewed []any
		for i := range after {
			if t.isOutdated(before[i]) {
				renewed = append(renewed, map[string]any{"uid": string(t.Owner.UID), "apiVersion": t.Owner.GVK.GroupVersion().String()})
			}
		}
		desired[referencesKey] = renewed
	} else {
		desired[referencesKey] = after
		if _, given := desired["resourceVersion"]; !given && live["resourceVersion"] != nil {
			desired["resourceVersion"] = live["resourceVersion"] // The list must not undo changes by other clients.
		}
	}
	p.object["metadata"] = desired
	return encode(p.object, false)
}

// merge returns the metadata that results from the patch.
func (p *mergePatch) merge(before map[string]any) (map[string]any, error) {
	onlyMetadata := map[string]any{}
	for _, key := range []string{"metadata", directiveKey, retainKey} {
		if value, ok := p.object[key]; ok {
			onlyMetadata[key] = value
		}
	}
	return p.combine(before, onlyMetadata, jsonpatch.MergePatch, strategicpatch.StrategicMergePatchUsingLookupPatchMeta)
}

// difference returns the patch, of the same type as p, that leads from before to after.
func (p *mergePatch) difference(before, after map[string]any) (map[string]any, error) {
	return p.combine(before, after, jsonpatch.CreateMergePatch,
		func(before, after []byte, schema strategicpatch.LookupPatchMeta) ([]byte, error) {
			return strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(before, after, schema)
		})
}

// combine calls plain for a JSON merge patch, and strategic for a strategic one.
func (p *mergePatch) combine(a, b map[string]any, plain func(a, b []byte) ([]byte, error), strategic func(a, b []byte, schema strategicpatch.LookupPatchMeta) ([]byte, error)) (map[string]any, error) {
	first, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	second, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	var result []byte
	if p.strategic {
		// Metadata has the same schema in all kinds that support strategic patches.
		schema, err := strategicpatch.NewPatchMetaFromStruct(metav1.PartialObjectMetadata{})
		if err != nil {
			return nil, err
		}
		result, err = strategic(first, second, schema)
		if err != nil {
			return nil, err
		}
		return readJSON(result)
	}
	if result, err = plain(first, second); err != nil {
		return nil, err
	}
	return readJSON(result)
}
