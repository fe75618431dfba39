package controller

import (
	"maps"

	"github.com/ensign-operator/ensign/pkg/content"
)

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
