package children

import (
	"slices"
	"strings"

	libhandler "github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// tied says by what a child belongs to its CR.
type tied int

const (
	byReference tied = iota
	byAnnotation
)

// tie reports whether the object belongs to the owner, and by what.
func tie(owner access.Owner, object *unstructured.Unstructured) (tied, bool) {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner.UID {
			return byReference, true
		}
	}
	cr, ok := annotated(object.GetAnnotations())
	return byAnnotation, ok && cr.Kind == owner.GVK.GroupKind() && cr.Namespace == owner.Namespace && cr.Name == owner.Name
}

// annotated is the CR that operator-lib's annotations name.
func annotated(annotations map[string]string) (ledger.CR, bool) {
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
	cr  ledger.CR
	uid types.UID
	by  tied
}

// owners are the CRs that a child names. A reference does not say whether its owner
// has the child's namespace or none, so that both are given; one of them is nobody,
// which the scope of its kind tells.
func owners(object metav1.Object) []owner {
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
	if cr, ok := annotated(object.GetAnnotations()); ok {
		found = append(found, owner{cr, "", byAnnotation})
	}
	return found
}

// OnAdd implements toolscache.ResourceEventHandler.
func (f *followed) OnAdd(object any, first bool) {
	if after, ok := object.(*reduce.Object); ok {
		f.observe(nil, after, first)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler. After a new list the object
// may be another one of the same name.
func (f *followed) OnUpdate(old, object any) {
	before, known := old.(*reduce.Object)
	after, ok := object.(*reduce.Object)
	switch {
	case !known || !ok:
	case before.UID != after.UID:
		f.observe(before, nil, false)
		f.observe(nil, after, false)
	default:
		f.observe(before, after, false)
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (f *followed) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if before, ok := object.(*reduce.Object); ok {
		f.observe(before, nil, false)
	}
}

// inherit notes whether a run has written a child of its CR's predecessor. The garbage
// collector deletes that one, and the CR must hear of it.
func (f *followed) inherit(child types.UID, inherited bool) {
	f.children.mu.Lock()
	defer f.children.mu.Unlock()
	if !inherited {
		delete(f.inherited, child)
		return
	}
	if f.inherited == nil {
		f.inherited = map[types.UID]bool{}
	}
	f.inherited[child] = true
}

// observe tells the CRs of a change that it concerns and that is news to them.
func (f *followed) observe(before, after *reduce.Object, first bool) {
	shown := after
	if after == nil {
		shown = before
	}
	change := ledger.Change{
		Resource: f.kind.resource().GroupResource(), Namespace: shown.Namespace, Name: shown.Name, UID: shown.UID,
		ResourceVersion: shown.ResourceVersion, Digest: shown.Digest, Deleted: after == nil, First: first,
	}
	same := before != nil && after != nil && before.Digest == after.Digest
	earlier, now := f.concerned(before), f.concerned(after)
	for cr, uid := range union(earlier, now) {
		_, was := earlier[cr]
		_, is := now[cr]
		change.Owner, change.Same = uid, same && was && is
		if f.children.ledger.See(cr, change) {
			f.children.tell(cr, uid, whatOf(f.kind.Kind, change, before == nil && !first))
		}
	}
	if after == nil {
		f.inherit(before.UID, false)
	}
}

func union(one, other map[ledger.CR]types.UID) map[ledger.CR]types.UID {
	all := map[ledger.CR]types.UID{}
	for _, some := range []map[ledger.CR]types.UID{one, other} {
		for cr, uid := range some {
			if known, ok := all[cr]; !ok || known == "" {
				all[cr] = uid
			}
		}
	}
	return all
}

// concerned are the CRs that have to do with an object, which may be nil.
func (f *followed) concerned(object *reduce.Object) map[ledger.CR]types.UID {
	found := map[ledger.CR]types.UID{}
	if object == nil {
		return found
	}
	c := f.children
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cr := range c.references.to(f.kind, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}) {
		found[cr] = ""
	}
	for _, owner := range owners(object) {
		namespaced, known := c.scopes[owner.cr.Kind]
		if !f.serves(c.watches[owner.cr.Kind], owner) || known && namespaced != (owner.cr.Namespace != "") {
			continue
		}
		found[owner.cr] = f.whom(object.UID, found[owner.cr], owner.uid)
	}
	return found
}

// whom is the UID of the CR to which a child's change is told, of which the child tells
// one more: none for a CR's and its predecessor's, which concerns whichever is there.
func (f *followed) whom(child, known, told types.UID) types.UID {
	switch {
	case f.inherited[child], known != "" && told != "" && known != told:
		return ""
	case known == "":
		return told
	default:
		return known
	}
}

// inherits reports whether the object belongs to a CR that was in the owner's place before.
func inherits(owner access.Owner, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(reference metav1.OwnerReference) bool {
		kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
		return kind == owner.GVK.GroupKind() && reference.Name == owner.Name && reference.UID != owner.UID
	})
}

// serves reports whether the kind is followed for an owner's watch. It needs the lock.
func (f *followed) serves(watch Watch, owner owner) bool {
	_, used := f.uses[owner.cr.Kind]
	return used && watch.brings(f.kind.Namespaced, owner.by)
}

// leaves reports whether children of the kind are left alone. What wrote a record may not
// have noted the kind's name.
func (w Watch) leaves(kind Kind) bool {
	return slices.Contains(w.Blacklist, schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
}

// brings reports whether a child brings its CR back.
func (w Watch) brings(namespaced bool, by tied) bool {
	return w.Dependents && (namespaced || by == byReference || w.ClusterScoped)
}
