package children

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/ledger"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// unseenWrites is how long the health of a CR's children waits for the watch events of its run's
// writes. Events of objects that are not children never come.
const unseenWrites = 10 * time.Second

// HealthRule says which children count for the Ready of a watch's CRs.
type HealthRule struct {
	// Ignores reports whether a child does not count.
	Ignores func(kind, name string) bool
	// Grace is how long a child that was Current may be InProgress before that counts.
	Grace time.Duration
}

// Health is the health of a CR's children by kstatus.
type Health = struct {
	// Known is false while informers have not shown all children, or the writes of the CR's last run.
	Known bool
	// All are the children that are not Current, in words and sorted. Overdue are those of them that have
	// failed, have never been Current, or have not been Current for the time of the rule.
	All, Overdue []string
	// Next is when the next one becomes overdue; the zero time is never.
	Next time.Time
	// Uncounted are the kinds of children of the CR's watch that do not count, with the reason, sorted.
	Uncounted []string
}

// uncounted is a kind of children of a watch.
type uncounted struct {
	watch    schema.GroupKind
	resource schema.GroupResource
}

// sick is a child that is not Current.
type sick struct {
	text string
	// overdue is when it counts though it was Current before; the zero time is at once.
	overdue time.Time
}

// childKey names a child among those of a CR.
type childKey struct {
	resource        schema.GroupResource
	namespace, name string
}

// healths has the children that are not Current, by CR, and since when a CR waits until its Health is
// known. The lock of Children guards it.
type healths struct {
	sick    map[ledger.CR]map[childKey]sick
	waiting map[ledger.CR]time.Time
}

// put notes a child that is not Current.
func (h *healths) put(cr ledger.CR, key childKey, child sick) {
	if h.sick == nil {
		h.sick = map[ledger.CR]map[childKey]sick{}
	}
	if h.sick[cr] == nil {
		h.sick[cr] = map[childKey]sick{}
	}
	h.sick[cr][key] = child
}

// remove forgets a child, and its CR with the last one.
func (h *healths) remove(cr ledger.CR, key childKey) {
	delete(h.sick[cr], key)
	if len(h.sick[cr]) == 0 {
		delete(h.sick, cr)
	}
}

// Health returns the health of a CR's children. It is called again for a CR, by the function of Subscribe
// with no text, when the result has changed or becomes known.
func (c *Children) Health(watch schema.GroupVersionKind, name types.NamespacedName) Health {
	cr := ledger.CR{Kind: watch.GroupKind(), NamespacedName: name}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := &c.healths; !c.healthKnown(cr, now) {
		if h.waiting == nil {
			h.waiting = map[ledger.CR]time.Time{}
		}
		if _, waits := h.waiting[cr]; !waits {
			h.waiting[cr] = now
		}
		return Health{}
	}
	delete(c.healths.waiting, cr)
	found := Health{Known: true}
	for _, child := range c.healths.sick[cr] {
		found.All = append(found.All, child.text)
		switch {
		case !now.Before(child.overdue):
			found.Overdue = append(found.Overdue, child.text)
		case found.Next.IsZero() || child.overdue.Before(found.Next):
			found.Next = child.overdue
		}
	}
	slices.Sort(found.All)
	slices.Sort(found.Overdue)
	found.Uncounted = c.uncountedOf(cr.Kind)
	return found
}

// uncountedOf returns the kinds of children of a watch that do not count, with the reason. The caller
// must hold the lock.
func (c *Children) uncountedOf(watch schema.GroupKind) (all []string) {
	for kind, words := range c.uncounted {
		if kind.watch == watch {
			all = append(all, words)
		}
	}
	slices.Sort(all)
	return all
}

// healthKnown reports whether informers have shown all children of a CR and the writes of its runs. The
// caller must hold the lock.
func (c *Children) healthKnown(cr ledger.CR, now time.Time) bool {
	select {
	case <-c.recordLoaded:
	default:
		return false
	}
	for _, f := range c.kinds {
		if _, used := f.uses[cr.Kind]; used && slices.ContainsFunc(f.informers, func(n namespaceInformer) bool { return !n.Delivered() }) {
			return false
		}
	}
	since, waits := c.healths.waiting[cr]
	return waits && now.Sub(since) > unseenWrites || !c.ledger.HasUnseen(cr, func(resource schema.GroupResource) bool {
		f := c.kinds[resource]
		if f == nil {
			return false
		}
		_, used := f.uses[cr.Kind] // Another watch may have the kind, which this one does not count.
		return used
	})
}

// noteHealth notes the effect of a change of a child on the health of its CR, and reports whether
// the CR has to be told. The change may end the wait until the health is known.
func (f *watchedKind) noteHealth(cr ledger.CR, before, after *strip.Object, initial bool) (changed bool) {
	f.children.mu.Lock()
	defer f.children.mu.Unlock()
	return f.lockedNoteHealth(cr, before, after, initial)
}

// lockedNoteHealth is noteHealth for a caller that holds the lock.
func (f *watchedKind) lockedNoteHealth(cr ledger.CR, before, after *strip.Object, initial bool) (changed bool) {
	c := f.children
	rule := c.watches[cr.Kind].Health
	if rule == nil {
		return false
	}
	object := after
	if after == nil {
		object = before
	}
	key, now := childKey{f.kind.resource().GroupResource(), object.Namespace, object.Name}, time.Now()
	_, waits := c.healths.waiting[cr]
	old, was := c.healths.sick[cr][key]
	if after == nil || after.Health == nil || !f.owns(cr, after) || rule.Ignores(f.kind.Kind, object.Name) {
		c.healths.remove(cr, key)
		return was || waits
	}
	child := sick{text: f.kind.Kind + " " + object.Name + ": " + after.Health.Message, overdue: old.overdue}
	switch {
	case after.Health.Failed:
		child.overdue = time.Time{}
	case !was && (initial || before != nil):
		child.overdue = now.Add(rule.Grace)
	}
	c.healths.put(cr, key, child)
	return child != old || waits
}

// noteStored notes the health of the children of a watch that are in the informers' stores. Their events may have come
// before the response to the write of the run, which makes them children. The caller must hold the lock.
func (f *watchedKind) noteStored(watch schema.GroupKind) {
	for _, informer := range f.informers {
		for _, object := range informer.Store().List() {
			f.noteOneStored(watch, informer, object)
		}
	}
}

// noteOneStored is noteStored for one object of an informer's store. An object of the informer's first list, whose event
// is still to come, may have been there before the watch.
func (f *watchedKind) noteOneStored(watch schema.GroupKind, informer namespaceInformer, object any) {
	child, ok := object.(*strip.Object)
	if !ok || child.Health == nil || f.children.watches[watch].Health == nil {
		return
	}
	for cr, owner := range f.owners(child) {
		if cr.Kind == watch && f.lockedNoteHealth(cr, nil, child, !informer.Delivered()) {
			f.children.notify(cr, owner, "")
		}
	}
}

// notifyHealth notifies the CRs whose health has become known.
func (c *Children) notifyHealth(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cr := range c.healths.waiting {
		if c.healthKnown(cr, now) {
			c.notify(cr, "", "")
		}
	}
}

// dropHealth forgets the children of a resource that is not watched any more. The caller must hold the lock.
func (c *Children) dropHealth(resource schema.GroupResource) {
	for cr, all := range c.healths.sick {
		for key := range all {
			if key.resource == resource {
				delete(all, key)
				c.notify(cr, "", "")
			}
		}
	}
}

// owners returns the CRs of which an object is a child, with their UIDs where the object names them. The
// caller must hold the lock.
func (f *watchedKind) owners(object *strip.Object) map[ledger.CR]types.UID {
	found := map[ledger.CR]types.UID{}
	if object == nil {
		return found
	}
	c := f.children
	for _, owner := range namedOwners(object) {
		namespaced, known := c.namespaced[owner.cr.Kind]
		if !f.isWatchedFor(c.watches[owner.cr.Kind], owner) || known && namespaced != (owner.cr.Namespace != "") {
			continue
		}
		if needsOwnershipRecord(object, owner.cr) && !c.ownership.has(object.UID, owner.cr) {
			continue
		}
		found[owner.cr] = f.notifiedUID(object.UID, found[owner.cr], owner.uid)
	}
	return found
}

// owns reports whether an object is a child of the CR. The caller must hold the lock.
func (f *watchedKind) owns(cr ledger.CR, object *strip.Object) bool {
	_, is := f.owners(object)[cr]
	return is
}
