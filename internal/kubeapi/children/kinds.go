package children

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
)

// Kind is a kind whose objects are followed, as the record has it.
type Kind struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Kind       string `json:"kind,omitempty"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced,omitempty"`
}

func (k Kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// followed is a kind whose objects are followed, in one version, for whoever has
// to do with them.
type followed struct {
	children *Children
	kind     Kind
	parts    []part
	since    time.Time
	// refused is since when the kind can't be followed.
	refused time.Time
	// complete is true once what runs had written until searching began has been found
	// in the store, or missed.
	complete  bool
	searching time.Time
	// suspects are not there since some time; only Start looks.
	suspects map[types.UID]time.Time
	// uses has for each watch when there was last a child of a CR of it, and
	// referenced when a CR last referred to the kind.
	uses       map[schema.GroupKind]time.Time
	referenced time.Time
	// inherited are children of CRs that are gone, which runs of their successors have
	// written.
	inherited map[types.UID]bool
}

// part is the informer of one namespace, or of all.
type part struct {
	namespace string
	*informers.Informer
	release func()
}

// child lets a child's kind be followed from now on, if it may bring its CR back.
func (c *Children) child(watch Watch, write access.Write, object *unstructured.Unstructured, by tied) {
	kind := Kind{write.Resource.Group, write.Resource.Version, object.GetKind(), write.Resource.Resource, object.GetNamespace() != ""}
	if !watch.brings(kind.Namespaced, by) || watch.leaves(kind) || isEvent(write.Resource) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, ok := c.refused[kind.resource().GroupResource()]; ok && time.Since(since) < longPause {
		return
	}
	c.use(watch.GVK.GroupKind(), kind)
}

// isEvent tells of Kubernetes' Events: they tell of a CR, come and go by
// themselves, and bring nobody back.
func isEvent(resource schema.GroupVersionResource) bool {
	return resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// use follows a kind for the children of a watch. It needs the lock.
func (c *Children) use(watch schema.GroupKind, kind Kind) {
	f := c.follow(kind)
	if _, ok := f.uses[watch]; !ok {
		c.changed = true
		c.prod()
	}
	f.uses[watch] = time.Now()
}

// follow needs the lock. A resource is followed in one version, the first that was
// asked for that is served: its objects are the same in every one.
func (c *Children) follow(kind Kind) *followed {
	resource, now := kind.resource(), time.Now()
	f := &followed{children: c, kind: kind, since: now, searching: now, uses: map[schema.GroupKind]time.Time{}}
	if other := c.kinds[resource.GroupResource()]; other != nil {
		if other.kind.Version == kind.Version || !apierrors.IsNotFound(other.refusal()) {
			return other
		}
		f.uses, other.uses, f.referenced, f.inherited = other.uses, nil, other.referenced, other.inherited
		c.end(resource.GroupResource(), other)
	}
	c.kinds[resource.GroupResource()] = f
	namespaces := []string{""}
	if kind.Namespaced && len(c.options.Namespaces) > 0 {
		namespaces = c.options.Namespaces
	}
	for _, namespace := range namespaces {
		informer, release := c.options.Informers.Use(informers.Key{Resource: resource, Namespace: namespace}, f)
		f.parts = append(f.parts, part{namespace, informer, release})
	}
	c.options.Logger.Info("following a kind for its objects' changes", "resource", resource.GroupResource().String(), "version", resource.Version)
	return f
}

// tend gives up the kinds that can't be followed or that nobody needs any more,
// and finds what went before it could be seen.
func (c *Children) tend(now time.Time) {
	c.mu.Lock()
	var missed []func()
	for resource, f := range c.kinds {
		if err := f.hopeless(now); err != nil && len(f.uses) > 0 {
			c.options.Logger.Info("a kind of children can't be followed, and is not any more: its drift is seen at the next reconcile period",
				"resource", resource.String(), "error", err.Error())
			c.refuse(resource, err, now)
			clear(f.uses)
			c.changed = true
		}
		f.renew(now)
		if !f.complete && f.synced() {
			missed = append(missed, func() { f.miss(now) })
		}
		if len(f.uses) == 0 && now.Sub(f.referenced) > c.options.Unused {
			c.end(resource, f)
		}
	}
	if now.Sub(c.swept) > c.options.Unused {
		c.swept = now
		c.ledger.Sweep()
		for _, f := range c.kinds {
			f.complete, f.searching = false, now // What is old now may have been missed.
		}
	}
	c.mu.Unlock()
	for _, find := range missed {
		find()
	}
}

// refuse needs the lock.
func (c *Children) refuse(resource schema.GroupResource, why error, now time.Time) {
	if !apierrors.IsNotFound(why) { // What is absent may come.
		c.refused[resource] = now
	}
}

// end needs the lock.
func (c *Children) end(resource schema.GroupResource, f *followed) {
	delete(c.kinds, resource)
	c.ledger.Drop(resource)
	c.changed = true
	for _, part := range f.parts {
		go part.release() // It may wait for a handler that waits for the lock.
	}
	c.options.Logger.Info("following a kind no longer", "resource", resource.String())
}

// hopeless is why the kind can't be followed for good. It needs the lock.
func (f *followed) hopeless(now time.Time) error {
	why := f.refusal()
	switch {
	case why == nil:
		f.refused = time.Time{}
	case f.refused.IsZero():
		f.refused = now
	case now.Sub(f.refused) > f.children.limits.refusal:
		return why
	}
	return nil
}

// refusal is why the kind can't be followed at present: in each namespace the API server
// says so.
func (f *followed) refusal() error {
	var why error
	for _, part := range f.parts {
		err := part.Err()
		if !refuses(err) {
			return nil
		}
		why = err
	}
	return why
}

// refuses reports whether an API server answers so that does not let a kind be followed.
func refuses(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// partOf returns what has the objects of a namespace, if that is watched.
func (f *followed) partOf(namespace string) (part, bool) {
	i := slices.IndexFunc(f.parts, func(p part) bool { return p.namespace == "" || p.namespace == namespace })
	if i < 0 {
		return part{}, false
	}
	return f.parts[i], true
}

func (f *followed) synced() bool {
	return !slices.ContainsFunc(f.parts, func(p part) bool { return !p.Synced() })
}

// renew notes which watches have children of the kind, and ends the uses of those
// that have had none for long. It needs the lock.
func (f *followed) renew(now time.Time) {
	if !f.synced() {
		return
	}
	unused := f.children.options.Unused
	for watch, last := range f.uses {
		if now.Sub(last) < unused/4 {
			continue
		}
		switch {
		case f.childOf(watch):
			f.uses[watch] = now
		case now.Sub(last) > unused && now.Sub(f.since) > unused:
			delete(f.uses, watch)
			f.children.changed = true
		}
	}
}

// childOf reports whether there is a child of any CR of the watch.
func (f *followed) childOf(watch schema.GroupKind) bool {
	for _, part := range f.parts {
		for _, object := range part.Store().List() {
			child, ok := object.(*reduce.Object)
			if ok && slices.ContainsFunc(owners(child), func(o owner) bool { return o.cr.Kind == watch && f.serves(f.children.watches[watch], o) }) {
				return true
			}
		}
	}
	return false
}
