package ownership

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Needs is the part of the live object that AddOwner needs.
type Needs int

// The values are in the order of their cost.
const (
	NeedsNothing Needs = iota
	// WantsMetadata is for a write that leaves the link as it is: a reference in an outdated version
	// is renewed if the metadata can be read. AddOwner does without.
	WantsMetadata
	NeedsMetadata
	NeedsObject // the whole object
)

// wishOf returns the needs of a patch that leaves the link as it is.
func wishOf(t Target) Needs {
	if t.LabelsOnly || !t.allowsReference() {
		return NeedsNothing // Annotations name no version.
	}
	return WantsMetadata
}

// Write is the body of a request that writes an object.
type Write struct {
	body        []byte
	contentType string
	format      format
}

// format is one of the formats in which the API takes writes.
type format interface {
	needs(t Target) Needs
	// addOwner returns the changed body, or nil where the body needs no change. live is nil where
	// there is no such object.
	addOwner(t Target, live map[string]any) ([]byte, error)
}

// UnreadableError is the error for a format that the package cannot read.
type UnreadableError struct{ ContentType string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the API proxy adds an owner to what a run writes and reads JSON and YAML for that, not %q", e.ContentType)
}

// The verbs of RequestInfo for requests that write one object.
const (
	create  = "create"
	replace = "update"
	patch   = "patch"
)

// Parse reads the body of a request with this verb. A body in a format that the API does not have
// is kept as it is, and the API server will refuse it. The error is an UnreadableError, or says
// what is wrong with the body.
func Parse(verb, contentType string, body []byte) (*Write, error) {
	format, err := parse(verb, contentType, body)
	if err != nil {
		return nil, err
	}
	return &Write{body: body, contentType: contentType, format: format}, nil
}

func parse(verb, contentType string, body []byte) (format, error) {
	mediaType := mediaType(contentType)
	switch {
	case verb == create, verb == replace:
		object, err := readDocument(mediaType, body)
		if err != nil {
			return nil, err
		}
		return &document{object: object, creates: verb == create}, nil
	case verb != patch:
		return passThrough{}, nil
	}
	switch types.PatchType(mediaType) {
	case types.ApplyYAMLPatchType:
		object, err := readYAML(body)
		if err != nil {
			return nil, err
		}
		return &document{object: object, yaml: true}, nil
	case types.ApplyCBORPatchType:
		return nil, &UnreadableError{mediaType}
	case types.MergePatchType, types.StrategicMergePatchType:
		object, err := readJSON(body)
		if err != nil {
			return nil, err
		}
		return &mergePatch{object: object, strategic: mediaType == string(types.StrategicMergePatchType)}, nil
	case types.JSONPatchType:
		return readOperations(body)
	default:
		return passThrough{}, nil
	}
}

// passThrough is a body that is never changed.
type passThrough struct{}

func (passThrough) needs(Target) Needs { return NeedsNothing }

func (passThrough) addOwner(Target, map[string]any) ([]byte, error) { return nil, nil }

// mediaType returns the media type of a Content-Type, by the API server's rule for patches.
func mediaType(contentType string) string {
	head, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(head))
}

// Name returns the name of an object in the body; "" if the body does not have the whole object.
func (w *Write) Name() string {
	if whole, ok := w.format.(*document); ok {
		name, _ := metadata(whole.object)["name"].(string)
		return name
	}
	return ""
}

// Duplicates returns an error if the body has a key more than once. AddOwner drops all but the last,
// so that the API server, which refuses them where it is to be strict, cannot see them.
func (w *Write) Duplicates() error {
	mediaType := mediaType(w.contentType)
	if _, kept := w.format.(passThrough); kept || mediaType == runtime.ContentTypeProtobuf {
		return nil
	}
	return duplicates(mediaType, w.body)
}

// Needs returns the part of the live object that AddOwner needs.
func (w *Write) Needs(t Target) Needs { return w.format.needs(t) }

// Before returns a JSON patch that has to precede the write; nil for most. live is as for AddOwner.
func (w *Write) Before(t Target, live map[string]any) []byte {
	if whole, ok := w.format.(*document); ok && mediaType(w.contentType) == string(types.ApplyYAMLPatchType) {
		return whole.before(t, live)
	}
	return nil
}

// AddOwner returns the body to forward and its content type. live is the live object, with at least
// the parts that Needs asks for. It is nil where there is no live object, and where Needs asks for
// nothing or the object cannot be read.
func (w *Write) AddOwner(t Target, live map[string]any) (body []byte, contentType string, err error) {
	changed, err := w.format.addOwner(t, live)
	if err != nil {
		return nil, "", fmt.Errorf("make %s the owner: %w", t.Owner, err)
	}
	if changed == nil || bytes.Equal(changed, w.body) {
		return w.body, w.contentType, nil
	}
	if _, whole := w.format.(*document); whole && mediaType(w.contentType) != string(types.ApplyYAMLPatchType) {
		return changed, "application/json", nil
	}
	return changed, w.contentType, nil
}

// metadata returns an object's metadata; never nil.
func metadata(live map[string]any) map[string]any {
	if m, ok := live["metadata"].(map[string]any); ok {
		return m
	}
	return map[string]any{}
}
