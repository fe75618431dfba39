package ownership

import (
	"fmt"
	"maps"
	"slices"

	libhandler "github.com/operator-framework/operator-lib/handler"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// The members of metadata that tell the owner.
const (
	referencesKey  = "ownerReferences"
	annotationsKey = "annotations"
)

// Target is the object that a run writes, and the owner for whom it does.
type Target struct {
	Owner access.Owner
	// Namespace is "" for what is cluster-scoped.
	Namespace string
	// Name is "" where the request's address does not tell it.
	Name string
}

// legal reports whether the garbage collector takes a reference to the owner there.
func (t Target) legal() bool {
	return t.Owner.Namespace == "" || t.Owner.Namespace == t.Namespace
}

// settle gives the metadata that a write comes to the mark that it must have, and
// reports whether that changed it. live is the metadata of the object as it stands; nil
// where the write makes it. desired is changed in place.
func (t Target) settle(live, desired map[string]any) (bool, error) {
	before, err := references(desired)
	if err != nil {
		return false, err
	}
	after := t.settleReferences(live, before)
	stripped := len(after) < len(before)
	switch {
	case len(after) == len(before):
	case len(after) == 0:
		delete(desired, referencesKey)
	default:
		desired[referencesKey] = after
	}
	annotated, err := annotations(live)
	if err != nil {
		return false, err
	}
	changed := len(after) != len(before)
	if t.annotated(annotated) || !t.legal() && (live == nil || stripped) {
		added, err := t.annotate(desired)
		return changed || added, err
	}
	return changed, nil
}

// settleReferences returns the references that the write must come to.
func (t Target) settleReferences(live map[string]any, desired []any) []any {
	if !t.legal() {
		return slices.DeleteFunc(slices.Clone(desired), t.isOwn)
	}
	if slices.ContainsFunc(desired, t.isOwn) {
		return desired
	}
	if live == nil {
		return append(slices.Clone(desired), t.reference())
	}
	standing, err := references(live)
	if err != nil {
		return desired // The API server does not answer so.
	}
	if i := slices.IndexFunc(standing, t.isOwn); i >= 0 {
		return append(slices.Clone(desired), standing[i])
	}
	if slices.ContainsFunc(standing, t.isPredecessor) {
		return append(slices.Clone(desired), t.reference())
	}
	return desired
}

func (t Target) isOwn(reference any) bool {
	r, ok := reference.(map[string]any)
	return ok && r["uid"] == string(t.Owner.UID)
}

// isPredecessor reports whether the reference is to another object in the owner's place.
// There is one at a time: that other is gone, and the garbage collector deletes what has
// no other owner.
func (t Target) isPredecessor(reference any) bool {
	r, ok := reference.(map[string]any)
	if !ok || t.isOwn(r) || r["name"] != t.Owner.Name {
		return false
	}
	version, _ := r["apiVersion"].(string)
	kind, _ := r["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind).GroupKind() == t.Owner.GVK.GroupKind()
}

func (t Target) reference() map[string]any {
	return map[string]any{
		"apiVersion": t.Owner.GVK.GroupVersion().String(),
		"kind":       t.Owner.GVK.Kind,
		"name":       t.Owner.Name,
		"uid":        string(t.Owner.UID),
	}
}

// mark returns operator-lib's annotations for the owner.
func (t Target) mark() map[string]string {
	primary, child := &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{}}
	primary.SetGroupVersionKind(t.Owner.GVK)
	primary.SetNamespace(t.Owner.Namespace)
	primary.SetName(t.Owner.Name)
	if libhandler.SetOwnerAnnotations(primary, child) != nil {
		return nil // An owner without name or kind: there is none.
	}
	return child.GetAnnotations()
}

func (t Target) annotated(annotations map[string]any) bool {
	mark := t.mark()
	for name, value := range mark {
		if annotations[name] != value {
			return false
		}
	}
	return len(mark) > 0
}

func (t Target) annotate(metadata map[string]any) (bool, error) {
	before, err := annotations(metadata)
	if err != nil || t.annotated(before) {
		return false, err
	}
	after := maps.Clone(before)
	for name, value := range t.mark() {
		after[name] = value
	}
	metadata[annotationsKey] = after
	return true, nil
}

// isMark reports whether it is the name of one of operator-lib's annotations.
func isMark(annotation string) bool {
	return annotation == libhandler.NamespacedNameAnnotation || annotation == libhandler.TypeAnnotation
}

// isOwner reports whether the document is the owner itself.
func (t Target) isOwner(document map[string]any) bool {
	object := unstructured.Unstructured{Object: document}
	name := t.Name
	if name == "" {
		name = object.GetName()
	}
	kind := schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind()).GroupKind()
	return kind == t.Owner.GVK.GroupKind() && t.Namespace == t.Owner.Namespace && name == t.Owner.Name
}

// member returns a mapping's member that must be a mapping itself; an empty one where it is
// absent or null.
func member(object map[string]any, key string) (map[string]any, error) {
	switch value := object[key].(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s is no mapping, so that the object can have no owner", key)
	}
}

func annotations(metadata map[string]any) (map[string]any, error) {
	return member(metadata, annotationsKey)
}

func references(metadata map[string]any) ([]any, error) {
	switch value := metadata[referencesKey].(type) {
	case nil:
		return nil, nil
	case []any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s is no list, so that the object can have no owner", referencesKey)
	}
}
