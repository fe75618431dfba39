package release

import (
	"slices"
	"strings"

	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/chart/order"
)

// Link names an owner of an object, by an owner reference or by operator-lib's annotations.
type Link struct {
	schema.GroupVersionKind

	Namespace, Name string
	// UID is "" by annotations. Then Version is "", too.
	UID types.UID
}

// String returns the owner for people.
func (l Link) String() string {
	return l.Kind + " " + strings.TrimPrefix(l.Namespace+"/"+l.Name, "/")
}

// linksOf returns the owners that an object names. An owner reference does not say whether its owner
// is cluster-scoped; linksOf assumes the object's namespace.
func linksOf(object metav1.Object) []Link {
	var links []Link
	for _, reference := range object.GetOwnerReferences() {
		links = append(links, Link{schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind), object.GetNamespace(), reference.Name, reference.UID})
	}
	annotations := object.GetAnnotations()
	if kind, name := annotations[libhandler.TypeAnnotation], annotations[libhandler.NamespacedNameAnnotation]; kind != "" && name != "" {
		namespace, rest, found := strings.Cut(name, "/")
		if !found {
			namespace, rest = "", name
		}
		links = append(links, Link{schema.ParseGroupKind(kind).WithVersion(""), namespace, rest, ""})
	}
	return links
}

// names reports whether the link names the CR or a predecessor of its kind and name.
func (l Link) names(owner order.Owner) bool {
	return l.Group == owner.Group && l.Kind == owner.Kind && l.Name == owner.Name && (l.Namespace == owner.Namespace || owner.Namespace == "")
}

// Linked reports whether an object is a child of the CR: by an owner reference with its UID, or by
// annotations where no reference is possible.
func Linked(object metav1.Object, owner order.Owner) bool {
	for _, link := range linksOf(object) {
		if link.UID == types.UID(owner.UID) && link.UID != "" || link.UID == "" && link.names(owner) {
			return true
		}
	}
	return false
}

// Owners names the owners of an object, for people; "" if it has none.
func Owners(object metav1.Object) string {
	if links := linksOf(object); len(links) > 0 {
		return owners(links)
	}
	return ""
}

// annotationsOf returns operator-lib's annotations that link an object to the CR.
func annotationsOf(owner order.Owner) map[string]string {
	return map[string]string{
		libhandler.TypeAnnotation:           schema.GroupKind{Group: owner.Group, Kind: owner.Kind}.String(),
		libhandler.NamespacedNameAnnotation: owner.Namespace + "/" + owner.Name,
	}
}

// Refers reports whether an object has an owner reference to the CR: the garbage collector deletes it
// with the CR.
func Refers(object metav1.Object, owner order.Owner) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return string(r.UID) == owner.UID })
}

// owners names all owners of the revisions, for people.
func owners(links []Link) string {
	if len(links) == 0 {
		return "the helm CLI or another program, not to a custom resource"
	}
	var names []string
	for _, link := range links {
		names = append(names, link.String())
	}
	return strings.Join(names, ", ")
}
