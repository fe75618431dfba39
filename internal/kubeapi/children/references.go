package children

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
)

// maxDiscoveryBackoff is the longest pause between two requests to discovery for one kind.
const maxDiscoveryBackoff = 30 * time.Second

// Objects are the names of objects, by their kind.
type Objects = map[schema.GroupVersionKind][]types.NamespacedName

// references has the objects to which CRs refer. The lock of Children guards it.
type references struct {
	byCR map[ledger.CR]Objects
	// byName has the CRs that refer to an object of a kind and name, with the object's namespaces.
	byName map[objectName]map[ledger.CR][]string
	kinds  map[schema.GroupVersionKind]*referencedKind
}

type objectName struct {
	kind schema.GroupKind
	name string
}

// referencedKind is a kind to which CRs refer.
type referencedKind struct {
	// found is true once discovery has returned the resource, absent where the API server does
	// not serve the kind, and discovering while a request to discovery is open.
	found, absent, discovering bool
	resource                   Kind
	// since is when the first CR referred to the kind.
	since         time.Time
	backoff       time.Duration
	nextDiscovery time.Time
	// waiting has the CRs that are notified once the kind's objects are known.
	waiting map[ledger.CR]bool
}

func newReferences() references {
	return references{byCR: map[ledger.CR]Objects{}, byName: map[objectName]map[ledger.CR][]string{}, kinds: map[schema.GroupVersionKind]*referencedKind{}}
}

// crsReferringTo returns the CRs that refer to an object of a watched kind.
func (r *references) crsReferringTo(kind Kind, object types.NamespacedName) []ledger.CR {
	var found []ledger.CR
	for gvk, referenced := range r.kinds {
		if !referenced.found || referenced.resource.resource().GroupResource() != kind.resource().GroupResource() {
			continue
		}
		for cr, namespaces := range r.byName[objectName{gvk.GroupKind(), object.Name}] {
			if !kind.Namespaced || slices.Contains(namespaces, object.Namespace) {
				found = append(found, cr)
			}
		}
	}
	return found
}

// set replaces the objects to which the CR refers.
func (r *references) set(cr ledger.CR, to Objects) {
	for gvk, kind := range r.kinds {
		if len(to[gvk]) == 0 {
			delete(kind.waiting, cr)
		}
	}
	for gvk, names := range r.byCR[cr] {
		for _, name := range names {
			key := objectName{gvk.GroupKind(), name.Name}
			delete(r.byName[key], cr)
			if len(r.byName[key]) == 0 {
				delete(r.byName, key)
			}
		}
	}
	delete(r.byCR, cr)
	for gvk, names := range to {
		for _, name := range names {
			key := objectName{gvk.GroupKind(), name.Name}
			if r.byName[key] == nil {
				r.byName[key] = map[ledger.CR][]string{}
			}
			r.byName[key][cr] = append(r.byName[key][cr], name.Namespace)
		}
	}
	if len(to) > 0 {
		r.byCR[cr] = to
	}
}

// kind returns the entry of a kind, which it adds where there is none.
func (r *references) kind(gvk schema.GroupVersionKind) *referencedKind {
	if r.kinds[gvk] == nil {
		r.kinds[gvk] = &referencedKind{waiting: map[ledger.CR]bool{}}
	}
	return r.kinds[gvk]
}

// isReferenced reports whether any CR refers to the kind.
func (r *references) isReferenced(gvk schema.GroupVersionKind) bool {
	for _, to := range r.byCR {
		if len(to[gvk]) > 0 {
			return true
		}
	}
	return false
}

// Refers replaces the objects to which a CR refers. Their kinds are watched from then on.
func (c *Children) Refers(watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, names := range to {
		if len(names) == 0 {
			continue
		}
		if !c.references.isReferenced(gvk) {
			c.references.kind(gvk).since = time.Now()
		}
		if c.watchedReference(gvk) == nil {
			c.wakeUp()
		}
	}
	c.references.set(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
}

// watchedReference returns the watched kind of a reference; nil where it is not watched yet.
// The caller must hold the lock.
func (c *Children) watchedReference(gvk schema.GroupVersionKind) *watchedKind {
	referenced := c.references.kind(gvk)
	if !referenced.found {
		return nil
	}
	return c.kinds[referenced.resource.resource().GroupResource()]
}

// maintainReferences watches the kinds to which CRs refer, and finds their resources first. It
// notifies the CRs that wait for a kind once the kind's objects are known.
func (c *Children) maintainReferences(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for gvk, kind := range c.references.kinds {
		switch {
		case !c.references.isReferenced(gvk):
		case !kind.found:
			if !kind.discovering && now.After(kind.nextDiscovery) {
				kind.discovering = true
				go c.discover(ctx, gvk)
			}
		default:
			f := c.watchKind(kind.resource)
			f.lastReferenced = now
			if f.synced() {
				for cr := range kind.waiting {
					c.notify(cr, "", gvk.Kind+" objects can be read now")
				}
				clear(kind.waiting)
			}
		}
	}
}

// discover finds the resource of a kind and watches it.
func (c *Children) discover(ctx context.Context, gvk schema.GroupVersionKind) {
	list, err := c.options.Discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.references.kind(gvk)
	kind.discovering = false
	kind.backoff = min(max(time.Second, 2*kind.backoff), maxDiscoveryBackoff)
	kind.nextDiscovery = time.Now().Add(kind.backoff)
	kind.absent = err == nil || apierrors.IsNotFound(err)
	if err == nil {
		for _, resource := range list.APIResources {
			if resource.Kind == gvk.Kind && !strings.Contains(resource.Name, "/") {
				kind.found, kind.absent = true, false
				kind.resource = Kind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: resource.Name, Namespaced: resource.Namespaced}
				c.watchKind(kind.resource).lastReferenced = time.Now()
				return
			}
		}
	}
	if ctx.Err() == nil {
		reason := "the API server does not serve it"
		if err != nil {
			reason = err.Error()
		}
		c.options.Logger.Info("referenced kind not found; retrying", "kind", gvk.String(), "error", reason)
	}
}
