package children

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
)

// BeforeWrite implements access.WriteObserver.
func (c *Children) BeforeWrite(session *access.Session, write access.Write) (afterWrite func(access.Response)) {
	owner := session.Owner
	watch, ok := c.watches[owner.GVK.GroupKind()]
	if !ok {
		return func(access.Response) {}
	}
	cr := ledger.CR{Kind: owner.GVK.GroupKind(), NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}}
	pending := c.ledger.Begin(cr, write)
	return func(response access.Response) {
		for _, change := range c.ledger.Complete(pending, c.writtenObjects(watch, owner, write, response)...) {
			c.notify(cr, change.OwnerUID, describeChange(c.kindName(change.Resource), change, false))
		}
	}
}

// SessionEnded implements access.WriteObserver. It does nothing: watch events of the run's
// writes may still come, so that the ledger must keep the writes.
func (c *Children) SessionEnded(*access.Session) {}

// writtenObjects follows the kind of a child that the run has written. It returns what the
// ledger needs of the response; nothing where the write failed or the kind is not followed.
func (c *Children) writtenObjects(watch Watch, owner access.Owner, write access.Write, response access.Response) []ledger.WrittenObject {
	if !response.OK() {
		return nil
	}
	deletes := write.Verb == "delete" || write.Verb == "deletecollection"
	whole := !deletes && write.Subresource == "" // The response has whole objects.
	if whole {
		for _, object := range response.Objects {
			if link, ok := findOwnerLink(owner, object); ok {
				c.followChildKind(watch, write, object, link)
			}
			if f := c.followed(write.Resource.GroupResource()); f != nil && hasPredecessorAsOwner(owner, object) {
				f.setInherited(object.GetUID(), true)
			}
		}
	}
	if c.followed(write.Resource.GroupResource()) == nil {
		return nil
	}
	if deletes && len(response.Objects) == 0 {
		return []ledger.WrittenObject{{UID: response.UID, Deleted: true}}
	}
	var written []ledger.WrittenObject
	for _, object := range response.Objects {
		written = append(written, c.writtenObject(object, deletes, whole))
	}
	return written
}

func (c *Children) writtenObject(object *unstructured.Unstructured, deletes, whole bool) ledger.WrittenObject {
	written := ledger.WrittenObject{
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		// A write that removes the last finalizer of a deleted object ends the object.
		Deleted: deletes || object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0,
	}
	if !whole {
		return written
	}
	if reduced, err := c.options.Reducer.Object(object); err == nil {
		written.Digest = &reduced.Digest
	}
	return written
}

// followed returns a followed kind, nil where the resource is not followed.
func (c *Children) followed(resource schema.GroupResource) *followedKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[resource]
}
