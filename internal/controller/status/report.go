package status

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
)

// Type is a condition type that Ensign owns. Each stands at most once in
// status.conditions.
type Type string

// The condition types that Ensign owns: see docs/reference-status.md.
const (
	Running    Type = "Running"
	Successful Type = "Successful"
	Failure    Type = "Failure"
)

// The reasons beside those of a run's outcome, which jobevent has.
const (
	// ReasonRunning is the reason while content runs.
	ReasonRunning jobevent.Reason = "Running"
	// ReasonPaused is the reason while an annotation keeps runs from starting.
	ReasonPaused jobevent.Reason = "Paused"
	// ReasonUnwritable is set when the kind's schema refuses the result of a run.
	ReasonUnwritable jobevent.Reason = "StatusRefused"
	// ReasonInvalidSpec is set when the CR's spec cannot become variables.
	ReasonInvalidSpec jobevent.Reason = "InvalidSpec"
	// ReasonInvalidAnnotation is set when an annotation of ours does not parse.
	ReasonInvalidAnnotation jobevent.Reason = "InvalidAnnotation"
)

const (
	messageRunning   = "Running reconciliation"
	messageAwaiting  = "Awaiting next reconciliation"
	messageSucceeded = "Last reconciliation succeeded"
	messageFailed    = "Last reconciliation failed"
	messageCanceled  = "Reconciliation was canceled"
	messageRefused   = "The schema of this kind refuses the result of the run; the operator's log says why"
	messagePaused    = "Nothing is run while the resource is paused"
)

// completionFormat is the base image's: microseconds without trailing zeros, UTC.
const completionFormat = "2006-01-02T15:04:05.999999+00:00"

// Report is a change of the conditions that Ensign owns. Conditions that it does not name
// stay as they are.
type Report struct {
	generation int64
	conditions []condition
	// onlyNew holds conditions that are set only if the existing one of their type observes
	// another generation.
	onlyNew []condition
	// success is true for a report of success. digest is that of what its run depended on,
	// "" if unknown.
	success bool
	digest  string
	// idle is true for a report that does not make the generation observed.
	idle bool
	// during is true for a report that is only written over a status that shows a run at work.
	during bool
}

type condition struct {
	kind    Type
	status  string
	reason  jobevent.Reason
	message string
	result  map[string]any
}

// Started reports that a run of the generation begins. For a generation that has not been
// reported yet, Successful becomes False, so that `kubectl wait` does not see an older
// result. again is true if the generation was reported before; the conditions show that
// only if the kind's schema keeps their observedGeneration.
func Started(generation int64, again bool) Report {
	report := Report{
		generation: generation,
		conditions: []condition{{kind: Running, status: "True", reason: ReasonRunning, message: messageRunning}},
	}
	if !again {
		report.onlyNew = []condition{{kind: Successful, status: "False", reason: ReasonRunning, message: messageRunning}}
	}
	return report
}

// Finished reports the outcome of a run.
func Finished(generation int64, outcome jobevent.Outcome, summary jobevent.Summary) Report {
	switch outcome.Verdict {
	case jobevent.Succeeded:
		return succeeded(generation, ansibleResult(summary))
	case jobevent.Canceled:
		return Report{generation: generation, conditions: []condition{
			{kind: Running, status: "False", reason: jobevent.ReasonCanceled, message: messageCanceled},
		}}
	default:
		return failed(generation, outcome, ansibleResult(summary))
	}
}

// Paused reports that nothing runs for now. The result of the generation before stays.
func Paused(generation int64) Report {
	return Report{generation: generation, idle: true, conditions: []condition{
		{kind: Running, status: "False", reason: ReasonPaused, message: messagePaused},
	}}
}

// Working reports the task that the run executes, and since when. It is only written over a
// status that shows a run at work. A long name is cut.
func Working(generation int64, task string, since time.Time) Report {
	name := strconv.Quote(bounded(jobevent.Visible(task), maxTask))
	return Report{generation: generation, idle: true, during: true, conditions: []condition{{
		kind: Running, status: "True", reason: ReasonRunning,
		message: fmt.Sprintf("%s: task %s since %s", messageRunning, name, since.UTC().Format(time.RFC3339)),
	}}}
}

// Unwritable reports that a run has ended whose result the kind's schema refuses. It is only
// written over a status that shows a run at work.
func Unwritable(generation int64) Report {
	return Report{generation: generation, idle: true, during: true, conditions: []condition{
		{kind: Running, status: "False", reason: ReasonUnwritable, message: messageRefused},
	}}
}

// Refused reports why nothing runs.
func Refused(generation int64, reason jobevent.Reason, message string) Report {
	return failed(generation, jobevent.Outcome{Verdict: jobevent.Failed, Reason: reason, Message: message}, nil)
}

func succeeded(generation int64, result map[string]any) Report {
	const reason = jobevent.ReasonSuccessful
	return Report{generation: generation, success: true, conditions: []condition{
		{kind: Running, status: "True", reason: reason, message: messageAwaiting, result: result},
		{kind: Successful, status: "True", reason: reason, message: messageSucceeded, result: result},
		{kind: Failure, status: "False", reason: reason},
	}}
}

func failed(generation int64, outcome jobevent.Outcome, result map[string]any) Report {
	const reason = jobevent.ReasonFailed
	return Report{generation: generation, conditions: []condition{
		{kind: Running, status: "False", reason: reason, message: messageFailed},
		{kind: Successful, status: "False", reason: reason, message: messageFailed},
		{kind: Failure, status: "True", reason: outcome.Reason, message: outcome.Message, result: result},
	}}
}

// ansibleResult returns the counts of a run; nil if Ansible did not report them.
func ansibleResult(s jobevent.Summary) map[string]any {
	if !s.StatsSeen {
		return nil
	}
	return map[string]any{
		"ok":         int64(s.OK),
		"changed":    int64(s.Changed),
		"skipped":    int64(s.Skipped),
		"failures":   int64(s.Failures),
		"completion": completion(s.Completion),
	}
}

func completion(at time.Time) string { return at.UTC().Format(completionFormat) }
