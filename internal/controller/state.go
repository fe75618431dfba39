package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/pkg/content"
)

// state is the manager's memory of the CR with one name between two attempts. The queue gives a
// name to one attempt at a time, and only that attempt uses the state: it needs no lock. A restart
// loses the state. Content then runs once more, unless the CR's status proves that the same version
// already succeeded with the same content.
type state struct {
	// version is the version that content ran for last, or runs for now. The other fields
	// belong to the object with its UID.
	version version
	// last is the conclusion of that run. It is nil during the run, and after a run without
	// one: this manager ceased to lead, the CR was deleted, or there was a panic.
	last *conclusion
	// unwritten is true until last has been written to the CR's status.
	unwritten bool
	// answered are the requests that a run has answered last.
	answered string
	// failures counts the consecutive failed runs of this version's spec.
	failures int
	// repeats counts those of them that failed the same way, up to the last one.
	repeats int
	// healthWritten is when the health of children was written last.
	healthWritten time.Time
	// fields are those of children that were written last.
	fields map[string]any
	// due is when content runs again although nothing changed; the zero time is never.
	due time.Time
	// throttle bounds the runs that nobody asked for.
	throttle throttle
	// locked is true while the run waits for that of another shard.
	locked bool
	// released is true once the manager has removed its finalizer.
	released bool
}

// isNew reports whether no run of the object has begun and nothing is known of an earlier one.
func (st *state) isNew() bool { return st.last == nil && st.version == version{uid: st.version.uid} }

// entry is all that is kept of a name: the state for its attempts, and the mailbox for its
// events and attempts.
type entry struct {
	state   state
	mailbox mailbox
	// phase is the one in which states counts the CR, and guarded by its lock.
	phase Phase
}

// begin forgets a predecessor of the same name. The reason for which the name is dirty stays: it
// may be about the new object, and one more run does no harm.
func (e *entry) begin(uid types.UID) {
	e.state = state{version: version{uid: uid}}
	e.mailbox.reset()
}

// states holds the entry of each CR of a watch, by name.
type states struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*entry
	// phases has the number of entries in each phase; nil before the first.
	phases map[Phase]int
}

// of returns the entry of the name, a new one if there is none: a CR that waits.
func (s *states) of(name types.NamespacedName) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName == nil {
		s.byName = map[types.NamespacedName]*entry{}
	}
	found := s.byName[name]
	if found == nil {
		found = &entry{}
		s.byName[name] = found
		s.count(found, PhaseWaiting)
	}
	return found
}

// forget drops the entry of the name.
func (s *states) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		s.count(found, uncounted)
		delete(s.byName, name)
	}
}

// mailboxOf returns the mailbox of the name; nil if nothing is kept of it.
func (s *states) mailboxOf(name types.NamespacedName) *mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		return &found.mailbox
	}
	return nil
}

// Phase is where a CR stands. Metrics count CRs by it, so that a CR that fails is seen for as long
// as it fails, however rare or long its runs are.
type Phase string

const (
	// PhaseWaiting is a CR whose content must run and has not begun: for want of a slot, for the throttle, for
	// another shard's run, for its Job's pod, or because no attempt has looked at the CR yet.
	PhaseWaiting Phase = "waiting"
	// PhaseRunning is a CR whose content runs, and the run before did not fail.
	PhaseRunning Phase = "running"
	// PhaseSucceeded is a CR whose last run succeeded or had nothing to do; nothing has changed since.
	PhaseSucceeded Phase = "succeeded"
	// PhaseFailed is a CR whose last run failed. So it stays while the next one waits and runs.
	PhaseFailed Phase = "failed"
	// PhaseRefused is a CR for which nothing runs until it changes.
	PhaseRefused Phase = "refused"
	// PhasePaused is a CR for which nothing runs while it is paused.
	PhasePaused Phase = "paused"

	// uncounted is a CR that is not the watch's.
	uncounted Phase = ""
)

// noPhases counts nothing in each phase.
func noPhases() map[Phase]int {
	return map[Phase]int{PhaseWaiting: 0, PhaseRunning: 0, PhaseSucceeded: 0, PhaseFailed: 0, PhaseRefused: 0, PhasePaused: 0}
}

// phaseFound returns the phase of the CR as the attempt found it; now is the phase until then.
func (a *attempt) phaseFound(now Phase) Phase {
	last := a.state.last
	refused := last != nil && last.refused
	switch {
	case a.step == ignore:
		return uncounted
	case a.step == abandon, a.step == rewrite:
		return now
	case a.step == reportPaused:
		return PhasePaused
	case refused && a.step == upToDate:
		return PhaseRefused
	case !refused && a.before.Verdict == content.Failed:
		return PhaseFailed
	case a.step == upToDate, a.step == rest:
		return PhaseSucceeded
	}
	return PhaseWaiting
}

// phaseAfter returns the phase of a CR after its conclusion.
func (c *conclusion) phaseAfter() Phase {
	switch {
	case c.refused:
		return PhaseRefused
	case c.canceled, c.Outcome.Verdict == content.Failed:
		return PhaseFailed
	case c.Outcome.Verdict == content.Succeeded:
		return PhaseSucceeded
	}
	return PhaseWaiting
}

// move counts the CR in another phase. A CR that fails keeps this phase until a run has another
// result. Its next run does not change it.
func (s *states) move(e *entry, to Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.phase == PhaseFailed && (to == PhaseWaiting || to == PhaseRunning) {
		return
	}
	s.count(e, to)
}

// count is move without its rule. The caller holds the lock.
func (s *states) count(e *entry, to Phase) {
	if s.phases == nil {
		s.phases = noPhases()
	}
	s.phases[e.phase]--
	s.phases[to]++
	e.phase = to
}

// Resources returns how many CRs are in each phase.
func (r *Reconciler) Resources() map[Phase]int {
	r.states.mu.Lock()
	defer r.states.mu.Unlock()
	all := noPhases()
	maps.Copy(all, r.states.phases)
	delete(all, uncounted)
	return all
}

// Attempts counts the running attempts of a manager. Its Stop is the first phase
// of the manager's stop: no attempt begins any more and all runs are ended, while the API
// stays within reach, so that their results can still be written.
type Attempts struct {
	mu      sync.Mutex
	live    sync.WaitGroup
	stopped context.Context //nolint:containedctx // It is the group's own end, not a caller's.
	stop    context.CancelCauseFunc
}

// NewAttempts makes a group that is open.
func NewAttempts() *Attempts {
	stopped, stop := context.WithCancelCause(context.Background())
	return &Attempts{stopped: stopped, stop: stop}
}

// Enter begins an attempt. runCtx ends with ctx and with Stop; done must be called when the
// attempt is over. ok is false after Stop.
func (g *Attempts) Enter(ctx context.Context) (runCtx context.Context, done func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped.Err() != nil {
		return nil, nil, false
	}
	g.live.Add(1)
	runCtx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(g.stopped, func() { cancel(context.Cause(g.stopped)) })
	return runCtx, func() {
		unlink()
		cancel(nil)
		g.live.Done()
	}, true
}

// Stop ends all runs and admits no more. It does not wait.
func (g *Attempts) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop(errStopped)
}

// Stopped reports whether Stop was called.
func (g *Attempts) Stopped() bool { return g.stopped.Err() != nil }

// Wait returns when all attempts are done, or with an error when ctx ends first.
func (g *Attempts) Wait(ctx context.Context) error {
	left := make(chan struct{})
	go func() {
		g.live.Wait()
		close(left)
	}()
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
