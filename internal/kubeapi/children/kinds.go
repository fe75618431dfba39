package children

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
)

// Kind is a watched kind of children or referenced objects, in the form in which the record has it.
type Kind struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Kind       string `json:"kind,omitempty"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced,omitempty"`
	// Written has the ownership records of children outside of the namespaces of their CRs: base64 of 8 bytes
	// for each. It is in the record only.
	Written string `json:"written,omitempty"`
}

func (k Kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// watchedKind is a kind that informers watch, in one version. The lock of Children guards its
// fields.
type watchedKind struct {
	children  *Children
	kind      Kind
	informers []namespaceInformer
	since     time.Time
	// refusedSince is the time since when the API server refuses it; zero where it does not.
	refusedSince time.Time
	// uses has the watches for which the kind is watched, and when a CR of each last had a child
	// of the kind. lastReferenced is when a CR last referred to the kind, lastAsked when Known or
	// KnownSeries was last asked for an object of it.
	uses                      map[schema.GroupKind]time.Time
	lastReferenced, lastAsked time.Time
	// inheritedChildren are children that name a deleted CR as their owner, and that a run of the
	// CR's successor has written.
	inheritedChildren map[types.UID]bool
}

// namespaceInformer watches the kind in one namespace.
type namespaceInformer struct {
	namespace string // "" for all namespaces, and for a cluster-scoped kind.
	*informers.Informer
	release func()
}

// watchChildKind watches the kind of a child, if the child's changes may trigger a reconcile.
func (c *Children) watchChildKind(watch Watch, cr ledger.CR, write access.Write, object *unstructured.Unstructured, link ownerLink) {
	kind := Kind{Group: write.Resource.Group, Version: write.Resource.Version, Kind: object.GetKind(), Resource: write.Resource.Resource, Namespaced: object.GetNamespace() != ""}
	if isEvent(write.Resource) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch since, refused := c.refused[kind.resource().GroupResource()]; {
	case watch.ignores(kind):
		c.logUncounted(watch, kind, "blacklist")
		return
	case !watch.triggersReconcile(kind.Namespaced, link):
		c.logUncounted(watch, kind, "watchClusterScopedResources is false")
		return
	case refused && time.Since(since) < refusedBackoff:
		c.logUncounted(watch, kind, refusedWatch)
		return
	}
	f := c.watchFor(watch.GVK.GroupKind(), kind)
	informer, watched := f.informerFor(object.GetNamespace())
	if c.recordOwnership(cr, object, link, kind.resource().GroupResource()) && watched {
		stored, _, _ := informer.Store().GetByKey(storeKey(object.GetNamespace(), object.GetName()))
		f.noteOneStored(cr.Kind, informer, stored)
	}
	if kind.Namespaced && !watched {
		c.logUncounted(watch, kind, "outside of WATCH_NAMESPACE")
	}
}

// refusedWatch says why children of a kind that the API server refuses to show do not count.
const refusedWatch = "no right to list and watch"

// logUncounted notes that children of a kind do not count for Ready, and logs it once. The caller must hold the lock.
func (c *Children) logUncounted(watch Watch, kind Kind, why string) {
	known := uncounted{watch.GVK.GroupKind(), kind.resource().GroupResource()}
	if watch.Health == nil || watch.Health.Ignores(kind.Kind, "") || c.uncounted[known] != "" {
		return
	}
	c.uncounted[known] = kind.Kind + " (" + why + ")"
	c.options.Logger.Info("the manager does not watch children of this kind, so the condition Ready of their resources ignores them",
		"resource", kind.resource().GroupResource().String(), "kind", watch.GVK.Kind, "reason", why)
}

// isEvent reports whether the resource is that of Events. They are never watched: a CR owns
// its Events, and they expire.
func isEvent(resource schema.GroupVersionResource) bool {
	return resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// watchFor watches a kind for the children of a watch's CRs. The caller must hold the lock.
func (c *Children) watchFor(watch schema.GroupKind, kind Kind) *watchedKind {
	f := c.watchKind(kind)
	_, used := f.uses[watch]
	f.uses[watch] = time.Now()
	if !used {
		c.recordOutdated = true
		c.wakeUp()
		delete(c.uncounted, uncounted{watch, kind.resource().GroupResource()})
		f.noteStored(watch)
	}
	return f
}

// watchKind returns the watched kind, and starts its watch if there is none. A resource is
// watched in one version, because all versions have the same objects: the first one that was
// asked for and that the API server serves. The caller must hold the lock.
func (c *Children) watchKind(kind Kind) *watchedKind {
	resource, now := kind.resource(), time.Now()
	f := &watchedKind{children: c, kind: kind, since: now, uses: map[schema.GroupKind]time.Time{}}
	if other := c.kinds[resource.GroupResource()]; other != nil {
		if other.kind.Version == kind.Version || !apierrors.IsNotFound(other.refusal()) {
			return other
		}
		f.uses, other.uses, f.lastReferenced, f.lastAsked, f.inheritedChildren = other.uses, nil, other.lastReferenced, other.lastAsked, other.inheritedChildren
		c.unwatch(resource.GroupResource(), other)
	}
	c.kinds[resource.GroupResource()] = f
	namespaces := []string{""}
	if kind.Namespaced && len(c.options.Namespaces) > 0 {
		namespaces = c.options.Namespaces
	}
	for _, namespace := range namespaces {
		informer, release := c.options.Informers.Use(informers.Key{Resource: resource, Namespace: namespace}, f)
		f.informers = append(f.informers, namespaceInformer{namespace, informer, release})
	}
	c.options.Logger.Info("watching a kind of children", "resource", resource.GroupResource().String(), "version", resource.Version)
	return f
}

// maintain stops watching the kinds that the API server refuses, and unused ones.
func (c *Children) maintain(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for resource, f := range c.kinds {
		if err := f.lastingRefusal(now); err != nil && (len(f.uses) > 0 || !f.lastAsked.IsZero()) {
			c.options.Logger.Info("cannot watch a kind of children; changes are found at the next reconcile period only",
				"resource", resource.String(), "error", err.Error())
			if !apierrors.IsNotFound(err) { // A kind that is not served may be installed later.
				c.refused[resource] = now
				for watch := range f.uses {
					c.logUncounted(c.watches[watch], f.kind, refusedWatch)
				}
			}
			clear(f.uses)
			f.lastAsked, c.recordOutdated = time.Time{}, true
		}
		f.refreshUses(now)
		if timeout := c.options.UnusedKindTimeout; len(f.uses) == 0 && now.Sub(f.lastReferenced) > timeout && now.Sub(f.lastAsked) > timeout {
			c.unwatch(resource, f)
		}
	}
	if now.Sub(c.lastSweep) > c.options.UnusedKindTimeout {
		c.lastSweep = now
		c.ledger.Sweep()
		c.sweepOwnership()
	}
	c.scheduleOwnership(now)
	if now.Sub(c.lastUnidentifiedSweep) > c.timing.unidentified {
		c.lastUnidentifiedSweep = now
		c.ledger.SweepUnidentified()
	}
}

// unwatch stops watching a kind. The caller must hold the lock.
func (c *Children) unwatch(resource schema.GroupResource, f *watchedKind) {
	delete(c.kinds, resource)
	c.ledger.DropResource(resource)
	c.dropHealth(resource)
	c.recordOutdated = true
	for _, informer := range f.informers {
		go informer.release() // It may wait for a handler that waits for the lock.
	}
	c.options.Logger.Info("stopped watching a kind of children", "resource", resource.String())
}

// lastingRefusal returns the API server's refusal once it has lasted for refusalGrace; nil before
// that. The caller must hold the lock.
func (f *watchedKind) lastingRefusal(now time.Time) error {
	err := f.refusal()
	switch {
	case err == nil:
		f.refusedSince = time.Time{}
	case f.refusedSince.IsZero():
		f.refusedSince = now
	case now.Sub(f.refusedSince) > f.children.timing.refusalGrace:
		return err
	}
	return nil
}

// refusal returns an error if the API server refuses the kind in every namespace at present.
func (f *watchedKind) refusal() error {
	var refusal error
	for _, informer := range f.informers {
		err := informer.Err()
		if !isRefusal(err) {
			return nil
		}
		refusal = err
	}
	return refusal
}

// isRefusal reports whether the error says that the API server does not serve or allow the
// request.
func isRefusal(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// informerFor returns the informer of a namespace; false if the namespace is not watched.
func (f *watchedKind) informerFor(namespace string) (namespaceInformer, bool) {
	i := slices.IndexFunc(f.informers, func(n namespaceInformer) bool { return n.namespace == "" || n.namespace == namespace })
	if i < 0 {
		return namespaceInformer{}, false
	}
	return f.informers[i], true
}

func (f *watchedKind) synced() bool {
	return !slices.ContainsFunc(f.informers, func(n namespaceInformer) bool { return !n.Synced() })
}

// refreshUses updates the times in uses, and removes the watches that have had no child of the
// kind for UnusedKindTimeout. The caller must hold the lock.
func (f *watchedKind) refreshUses(now time.Time) {
	if !f.synced() {
		return
	}
	timeout := f.children.options.UnusedKindTimeout
	for watch, last := range f.uses {
		if now.Sub(last) < timeout/4 {
			continue
		}
		switch {
		case f.hasChildOf(watch):
			f.uses[watch] = now
		case now.Sub(last) > timeout && now.Sub(f.since) > timeout:
			delete(f.uses, watch)
			f.children.recordOutdated = true
		}
	}
}

// hasChildOf reports whether any CR of the watch has a child of the kind.
func (f *watchedKind) hasChildOf(watch schema.GroupKind) bool {
	for _, informer := range f.informers {
		for _, object := range informer.Store().List() {
			child, ok := object.(*strip.Object)
			if ok && slices.ContainsFunc(namedOwners(child), func(o owner) bool { return o.cr.Kind == watch && f.isWatchedFor(f.children.watches[watch], o) }) {
				return true
			}
		}
	}
	return false
}
