package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// OnAdd implements toolscache.ResourceEventHandler.
func (f *watchedKind) OnAdd(object any, initial bool) {
	if after, ok := object.(*strip.Object); ok {
		f.handleChange(nil, after, initial)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler. After a new list, the two objects may
// be different ones with the same name.
func (f *watchedKind) OnUpdate(oldObject, newObject any) {
	before, known := oldObject.(*strip.Object)
	after, ok := newObject.(*strip.Object)
	switch {
	case !known || !ok:
	case before.UID != after.UID:
		f.handleChange(before, nil, false)
		f.handleChange(nil, after, false)
	default:
		f.handleChange(before, after, false)
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (f *watchedKind) OnDelete(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if before, ok := object.(*strip.Object); ok {
		f.handleChange(before, nil, false)
	}
}

// handleChange notifies the CRs that the change concerns, if it is foreign to them. before is
// nil for an object that is new, after for one that is deleted.
func (f *watchedKind) handleChange(before, after *strip.Object, initial bool) {
	object := after
	if after == nil {
		object = before
	}
	change := ledger.Change{
		Resource: f.kind.resource().GroupResource(), Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		ResourceVersion: object.ResourceVersion, Digest: object.Digest, Initial: initial,
		Created: before == nil, Deleted: after == nil, Deleting: after != nil && after.DeletionTimestamp != nil && (before == nil || before.DeletionTimestamp == nil),
	}
	sameDigest := before != nil && after != nil && before.Digest == after.Digest
	change.By = writerOf(before, after)
	concernedBefore, concernedAfter := f.concernedCRs(before), f.concernedCRs(after)
	f.notifyOwners(before, after, initial)
	for cr, uid := range mergeCRs(concernedBefore, concernedAfter) {
		_, was := concernedBefore[cr]
		_, is := concernedAfter[cr]
		change.OwnerUID, change.Unchanged = uid, sameDigest && was && is
		if f.children.ledger.Observe(cr, change) || f.statusConcerns(cr, before, after) {
			f.children.notify(cr, uid, describeChange(f.kind.Kind, change))
		}
	}
	if after == nil {
		f.setInherited(before.UID, false)
		f.children.mu.Lock()
		defer f.children.mu.Unlock()
		f.children.ownership.remove(before)
	}
}

// writerOf returns the client that changed an object, with the fields that this client alone manages; ""
// if it is not known, as after a write without a time. If two clients wrote in the same second, it is the
// one that did not write before.
func writerOf(before, after *strip.Object) string {
	if before == nil || after == nil || before.Digest == after.Digest || len(after.Writers) == 0 {
		return ""
	}
	i := slices.IndexFunc(after.Writers, func(w strip.Writer) bool {
		return !slices.ContainsFunc(before.Writers, func(former strip.Writer) bool { return former.Manager == w.Manager })
	})
	if after.Written < before.Written || i < 0 && after.Written == before.Written {
		return ""
	}
	return after.Writers[max(i, 0)].String()
}

// notifyOwners notifies the CRs that own an object of its health and of the fields that their status shows.
func (f *watchedKind) notifyOwners(before, after *strip.Object, initial bool) {
	current := 0
	if before != nil && after != nil && before.Health != nil && after.Health == nil {
		current = 1
	}
	for cr, uid := range mergeCRs(f.lockedOwners(before), f.lockedOwners(after)) {
		if f.noteHealth(cr, before, after, initial) || current > 0 || f.fieldsChange(cr, before, after) {
			f.children.queues[cr.Kind].add(notification{cr: cr.NamespacedName, uid: uid, current: current})
		}
	}
}

// statusConcerns reports whether the object's status has changed in a field that counts for the
// CR, which refers to the object. It does not matter who wrote the status.
func (f *watchedKind) statusConcerns(cr ledger.CR, before, after *strip.Object) bool {
	c, kind := f.children, schema.GroupKind{Group: f.kind.Group, Kind: f.kind.Kind}
	fields := c.watches[cr.Kind].StatusFields[kind]
	if before == nil || after == nil || !slices.ContainsFunc(fields, func(field string) bool { return before.Status[field] != after.Status[field] }) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.references.crsReferringTo(f.kind, types.NamespacedName{Namespace: after.Namespace, Name: after.Name}), cr)
}

// mergeCRs returns the CRs of both maps. Where both have a CR, its UID is the first of the two
// that is not "".
func mergeCRs(a, b map[ledger.CR]types.UID) map[ledger.CR]types.UID {
	all := map[ledger.CR]types.UID{}
	for _, crs := range []map[ledger.CR]types.UID{a, b} {
		for cr, uid := range crs {
			if known, ok := all[cr]; !ok || known == "" {
				all[cr] = uid
			}
		}
	}
	return all
}

// concernedCRs returns the CRs that own the object or refer to it, with their UIDs where the
// object names them. The object may be nil.
func (f *watchedKind) concernedCRs(object *strip.Object) map[ledger.CR]types.UID {
	found := map[ledger.CR]types.UID{}
	if object == nil {
		return found
	}
	c := f.children
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cr := range c.references.crsReferringTo(f.kind, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}) {
		found[cr] = ""
	}
	for cr, uid := range f.owners(object) {
		found[cr] = f.notifiedUID(object.UID, found[cr], uid)
	}
	return found
}

// lockedOwners is owners for a caller that does not hold the lock.
func (f *watchedKind) lockedOwners(object *strip.Object) map[ledger.CR]types.UID {
	f.children.mu.Lock()
	defer f.children.mu.Unlock()
	return f.owners(object)
}

// notifiedUID returns the UID of a CR that a child names more than once: by the UIDs a and b,
// each of which may be "". It returns "", which stands for the CR that exists now, where the
// child belongs to a CR and to its predecessor.
func (f *watchedKind) notifiedUID(child, a, b types.UID) types.UID {
	switch {
	case f.inheritedChildren[child], a != "" && b != "" && a != b:
		return ""
	case a == "":
		return b
	default:
		return a
	}
}

// setInherited notes whether a run has written a child of its CR's predecessor. The garbage
// collector may delete such a child, and its deletion must trigger a reconcile of the CR.
func (f *watchedKind) setInherited(child types.UID, inherited bool) {
	f.children.mu.Lock()
	defer f.children.mu.Unlock()
	if !inherited {
		delete(f.inheritedChildren, child)
		return
	}
	if f.inheritedChildren == nil {
		f.inheritedChildren = map[types.UID]bool{}
	}
	f.inheritedChildren[child] = true
}

// isWatchedFor reports whether the kind is watched for the owner's watch. The caller must
// hold the lock.
func (f *watchedKind) isWatchedFor(watch Watch, owner owner) bool {
	_, used := f.uses[owner.cr.Kind]
	return used && watch.triggersReconcile(f.kind.Namespaced, owner.link)
}

// storeKey returns the key of an object in an informer's store.
func storeKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
