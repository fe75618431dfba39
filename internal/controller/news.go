package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/slots"
)

// sight is what an event shows of a CR before it is read.
type sight struct {
	// idle is true where nothing can run: the object is gone, or is being deleted
	// without our finalizer, or is paused, or has annotations that do not parse.
	idle  bool
	class slots.Class
}

// occasion is what an event tells of.
type occasion bool

const (
	aCreation occasion = false
	aChange   occasion = true
)

// lost notes that the object is gone, and cancels its run if there is one. It is
// false where another object of the name has been read since, whose own events
// say what is to be done.
func (m *memories) lost(cr *unstructured.Unstructured) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.gone = cr.GetUID()
	if found.uid == cr.GetUID() {
		found.read = "" // It tells nothing of a successor.
		if found.cancel != nil {
			found.cancel(errGone)
		}
	}
	return !found.hasRead(cr) && found.shows(cr, sight{idle: true})
}

// saw notes what an event shows of a CR, as it was created or has changed. It is
// false where that is no news: an attempt has read the CR since, or is going to.
func (m *memories) saw(cr *unstructured.Unstructured, seen sight, how occasion) (news bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	found.known = cr.GetUID()
	if found.gone == cr.GetUID() {
		found.gone = "" // Whoever told of its end was wrong.
	}
	switch known := found.uid == cr.GetUID(); {
	case known && found.hasRead(cr):
		if seen.idle && found.wake != nil {
			found.wake() // It waits for what the attempt before it has read as paused.
		}
		found.seen.idle = seen.idle // The end of its predecessor may have come after the read.
		return false
	case how == aChange && found.hasRead(cr):
		return false // A predecessor's. A creation counts, whatever its version says.
	}
	found.changed = found.changed || how == aChange
	return found.shows(cr, seen)
}

// hasRead tells whether an attempt has taken up the CR as the event shows it, or
// later, or a successor of it. An event may come after the attempt that it has not
// caused: from a watch that lags, or where the end of a predecessor of the same
// name was the cause.
func (m *memory) hasRead(cr *unstructured.Unstructured) bool {
	return m.read != "" && notAfter(cr.GetResourceVersion(), m.read)
}

// notAfter compares two resource versions of a kind. Those of some aggregated APIs
// have no order; of them only the same is known to be no later.
func notAfter(version, reference string) bool {
	order, err := resourceversion.CompareResourceVersion(version, reference)
	return version == reference || err == nil && order < 0
}

// shows lets an attempt that waits for a slot look again when the sight changes
// what it waits for. It is false where there is one, or one that is about to read
// the CR: that needs no other to follow it, unless it reads less than was shown.
func (m *memory) shows(cr *unstructured.Unstructured, seen sight) (news bool) {
	changed := m.seen != seen
	m.seen, m.shown = seen, cr.GetResourceVersion()
	switch {
	case m.going:
		m.late = true
	case m.wake == nil:
		return true
	case changed:
		m.wake()
	}
	return false
}

// await registers how to wake an attempt that is going to wait for a slot of the
// class. It is false for an attempt that needs none. A name that is not known is
// gone: every CR is shown by an event before its first attempt.
func (m *memories) await(name types.NamespacedName, wake context.CancelFunc) (slots.Class, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.byName[name]
	if found == nil || found.seen.idle || found.pending != nil {
		return slots.Usual, false
	}
	found.wake = wake
	return found.seen.class, true
}

// admitted ends what await began: the attempt is about to read the CR.
func (m *memories) admitted(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.byName[name]; found != nil {
		found.wake, found.going = nil, true
	}
}

// rests notes that an attempt lets the CR rest as it was read. What repeats after it
// is no news.
func (m *memories) rests(cr *unstructured.Unstructured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entry(client.ObjectKeyFromObject(cr)).takeUp(cr)
}

// begins notes that an attempt runs content for the CR as it was read. It returns
// what has changed of the CR's related objects, if that asked for the attempt: the
// content will see them all.
func (m *memories) begins(cr *unstructured.Unstructured) (related string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	related, found.nudged = found.nudged, ""
	found.takeUp(cr)
	return related
}

// takeUp ends what admitted began. Of the news since then counts what the attempt
// has not seen.
func (m *memory) takeUp(cr *unstructured.Unstructured) {
	m.read = cr.GetResourceVersion()
	m.going, m.late = false, m.late && (m.asked() || m.nudged != "")
	if m.seen.class == slots.Changed && !m.asked() {
		m.seen.class = slots.Usual
	}
}

// found notes that the CR is there, as an attempt has read it, whatever events told
// before, and says when it comes back for a slot: later where they may know better.
func (m *memories) found(cr *unstructured.Unstructured) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.entry(client.ObjectKeyFromObject(cr))
	if found.shown != "" && !notAfter(found.shown, cr.GetResourceVersion()) {
		return firstBackoff
	}
	found.seen.idle = false
	return soon
}

// pausedAs says when a CR comes back that an attempt has read as paused: once an event
// has shown that, never, because another one will tell of the pause's end.
func (m *memories) pausedAs(cr *unstructured.Unstructured) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entry(client.ObjectKeyFromObject(cr)).seen.idle {
		return 0
	}
	return firstBackoff
}

// asked tells whether an event still waits for an attempt that may run.
func (m *memories) asked(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).asked()
}

func (m *memory) asked() bool {
	return m.shown != "" && (m.read == "" || !notAfter(m.shown, m.read))
}

// changed tells whether an event has told of a change.
func (m *memories) changed(name types.NamespacedName) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entry(name).changed
}
