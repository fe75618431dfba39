package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// mailbox holds the messages between the events and the attempts of one name. All methods may be
// called at any time. A nil mailbox belongs to a name without any attempt so far.
type mailbox struct {
	mu sync.Mutex
	// dirty is the reason, as the log shows it, why content must run although it ran for
	// this version already; "" is none. Events set it, and the start of a run, or of its look, clears it.
	dirty string
	// current is how many children have become Current since the last look.
	current int
	// ran is the version that content ran for last or runs for now, and throttled the one whose run
	// the throttle holds back: no event has to report them again. The zero version is none.
	ran, throttled version
	// recorded is the UID of the CR of which the content had records when the manager began to lead.
	recorded types.UID
	// interrupt passes an event to the current attempt; nil while none waits or runs.
	interrupt func(signal)
}

// signal is the effect of an event on the running attempt of an object.
type signal struct {
	uid types.UID
	// end is why a run of the object must end; nil if it need not.
	end *interruption
}

// markDirty records why the content of the CR must run again. If there was no reason
// before, it returns true, and the caller must put the name into the queue. It then interrupts
// a wait for a slot, because the CR may get one sooner now. If there was one, the CR is in the
// queue already, or is put there by the event that ends its pause or selects it again.
func (m *mailbox) markDirty(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty != "" {
		return false
	}
	m.dirty = why
	m.pass(signal{})
	return true
}

// needsRun reports whether the name is dirty, or another version than that of an event ran
// last, and the queue may not know of it.
func (m *mailbox) needsRun(v version) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return (m.ran != v || m.dirty != "") && m.throttled != v
}

// notify passes a signal to the current attempt, if there is one. The caller also puts the
// name into the queue.
func (m *mailbox) notify(sig signal) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(sig)
}

func (m *mailbox) pass(sig signal) {
	if m.interrupt != nil {
		m.interrupt(sig)
	}
}

// listen returns a context that ends with ctx or with the next event.
func (m *mailbox) listen(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interrupt = func(signal) { cancel(errEvent) }
	return ctx
}

// listenInRun makes cancel end the run when an event says that the object must not run any
// more; other events do not disturb a run. It returns false if an event came since the CR
// was read: then nothing may run, and the event's own request reads the CR again.
func (m *mailbox) listenInRun(readCtx context.Context, uid types.UID, cancel func(*interruption)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if causeOf(readCtx) == errEvent {
		return false
	}
	m.interrupt = func(sig signal) {
		if sig.end != nil && sig.uid == uid {
			cancel(sig.end)
		}
	}
	return true
}

// close ends the current attempt's part in the mailbox.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interrupt = nil
}

// whyDirty returns the reason for which the name is dirty; "" if it is not.
func (m *mailbox) whyDirty() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dirty
}

// noteCurrent adds to the children that have become Current.
func (m *mailbox) noteCurrent(children int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current += children
}

// takeCurrent returns how many children have become Current since its last call.
func (m *mailbox) takeCurrent() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	children := m.current
	m.current = 0
	return children
}

// take returns the reason for which the name is dirty, and clears it: the content looks, or runs. Later
// events are not covered by that, and make the name dirty again.
func (m *mailbox) take() (why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	why, m.dirty, m.throttled = m.dirty, "", version{}
	return why
}

// putBack undoes take, if the content has neither run nor found that it need not run.
func (m *mailbox) putBack(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why != "" {
		m.dirty = why
	}
}

// setRan says for which version content runs or has run.
func (m *mailbox) setRan(v version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran = v
}

// setHeld says that the throttle holds the run of a version back.
func (m *mailbox) setThrottled(v version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.throttled = v
}

// setRecorded says of which CR the content has records.
func (m *mailbox) setRecorded(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recorded = uid
}

// takeRecorded returns the UID of the CR of which the content has records; "" if that is not known.
func (m *mailbox) takeRecorded() (uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid, m.recorded = m.recorded, ""
	return uid
}

// reset forgets the versions of a predecessor.
func (m *mailbox) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran, m.throttled, m.recorded, m.current = version{}, version{}, "", 0
}
