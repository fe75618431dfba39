package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	libhandler "github.com/operator-framework/operator-lib/handler"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// The fields of metadata that link an object to its owner.
const (
	referencesKey  = "ownerReferences"
	annotationsKey = "annotations"
)

// Target is the object that a run writes, and the owner of the run.
type Target struct {
	Owner access.Owner
	// Namespace is "" for a cluster-scoped object.
	Namespace string
	// Name is "" where the request's path does not have it.
	Name string
	// Labels are set on the object. LabelsOnly leaves its owners as the write has them.
	Labels     map[string]string
	LabelsOnly bool
	// MarkedOnly leaves objects without an owner that have no label of a release: the CRDs in a
	// chart's directory crds, which outlive it, since others may have objects of these kinds.
	MarkedOnly bool
	// Annotated links the object by annotations, also where the garbage collector accepts a reference:
	// the garbage collector must not delete it in place of who does.
	Annotated bool
}

// allowsReference reports whether an owner reference links the object to the owner: the garbage
// collector has to accept it.
func (t Target) allowsReference() bool {
	return !t.Annotated && (t.Owner.Namespace == "" || t.Owner.Namespace == t.Namespace)
}

// ensureOwner links desired to the owner if the rules of the package comment say so, and reports
// whether it has changed desired. live is the metadata of the live object, nil where the write
// creates the object. desired is the metadata that results from the write.
func (t Target) ensureOwner(live, desired map[string]any) (bool, error) {
	if t.MarkedOnly && !t.isOfRelease(desired) {
		return false, nil
	}
	if keeps, err := keepsItself(desired); keeps || err != nil {
		return keeps && live != nil && t.unlink(desired), err
	}
	before, err := references(desired)
	if err != nil {
		return false, err
	}
	after, changed := t.renewed(t.ownerReferences(live, desired, before))
	removed := len(after) < len(before)
	if changed = changed || len(after) != len(before); changed {
		setReferences(desired, after)
	}
	if annotate, err := t.needsAnnotations(live, desired, removed); err != nil || !annotate {
		return err == nil && changed, err
	}
	added, err := t.addOwnerAnnotations(desired)
	return changed || added, err
}

// needsAnnotations reports whether annotations have to name the owner: they do so already, or no
// reference can and the object is new, the owner's release's, or has just lost a reference.
func (t Target) needsAnnotations(live, desired map[string]any, removed bool) (bool, error) {
	all, err := annotations(live)
	if err != nil {
		return false, err
	}
	return t.hasOwnerAnnotations(all) || !t.allowsReference() && (live == nil || removed || t.isOfRelease(desired)), nil
}

func setReferences(metadata map[string]any, references []any) {
	if metadata[referencesKey] = references; len(references) == 0 {
		delete(metadata, referencesKey)
	}
}

// keepPolicy is Helm's annotation for objects that outlive their release.
const keepPolicy = "helm.sh/resource-policy"

// keepsItself reports whether the object is to outlive its owner: the garbage collector would
// delete it with an owner reference.
func keepsItself(desired map[string]any) (bool, error) {
	all, err := annotations(desired)
	value, _ := all[keepPolicy].(string)
	return strings.EqualFold(strings.TrimSpace(value), "keep"), err
}

// unlink removes the references to the owner, and reports whether that is a change.
func (t Target) unlink(desired map[string]any) bool {
	before, err := references(desired)
	if err != nil {
		return false // The API server refuses such an object.
	}
	after := slices.DeleteFunc(slices.Clone(before), t.isReferenceToOwner)
	if len(after) == len(before) {
		return false
	}
	setReferences(desired, after)
	return true
}

// releaseMark is Helm's annotation for the objects of a release.
const releaseMark = "meta.helm.sh/release-name"

// isOfRelease reports whether an object with this metadata belongs to the release that the run
// writes. Such an object is the owner's, also if another client has made it.
func (t Target) isOfRelease(desired map[string]any) bool {
	all, err := annotations(desired)
	return err == nil && len(t.Labels) > 0 && all[releaseMark] != nil
}

// lacksLink reports whether a patch of an object of the release, or one that makes it that, finds no
// reference to the owner. Both are metadata.
func (t Target) lacksLink(live, patch map[string]any) bool {
	existing, err := references(live)
	return err == nil && t.allowsReference() && (t.isOfRelease(live) || t.isOfRelease(patch)) && !slices.ContainsFunc(existing, t.isReferenceToOwner)
}

// ownerReferences returns the references that the object must have after the write. desired are
// those that the write itself results in, beside the rest of its metadata.
func (t Target) ownerReferences(live, metadata map[string]any, desired []any) []any {
	if !t.allowsReference() {
		return slices.DeleteFunc(slices.Clone(desired), t.isReferenceToOwner)
	}
	if slices.ContainsFunc(desired, t.isReferenceToOwner) {
		return desired
	}
	if live == nil {
		return append(slices.Clone(desired), t.reference())
	}
	existing, err := references(live)
	if err != nil {
		return desired // The API server never returns such an object.
	}
	if i := slices.IndexFunc(existing, t.isReferenceToOwner); i >= 0 {
		return append(slices.Clone(desired), existing[i])
	}
	if slices.ContainsFunc(existing, t.isReferenceToPredecessor) || t.isOfRelease(metadata) {
		return append(slices.Clone(desired), t.reference())
	}
	return desired
}

func (t Target) isReferenceToOwner(reference any) bool {
	r, ok := reference.(map[string]any)
	return ok && r["uid"] == string(t.Owner.UID)
}

// isReferenceToPredecessor reports whether the reference is to a deleted CR that had the owner's
// kind and name, and another UID. The garbage collector deletes an object that has no other owner.
func (t Target) isReferenceToPredecessor(reference any) bool {
	r, ok := reference.(map[string]any)
	if !ok || t.isReferenceToOwner(r) || r["name"] != t.Owner.Name {
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

// ownerAnnotations returns operator-lib's annotations for the owner.
func (t Target) ownerAnnotations() map[string]string {
	primary, child := &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{}}
	primary.SetGroupVersionKind(t.Owner.GVK)
	primary.SetNamespace(t.Owner.Namespace)
	primary.SetName(t.Owner.Name)
	if libhandler.SetOwnerAnnotations(primary, child) != nil {
		return nil // The owner lacks its name or kind.
	}
	return child.GetAnnotations()
}

func (t Target) hasOwnerAnnotations(annotations map[string]any) bool {
	want := t.ownerAnnotations()
	for name, value := range want {
		if annotations[name] != value {
			return false
		}
	}
	return len(want) > 0
}

func (t Target) addOwnerAnnotations(metadata map[string]any) (bool, error) {
	before, err := annotations(metadata)
	if err != nil || t.hasOwnerAnnotations(before) {
		return false, err
	}
	after := maps.Clone(before)
	for name, value := range t.ownerAnnotations() {
		after[name] = value
	}
	metadata[annotationsKey] = after
	return true, nil
}

// concernsLink reports whether the annotation decides about the link to the owner.
func concernsLink(annotation string) bool {
	return annotation == keepPolicy || isOwnerAnnotation(annotation)
}

// isOwnerAnnotation reports whether the name is that of one of operator-lib's annotations.
func isOwnerAnnotation(annotation string) bool {
	return annotation == libhandler.NamespacedNameAnnotation || annotation == libhandler.TypeAnnotation
}

func (t Target) isOwner(document map[string]any) bool {
	object := unstructured.Unstructured{Object: document}
	name := t.Name
	if name == "" {
		name = object.GetName()
	}
	kind := schema.FromAPIVersionAndKind(object.GetAPIVersion(), object.GetKind()).GroupKind()
	return kind == t.Owner.GVK.GroupKind() && t.Namespace == t.Owner.Namespace && name == t.Owner.Name
}

// member returns a member that must be a mapping; an empty mapping where it is absent or null.
func member(object map[string]any, key string) (map[string]any, error) {
	switch value := object[key].(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	default:
		return nil, fmt.Errorf("%s is not an object, so no owner reference can be added", key)
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
		return nil, fmt.Errorf("%s is not a list, so no owner reference can be added", referencesKey)
	}
}
