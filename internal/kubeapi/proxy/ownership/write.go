package ownership

import (
	"bytes"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Needs is what must be known of the live object before a write is sent.
type Needs int

// In the order of what they cost.
const (
	NeedsNothing Needs = iota
	// NeedsMetadata is for its metadata.
	NeedsMetadata
	// NeedsObject is for all of it.
	NeedsObject
)

// Write is the body of a request that writes an object.
type Write struct {
	body        []byte
	contentType string
	format      format
}

// format is one of the formats in which the API takes writes.
type format interface {
	needs(t Target) Needs
	// addOwner returns the body that carries the owner, or nil where the one that came does.
	// live is nil where there is no such object.
	addOwner(t Target, live map[string]any) ([]byte, error)
}

// UnreadableError tells of a format in which an owner can't be seen.
type UnreadableError struct{ ContentType string }

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the API proxy adds an owner to what a run writes and reads JSON and YAML for that, not %q", e.ContentType)
}

// Verbs of requests that write one object, as RequestInfo names them.
const (
	create  = "create"
	replace = "update"
	patch   = "patch"
)

// Parse reads the body of a request with this verb. What is no way to write an object
// passes as it is, so that the API server answers it. The error is an UnreadableError, or
// tells what is wrong with the body.
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
		return other{}, nil
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
		return other{}, nil
	}
}

// other is no way to write an object.
type other struct{}

func (other) needs(Target) Needs { return NeedsNothing }

func (other) addOwner(Target, map[string]any) ([]byte, error) { return nil, nil }

// mediaType reads a Content-Type as the API server does for patches.
func mediaType(contentType string) string {
	head, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(head))
}

// Needs tells what AddOwner must know of the live object.
func (w *Write) Needs(t Target) Needs { return w.format.needs(t) }

// AddOwner returns the body to send and its content type. live is what Needs asked for: the
// live object, with its metadata at least, or nil where there is none.
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

// metadata returns a live object's metadata; never nil, since it is there.
func metadata(live map[string]any) map[string]any {
	if m, ok := live["metadata"].(map[string]any); ok {
		return m
	}
	return map[string]any{}
}
