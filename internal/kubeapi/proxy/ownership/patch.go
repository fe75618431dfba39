package ownership

import (
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// The directives of strategic merge patches that can take members away.
const (
	directiveKey = "$patch"
	retainKey    = "$retainKeys"
)

// mergePatch is a JSON merge patch or a strategic one.
type mergePatch struct {
	object    map[string]any
	strategic bool
}

func (p *mergePatch) needs(Target) Needs {
	if p.touchesMark() {
		return NeedsMetadata
	}
	return NeedsNothing
}

// touchesMark reports whether the patch could take a mark away, or bring one.
func (p *mergePatch) touchesMark() bool {
	if has(p.object, directiveKey, retainKey) {
		return true
	}
	value, given := p.object["metadata"]
	metadata, ok := value.(map[string]any)
	if !ok {
		return given
	}
	if has(metadata, directiveKey, retainKey, referencesKey) {
		return true
	}
	value, given = metadata[annotationsKey]
	annotations, ok := value.(map[string]any)
	if !ok {
		return given
	}
	for name := range annotations {
		if isMark(name) || name == directiveKey || name == retainKey {
			return true
		}
	}
	return false
}

func has(object map[string]any, keys ...string) bool {
	for _, key := range keys {
		if _, ok := object[key]; ok {
			return true
		}
	}
	return false
}

// addOwner applies the patch to the live metadata. Where that would lose the mark, the
// patch's part for metadata becomes the difference between what is and what it comes
// to with the mark.
func (p *mergePatch) addOwner(t Target, live map[string]any) ([]byte, error) {
	if live == nil || !p.touchesMark() {
		return nil, nil // There is nothing to patch, which the API server says.
	}
	if p.strategic && p.object[directiveKey] == "replace" {
		// The object is replaced by what else the patch says.
		return (&document{object: p.object}).addOwner(t, live)
	}
	standing := map[string]any{"metadata": metadata(live)}
	desired, err := p.merge(standing)
	if err != nil {
		return nil, nil //nolint:nilerr // What can't be merged here the API server refuses, in its own words.
	}
	wanted := metadata(desired)
	changed, err := t.settle(metadata(live), wanted)
	if err != nil || !changed {
		return nil, err
	}
	part, err := p.difference(standing, map[string]any{"metadata": wanted})
	if err != nil {
		return nil, fmt.Errorf("keep the owner in the patch: %w", err)
	}
	p.object["metadata"] = p.withPreconditions(metadata(part))
	return encode(p.object, false)
}

// withPreconditions adds what the patch makes its own success depend on.
func (p *mergePatch) withPreconditions(part map[string]any) map[string]any {
	given := metadata(p.object)
	for _, key := range []string{"uid", "resourceVersion"} {
		if value, ok := given[key]; ok {
			part[key] = value
		}
	}
	return part
}

// onlyMetadata is the part of the patch that concerns metadata.
func (p *mergePatch) onlyMetadata() map[string]any {
	part := map[string]any{}
	for _, key := range []string{"metadata", directiveKey, retainKey} {
		if value, ok := p.object[key]; ok {
			part[key] = value
		}
	}
	return part
}

func (p *mergePatch) merge(standing map[string]any) (map[string]any, error) {
	return p.through(standing, p.onlyMetadata(), jsonpatch.MergePatch, strategicpatch.StrategicMergePatchUsingLookupPatchMeta)
}

func (p *mergePatch) difference(standing, wanted map[string]any) (map[string]any, error) {
	return p.through(standing, wanted, jsonpatch.CreateMergePatch,
		func(standing, wanted []byte, schema strategicpatch.LookupPatchMeta) ([]byte, error) {
			return strategicpatch.CreateTwoWayMergePatchUsingLookupPatchMeta(standing, wanted, schema)
		})
}

// through gives both values to the one of the functions that fits the patch.
func (p *mergePatch) through(a, b map[string]any, plain func(a, b []byte) ([]byte, error), strategic func(a, b []byte, schema strategicpatch.LookupPatchMeta) ([]byte, error)) (map[string]any, error) {
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
		// Metadata is the same in all kinds that know strategic patches.
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
