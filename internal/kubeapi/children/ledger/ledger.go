package ledger

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
)

// CR names a custom resource.
type CR struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// Change is what a watch shows of one object, as it concerns one CR.
type Change struct {
	Resource        schema.GroupResource
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Digest          reduce.Digest
	// Deleted is true where the object is gone.
	Deleted bool
	// Same is true where the object says what it said when it was last shown.
	Same bool
	// First is true where the object was there when the watch began. Nobody knows
	// whether it has changed, but from what the CR's runs have written.
	First bool
	// Owner is the UID of the CR, where the object tells; the ledger only keeps it.
	Owner types.UID
}

// Own is what the API server answered to a CR's own write.
type Own struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	// Digest is nil where the answer does not show the whole object.
	Digest *reduce.Digest
	// Deleted is true where the object is gone, or goes by itself from here.
	Deleted bool
}

// Flight is a write that has no answer yet.
type Flight struct {
	cr    CR
	write access.Write
}

// Ledger keeps the writes of all CRs. The zero Ledger is ready.
type Ledger struct {
	mu      sync.Mutex
	records map[entry]*record
	open    map[CR]*traffic
}

// entry is one object, as one CR's runs write it.
type entry struct {
	cr  CR
	uid types.UID
}

// traffic is what is under way for one CR.
type traffic struct {
	flights []*Flight
	parked  []Change
}

// Begin notes a write before it is sent. Answered must follow.
func (l *Ledger) Begin(cr CR, write access.Write) *Flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	flight := &Flight{cr, write}
	if l.open == nil {
		l.open = map[CR]*traffic{}
	}
	if l.open[cr] == nil {
		l.open[cr] = &traffic{}
	}
	l.open[cr].flights = append(l.open[cr].flights, flight)
	return flight
}

// Answered notes what came of a write, nothing where that is not known, and gives
// the changes that waited for it and are news.
func (l *Ledger) Answered(flight *Flight, own ...Own) []Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	under := l.open[flight.cr]
	under.flights = slices.DeleteFunc(under.flights, func(f *Flight) bool { return f == flight })
	for _, o := range own {
		l.note(flight, o)
	}
	var news, waiting []Change
	for _, change := range under.parked {
		switch {
		case under.mayCause(change):
			waiting = append(waiting, change)
		case l.judge(flight.cr, change):
			news = append(news, change)
		}
	}
	under.parked = waiting
	if len(under.flights) == 0 {
		delete(l.open, flight.cr)
	}
	return news
}

// See reports whether a change is news to the CR. It is not where a write under way
// may have caused it: then Answered tells. The changes of one object come in their
// order.
func (l *Ledger) See(cr CR, change Change) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if under := l.open[cr]; under != nil && under.mayCause(change) {
		under.parked = append(under.parked, change)
		return false
	}
	return l.judge(cr, change)
}

// Written returns the objects of a resource that a CR's runs have written, which
// the watch has not shown since, as if they were deleted: that is what they are
// if the watch has come beyond them without showing them.
func (l *Ledger) Written(resource schema.GroupResource) map[CR][]Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[CR][]Change{}
	for e, r := range l.records {
		if r.resource == resource && !r.deleted && len(r.writes) > 0 {
			found[e.cr] = append(found[e.cr], Change{
				Resource: resource, Namespace: r.namespace, Name: r.name, UID: e.uid, ResourceVersion: r.last(), Deleted: true,
			})
		}
	}
	return found
}

// Drop forgets a resource that is not watched any more.
func (l *Ledger) Drop(resource schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e, r := range l.records {
		if r.resource == resource {
			delete(l.records, e)
		}
	}
}

// Sweep forgets what was noted before the last Sweep and was never shown: an object
// that does not belong to the CR which has written it, or a watch that has missed it.
func (l *Ledger) Sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e, r := range l.records {
		if r.old {
			delete(l.records, e)
		}
		r.old = true
	}
}

// mayCause reports whether a write that is under way may have made the change.
func (t *traffic) mayCause(change Change) bool {
	return slices.ContainsFunc(t.flights, func(f *Flight) bool {
		w := f.write
		return w.Resource.GroupResource() == change.Resource &&
			(w.Name == "" || w.Name == change.Name) &&
			(w.Namespace == change.Namespace || w.Namespace == "" && w.Name == "")
	})
}

// note needs the lock.
func (l *Ledger) note(flight *Flight, own Own) {
	if own.UID == "" {
		return // Nothing could be recognized by it.
	}
	e := entry{flight.cr, own.UID}
	if l.records == nil {
		l.records = map[entry]*record{}
	}
	r := l.records[e]
	if r == nil {
		r = &record{resource: flight.write.Resource.GroupResource(), namespace: own.Namespace, name: own.Name}
		l.records[e] = r
	}
	r.deleted, r.old = r.deleted || own.Deleted, false
	if own.ResourceVersion != "" {
		r.add(version{own.ResourceVersion, own.Digest})
	}
}

// judge reports whether a change is another's, and forgets what the watch has
// passed. It needs the lock.
func (l *Ledger) judge(cr CR, change Change) (news bool) {
	e := entry{cr, change.UID}
	r := l.records[e]
	if r == nil {
		return !change.Same && !change.First
	}
	if change.Deleted {
		delete(l.records, e)
		return !r.deleted
	}
	news = !change.Same && !r.explains(change)
	r.writes = slices.DeleteFunc(r.writes, func(w version) bool {
		return w.at == change.ResourceVersion || older(w.at, change.ResourceVersion)
	})
	if len(r.writes) == 0 && !r.deleted {
		delete(l.records, e)
	}
	return news
}
