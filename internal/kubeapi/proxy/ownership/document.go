package ownership

import (
	"maps"
	"slices"
)

// document is the object in the body of a POST, a PUT or a server-side apply.
type document struct {
	object map[string]any
	// creates is true for a POST: there is no live object.
	creates bool
	// yaml is true where the API server reads the body as YAML.
	yaml bool
}

func (d *document) needs(t Target) Needs {
	if d.creates || t.LabelsOnly || t.isOwner(d.object) || d.namesOwner(t) || d.isOfRelease(t) {
		return NeedsNothing
	}
	return NeedsMetadata
}

// namesOwner reports whether the document itself has the link to its owner, so that the live
// object does not matter.
func (d *document) namesOwner(t Target) bool {
	desired, err := member(d.object, "metadata")
	if err != nil {
		return false
	}
	owners, err := references(desired)
	if err != nil {
		return false
	}
	if t.allowsReference() {
		return slices.ContainsFunc(owners, t.isReferenceToOwner)
	}
	annotations, err := annotations(desired)
	return err == nil && t.hasOwnerAnnotations(annotations) && !slices.ContainsFunc(owners, t.isReferenceToOwner)
}

// isOfRelease reports whether an apply makes the object the release's. It then gets the reference
// whatever the live object has.
func (d *document) isOfRelease(t Target) bool {
	desired := metadata(d.object)
	keeps, err := keepsItself(desired)
	return d.yaml && err == nil && !keeps && t.allowsReference() && t.isOfRelease(desired)
}

func (d *document) addOwner(t Target, live map[string]any) ([]byte, error) {
	if t.isOwner(d.object) {
		return nil, nil
	}
	desired, err := member(d.object, "metadata")
	if err != nil {
		return nil, err
	}
	var liveMetadata map[string]any
	switch {
	case live != nil:
		liveMetadata = metadata(live)
	case !d.creates && d.namesOwner(t):
		liveMetadata = maps.Clone(desired) // needs did not ask for the live object.
	}
	changed, err := t.ensure(liveMetadata, desired)
	if err != nil || !changed {
		return nil, err
	}
	d.object["metadata"] = desired
	return encode(d.object, d.yaml)
}

// before returns the JSON patch that has to precede a server-side apply; nil for none. An apply
// cannot remove a reference that another field manager has written, nor renew it without a conflict.
func (d *document) before(t Target, live map[string]any) []byte {
	linked, err := references(metadata(live))
	if err != nil || !d.yaml || d.creates || live == nil || t.isOwner(d.object) {
		return nil
	}
	after, _ := t.renewed(linked)
	patch := renewals(linked, after)
	if keeps, err := keepsItself(metadata(d.object)); err != nil {
		return nil // AddOwner returns the error.
	} else if keeps {
		patch = t.removals(linked)
	}
	if len(patch) == 0 {
		return nil
	}
	body, err := operations{}.withAppended(patch)
	if err != nil {
		return nil
	}
	return body
}
