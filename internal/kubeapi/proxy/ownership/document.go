package ownership

import "slices"

// document is the whole object as the client wants it: of a POST, a PUT or a
// server-side apply.
type document struct {
	object map[string]any
	// creates is true where there can be no object yet.
	creates bool
	// yaml is true where the API server will read YAML.
	yaml bool
}

func (d *document) needs(t Target) Needs {
	if d.creates || t.isOwner(d.object) || d.marked(t) {
		return NeedsNothing
	}
	return NeedsMetadata
}

// marked reports whether the document carries the mark that there should be, so that it
// does not matter whether the live object does.
func (d *document) marked(t Target) bool {
	desired, err := member(d.object, "metadata")
	if err != nil {
		return false
	}
	own, err := references(desired)
	if err != nil {
		return false
	}
	if t.legal() {
		return slices.ContainsFunc(own, t.isOwn)
	}
	notes, err := annotations(desired)
	return err == nil && t.annotated(notes) && !slices.ContainsFunc(own, t.isOwn)
}

func (d *document) addOwner(t Target, live map[string]any) ([]byte, error) {
	if t.isOwner(d.object) {
		return nil, nil
	}
	desired, err := member(d.object, "metadata")
	if err != nil {
		return nil, err
	}
	var standing map[string]any
	switch {
	case live != nil:
		standing = metadata(live)
	case d.marked(t):
		return nil, nil // Nobody looked.
	}
	changed, err := t.settle(standing, desired)
	if err != nil || !changed {
		return nil, err
	}
	d.object["metadata"] = desired
	return encode(d.object, d.yaml)
}
