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

// maxAskPause is the longest pause between two looks for a kind.
const maxAskPause = 30 * time.Second

// Objects are objects by their kind.
type Objects = map[schema.GroupVersionKind][]types.NamespacedName

// references know to which objects CRs refer. All of it needs the lock of Children.
type references struct {
	byCR map[ledger.CR]Objects
	// byName has the CRs that refer to an object of a kind and name, with the
	// namespace that they mean.
	byName map[target]map[ledger.CR][]string
	kinds  map[schema.GroupVersionKind]*referencedKind
}

type target struct {
	kind schema.GroupKind
	name string
}

// referencedKind is a kind to which CRs refer.
type referencedKind struct {
	// found is true once discovery has told the resource, absent where it has told
	// that there is none, and asking while it is asked.
	found, absent, asking bool
	resource              Kind
	// since is when CRs began to refer to it.
	since time.Time
	pause time.Duration
	next  time.Time
	// uncertain are the CRs that were told that nothing is known of the kind.
	uncertain map[ledger.CR]bool
}

func newReferences() references {
	return references{byCR: map[ledger.CR]Objects{}, byName: map[target]map[ledger.CR][]string{}, kinds: map[schema.GroupVersionKind]*referencedKind{}}
}

// to returns the CRs that refer to an object of a kind that is followed.
func (r *references) to(kind Kind, object types.NamespacedName) []ledger.CR {
	var found []ledger.CR
	for gvk, referenced := range r.kinds {
		if !referenced.found || referenced.resource.resource().GroupResource() != kind.resource().GroupResource() {
			continue
		}
		for cr, namespaces := range r.byName[target{gvk.GroupKind(), object.Name}] {
			if !kind.Namespaced || slices.Contains(namespaces, object.Namespace) {
				found = append(found, cr)
			}
		}
	}
	return found
}

func (r *references) set(cr ledger.CR, to Objects) {
	for gvk, kind := range r.kinds {
		if len(to[gvk]) == 0 {
			delete(kind.uncertain, cr)
		}
	}
	for gvk, names := range r.byCR[cr] {
		for _, name := range names {
			at := target{gvk.GroupKind(), name.Name}
			delete(r.byName[at], cr)
			if len(r.byName[at]) == 0 {
				delete(r.byName, at)
			}
		}
	}
	delete(r.byCR, cr)
	for gvk, names := range to {
		for _, name := range names {
			at := target{gvk.GroupKind(), name.Name}
			if r.byName[at] == nil {
				r.byName[at] = map[ledger.CR][]string{}
			}
			r.byName[at][cr] = append(r.byName[at][cr], name.Namespace)
		}
	}
	if len(to) > 0 {
		r.byCR[cr] = to
	}
}

func (r *references) kind(gvk schema.GroupVersionKind) *referencedKind {
	if r.kinds[gvk] == nil {
		r.kinds[gvk] = &referencedKind{uncertain: map[ledger.CR]bool{}}
	}
	return r.kinds[gvk]
}

// used reports whether any CR refers to the kind.
func (r *references) used(gvk schema.GroupVersionKind) bool {
	for _, to := range r.byCR {
		if len(to[gvk]) > 0 {
			return true
		}
	}
	return false
}

// Refers says to what a CR refers, in place of what it did before. The kinds are
// followed from then on.
func (c *Children) Refers(watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, names := range to {
		if len(names) == 0 {
			continue
		}
		if !c.references.used(gvk) {
			c.references.kind(gvk).since = time.Now()
		}
		if c.at(gvk) == nil {
			c.prod()
		}
	}
	c.references.set(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
}

// at returns a kind to which CRs refer, nil where it is not followed yet. It needs
// the lock.
func (c *Children) at(gvk schema.GroupVersionKind) *followed {
	referenced := c.references.kind(gvk)
	if !referenced.found {
		return nil
	}
	return c.kinds[referenced.resource.resource().GroupResource()]
}

// resolve finds the resources of the kinds to which CRs refer, keeps them
// followed, and brings back the CRs for which they are known at last.
func (c *Children) resolve(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for gvk, kind := range c.references.kinds {
		switch {
		case !c.references.used(gvk):
		case !kind.found:
			if !kind.asking && now.After(kind.next) {
				kind.asking = true
				go c.ask(ctx, gvk)
			}
		default:
			f := c.follow(kind.resource)
			f.referenced = now
			if f.synced() {
				for cr := range kind.uncertain {
					c.tell(cr, "", gvk.Kind+" objects can be read now")
				}
				clear(kind.uncertain)
			}
		}
	}
}

// ask asks discovery for the resource of a kind.
func (c *Children) ask(ctx context.Context, gvk schema.GroupVersionKind) {
	list, err := c.options.Discovery.ServerResourcesForGroupVersion(gvk.GroupVersion().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := c.references.kind(gvk)
	kind.asking = false
	kind.pause = min(max(time.Second, 2*kind.pause), maxAskPause)
	kind.next = time.Now().Add(kind.pause)
	kind.absent = err == nil || apierrors.IsNotFound(err)
	if err == nil {
		for _, resource := range list.APIResources {
			if resource.Kind == gvk.Kind && !strings.Contains(resource.Name, "/") {
				kind.found, kind.absent = true, false
				kind.resource = Kind{gvk.Group, gvk.Version, gvk.Kind, resource.Name, resource.Namespaced}
				c.follow(kind.resource).referenced = time.Now()
				return
			}
		}
	}
	if ctx.Err() == nil {
		why := "the API server does not serve it"
		if err != nil {
			why = err.Error()
		}
		c.options.Logger.Info("a kind to which resources refer can't be found: its changes bring nothing back; it is looked for again", "kind", gvk.String(), "error", why)
	}
}
