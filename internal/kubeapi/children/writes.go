package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// BeforeWrite implements access.WriteObserver.
func (c *Children) BeforeWrite(session *access.Session, write access.Write) (afterWrite func(access.Response)) {
	owner := session.Owner
	watch, ok := c.watches[owner.GVK.GroupKind()]
	if !ok {
		return func(access.Response) {}
	}
	cr := ledger.CR{Kind: owner.GVK.GroupKind(), NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}}
	before := c.shown(write)
	pending := c.ledger.Begin(cr, write)
	return func(response access.Response) {
		// A write that has changed nothing has no event, for which the ledger would wait.
		written := slices.DeleteFunc(c.writtenObjects(watch, cr, owner, write, response), func(w ledger.WrittenObject) bool {
			return before != nil && !w.Deleted && w.UID == before.UID && w.ResourceVersion == before.ResourceVersion
		})
		for _, change := range c.ledger.Complete(pending, written...) {
			c.notify(cr, change.OwnerUID, describeChange(c.kindName(change.Resource), change))
		}
	}
}

// shown returns the object that a write is about to change, as the watch has shown it last; nil if it has not.
func (c *Children) shown(write access.Write) *strip.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.kinds[write.Resource.GroupResource()]
	if f == nil || write.Name == "" {
		return nil
	}
	informer, ok := f.informerFor(write.Namespace)
	if !ok {
		return nil
	}
	object, _, _ := informer.Store().GetByKey(storeKey(write.Namespace, write.Name))
	kept, _ := object.(*strip.Object)
	return kept
}

// SessionEnded implements access.WriteObserver. It does nothing: watch events of the run's
// writes may still come, so that the ledger must keep the writes.
func (c *Children) SessionEnded(*access.Session) {}

// writtenObjects watches the kind of a child that the run has written. It returns the written
// objects for the ledger; nil if the write failed or the kind is not watched.
func (c *Children) writtenObjects(watch Watch, cr ledger.CR, owner access.Owner, write access.Write, response access.Response) []ledger.WrittenObject {
	if response.Unknown != "" {
		c.logUnknown(write, response)
	} else if !response.OK() {
		return nil
	}
	whole := !write.Deletes() && write.Subresource == "" && !response.Partial // The response has whole objects.
	if whole {
		for _, object := range response.Objects {
			if link, ok := findOwnerLink(owner, object); ok {
				c.watchChildKind(watch, cr, write, object, link)
			}
			if f := c.kindOf(write.Resource.GroupResource()); f != nil && hasPredecessorAsOwner(owner, object) {
				f.setInherited(object.GetUID(), true)
			}
		}
	}
	switch {
	case c.kindOf(write.Resource.GroupResource()) == nil:
		return nil
	case response.Objects == nil:
		return []ledger.WrittenObject{{UID: response.UID, Deleted: write.Deletes()}}
	}
	var written []ledger.WrittenObject // None where a collection was empty.
	for _, object := range response.Objects {
		written = append(written, c.writtenObject(object, write.Deletes(), whole))
	}
	return written
}

// logUnknown counts a write whose result is not known, and logs the first one of each cause.
func (c *Children) logUnknown(write access.Write, response access.Response) {
	if c.options.OnUnknownWrite != nil {
		c.options.OnUnknownWrite(response.Unknown)
	}
	c.mu.Lock()
	logged := c.loggedUnknown[response.Unknown]
	c.loggedUnknown[response.Unknown] = true
	c.mu.Unlock()
	if !logged {
		c.options.Logger.Info("the API server neither confirmed nor refused a run's write: the manager takes the object's next change, for up to two minutes, for the run's own and does not run again for it (ensign_operator_unknown_writes_total counts such writes)",
			"cause", string(response.Unknown), "code", response.Code, "verb", write.Verb, "resource", write.Resource.GroupResource().String(), "namespace", write.Namespace, "name", write.Name)
	}
}

func (c *Children) writtenObject(object *unstructured.Unstructured, deletes, whole bool) ledger.WrittenObject {
	written := ledger.WrittenObject{
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		Deleted: deletes || isGone(object),
	}
	if !whole {
		return written
	}
	if stripped, err := c.options.Transformer.Object(object); err == nil {
		written.Digest = &stripped.Digest
	}
	return written
}

// isGone reports whether the object has ended with the write: the write has removed the last
// finalizer of an object whose deletion had begun. A Namespace has more of them in its spec.
func isGone(object *unstructured.Unstructured) bool {
	more, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers")
	isNamespace := object.GetAPIVersion() == "v1" && object.GetKind() == "Namespace"
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && (!isNamespace || len(more) == 0)
}

// kindOf returns a watched kind, nil where the resource is not watched.
func (c *Children) kindOf(resource schema.GroupResource) *watchedKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[resource]
}
