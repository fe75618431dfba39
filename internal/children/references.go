package children

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/internal/children/ledger"
	"github.com/ensign-operator/ensign/internal/children/reduce"
)

// stateLimit is how long a run waits for the objects to which its CR refers to be
// known.
const stateLimit = 10 * time.Second

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
	pause                 time.Duration
	next                  time.Time
	// uncertain are the CRs that were told that nothing is known of the kind.
	uncertain map[ledger.CR]bool
}

func newReferences() references {
	return references{byCR: map[ledger.CR]Objects{}, byName: map[target]map[ledger.CR][]string{}, kinds: map[schema.GroupVersionKind]*referencedKind{}}
}

// to gives the CRs that refer to an object of a kind that is followed.
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

// used tells whether any CR refers to the kind.
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
	c.references.set(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
	for gvk, names := range to {
		if len(names) > 0 && !c.references.kind(gvk).found {
			c.prod()
		}
	}
}

// State stands for the objects as they are, without their content: they are known
// by UID and generation, or resource version. It waits for a while until they are
// known, and is "" after that; of a kind that can't be read it says that. Either way
// the CR is brought back once they are known.
func (c *Children) State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string {
	ctx, cancel := context.WithTimeout(ctx, stateLimit)
	defer cancel()
	var lines []string
	known := func(context.Context) (done bool, err error) {
		lines, done = c.look(to)
		return done, nil
	}
	c.Refers(watch, cr, to)
	defer c.await(ledger.CR{Kind: watch.GroupKind(), NamespacedName: cr}, to)
	if wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, known) == nil {
		slices.Sort(lines)
		return strings.Join(slices.Compact(lines), "\n") + "\n"
	}
	return ""
}

// await lets the CR be told once all of its kinds are known.
func (c *Children) await(cr ledger.CR, to Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvk, names := range to {
		if f := c.at(gvk); len(names) > 0 && (f == nil || !f.synced()) {
			c.references.kind(gvk).uncertain[cr] = true
		}
	}
}

// look describes the objects. It is false while some of their kinds are not known.
func (c *Children) look(to Objects) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for gvk, names := range to {
		if len(names) == 0 {
			continue
		}
		f := c.at(gvk)
		switch {
		case f != nil && f.synced():
			for _, name := range names {
				lines = append(lines, gvk.GroupKind().String()+" "+f.describe(name))
			}
		case c.references.kind(gvk).absent, f != nil && f.hopeless(time.Now()) != nil:
			lines = append(lines, gvk.GroupKind().String()+" can't be read")
		default:
			return nil, false
		}
	}
	return lines, true
}

// at gives a kind to which CRs refer, nil where it is not followed yet. It needs
// the lock.
func (c *Children) at(gvk schema.GroupVersionKind) *followed {
	referenced := c.references.kind(gvk)
	if !referenced.found {
		return nil
	}
	return c.kinds[referenced.resource.resource().GroupResource()]
}

// describe says which object there is, and which state of it.
func (f *followed) describe(name types.NamespacedName) string {
	if !f.kind.Namespaced {
		name.Namespace = ""
	}
	for _, part := range f.parts {
		if part.namespace != "" && part.namespace != name.Namespace {
			continue
		}
		object, ok, _ := part.Store().GetByKey(storeKey(name.Namespace, name.Name))
		kept, is := object.(*reduce.Object)
		switch {
		case !ok || !is:
			return name.String() + " absent"
		case kept.Generation != 0:
			return fmt.Sprintf("%s %s generation %d", name, kept.UID, kept.Generation)
		default:
			return fmt.Sprintf("%s %s version %s", name, kept.UID, kept.ResourceVersion)
		}
	}
	return name.String() + " not watched"
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
					c.tell(cr, "")
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
	kind.pause = min(max(time.Second, 2*kind.pause), absentLimit)
	kind.next = time.Now().Add(kind.pause)
	kind.absent = err == nil || apierrors.IsNotFound(err)
	if err == nil {
		for _, resource := range list.APIResources {
			if resource.Kind == gvk.Kind && !strings.Contains(resource.Name, "/") {
				kind.found, kind.absent = true, false
				kind.resource = Kind{gvk.Group, gvk.Version, resource.Name, resource.Namespaced}
				c.follow(kind.resource).referenced = time.Now()
				return
			}
		}
	}
	if ctx.Err() == nil {
		c.options.Logger.Info("a kind to which resources refer is not served; its changes bring nothing back", "kind", gvk.String(), "error", fmt.Sprint(err))
	}
}
