package children

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
)

// Writing implements access.Follower.
func (c *Children) Writing(session *access.Session, write access.Write) (answered func(access.Answer)) {
	owner := session.Owner
	watch, ok := c.watches[owner.GVK.GroupKind()]
	if !ok {
		return func(access.Answer) {}
	}
	cr := ledger.CR{Kind: owner.GVK.GroupKind(), NamespacedName: types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name}}
	flight := c.ledger.Begin(cr, write)
	return func(answer access.Answer) {
		for _, change := range c.ledger.Answered(flight, c.own(watch, owner, write, answer)...) {
			c.tell(cr, change.Owner, whatOf(c.kindOf(change.Resource), change, false))
		}
	}
}

// Ended implements access.Follower. What the run wrote is remembered for as long
// as its events may come.
func (c *Children) Ended(*access.Session) {}

// own is what the answer says of the CR's own write. A kind that is not followed
// by then needs no notes.
func (c *Children) own(watch Watch, owner access.Owner, write access.Write, answer access.Answer) []ledger.Own {
	if !answer.OK() {
		return nil // Refused, or nobody knows.
	}
	how := written{
		ends:  write.Verb == "delete" || write.Verb == "deletecollection",
		whole: write.Subresource == "",
	}
	if !how.ends && how.whole {
		for _, object := range answer.Objects {
			c.claim(watch, owner, write, object)
		}
	}
	if !c.follows(write.Resource.GroupResource()) {
		return nil
	}
	if how.ends && len(answer.Objects) == 0 {
		return []ledger.Own{{Namespace: write.Namespace, Name: write.Name, UID: answer.UID, Deleted: true}}
	}
	var own []ledger.Own
	for _, object := range answer.Objects {
		own = append(own, c.note(object, how))
	}
	return own
}

// claim sees to it that what becomes of an object is told to the CR whose run has written
// it, if it is a child.
func (c *Children) claim(watch Watch, owner access.Owner, write access.Write, object *unstructured.Unstructured) {
	if by, ok := tie(owner, object); ok {
		c.child(watch, write, object, by)
	}
	if f := c.following(write.Resource.GroupResource()); f != nil && inherits(owner, object) {
		f.inherit(object.GetUID(), true)
	}
}

// written is what a write does: it ends objects, or answers with the whole object.
type written struct{ ends, whole bool }

func (c *Children) note(object *unstructured.Unstructured, how written) ledger.Own {
	own := ledger.Own{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
		// The write that takes the last finalizer away is the one that ends it.
		Deleted: how.ends || object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0,
	}
	if how.ends || !how.whole {
		return own
	}
	if reduced, err := c.options.Reducer.Object(object); err == nil {
		own.Digest = &reduced.Digest
	}
	return own
}

func (c *Children) follows(resource schema.GroupResource) bool { return c.following(resource) != nil }

// following returns a kind, nil where it is not followed.
func (c *Children) following(resource schema.GroupResource) *followed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds[resource]
}
