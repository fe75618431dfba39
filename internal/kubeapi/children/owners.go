package children

import (
	"slices"
	"strings"

	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
)

// ownerLink is the way in which a child names its owner.
type ownerLink int

const (
	byReference ownerLink = iota
	byAnnotation
)

// findOwnerLink returns how the object names the owner, and false if it does not.
func findOwnerLink(owner access.Owner, object *unstructured.Unstructured) (ownerLink, bool) {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner.UID {
			return byReference, true
		}
	}
	cr, ok := annotatedOwner(object.GetAnnotations())
	return byAnnotation, ok && cr.Kind == owner.GVK.GroupKind() && cr.Namespace == owner.Namespace && cr.Name == owner.Name
}

// hasPredecessorAsOwner reports whether an owner reference of the object is to a CR that is
// gone and had the same kind and name as owner.
func hasPredecessorAsOwner(owner access.Owner, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
		return kind == owner.GVK.GroupKind() && reference.Name == owner.Name && reference.UID != owner.UID
	})
}

// annotatedOwner returns the CR that operator-lib's annotations name.
func annotatedOwner(annotations map[string]string) (ledger.CR, bool) {
	kind, name := annotations[libhandler.TypeAnnotation], annotations[libhandler.NamespacedNameAnnotation]
	if kind == "" || name == "" {
		return ledger.CR{}, false
	}
	namespace, name, found := strings.Cut(name, "/")
	if !found {
		namespace, name = "", namespace
	}
	return ledger.CR{Kind: schema.ParseGroupKind(kind), NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}, true
}

// owner is a CR that an object names as its owner.
type owner struct {
	cr   ledger.CR
	uid  types.UID // "" by annotation.
	link ownerLink
}

// namedOwners returns the CRs that a child names as its owners. An owner reference does not
// say whether the owner is namespaced. So it gives two CRs, one in the child's namespace and
// one without a namespace; only one of them can exist.
func namedOwners(object metav1.Object) []owner {
	var found []owner
	for _, reference := range object.GetOwnerReferences() {
		group, err := schema.ParseGroupVersion(reference.APIVersion)
		if err != nil {
			continue
		}
		kind := group.WithKind(reference.Kind).GroupKind()
		for _, namespace := range slices.Compact([]string{object.GetNamespace(), ""}) {
			cr := ledger.CR{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: reference.Name}}
			found = append(found, owner{cr, reference.UID, byReference})
		}
	}
	if cr, ok := annotatedOwner(object.GetAnnotations()); ok {
		found = append(found, owner{cr, "", byAnnotation})
	}
	return found
}

// ignores reports whether the blacklist has the kind. A record may lack the kind's name, and
// such a kind is not ignored.
func (w Watch) ignores(kind Kind) bool {
	return slices.Contains(w.Blacklist, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
}

// triggersReconcile reports whether a change of a child with this link triggers a reconcile of
// its CR.
func (w Watch) triggersReconcile(namespaced bool, link ownerLink) bool {
	return w.Dependents && (namespaced || link == byReference || w.ClusterScoped)
}
