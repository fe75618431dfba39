package status

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ensign-operator/ensign/internal/visible"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Type is a condition type that Ensign owns. Each stands at most once in
// status.conditions.
type Type string

// The condition types that Ensign owns: see docs/reference-status.md.
const (
	Running    Type = "Running"
	Successful Type = "Successful"
	Failure    Type = "Failure"
	// SlowedDown stands in a status only while the CR is triggered too often.
	SlowedDown Type = "SlowedDown"
)

// The reasons beside those of a run's outcome, which package content has.
const (
	// ReasonRunning is the reason while content runs.
	ReasonRunning content.Reason = "Running"
	// ReasonPaused is the reason while an annotation keeps runs from starting.
	ReasonPaused content.Reason = "Paused"
	// ReasonTriggered is the only reason of SlowedDown.
	ReasonTriggered content.Reason = "TriggeredTooOften"
	// ReasonUnwritable is set when the kind's schema refuses the result of a run.
	ReasonUnwritable content.Reason = "StatusRefused"
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

// Report is a change of the conditions that Ensign owns. Conditions that it does not name
// stay as they are.
type Report struct {
	generation int64
	conditions []condition
	// onlyNew holds conditions that are set only if the existing one of their type observes
	// another generation.
	onlyNew []condition
	// removed are the types of conditions that the status must not have.
	removed []string
	// fields are keys of the status with their values; nil removes one.
	fields map[string]any
	// success is true for a report of success. digest is that of what its run depended on,
	// "" if unknown.
	success bool
	digest  string
	// run is the run that the report is about; nil if it says nothing of one.
	run *LastRun
	// requested is the request that the report answers, "" if there was none.
	requested string
	// idle is true for a report that does not make the generation observed.
	idle bool
	// during is true for a report that is only written over a status that shows a run at work.
	during bool
}

type condition struct {
	kind    Type
	status  string
	reason  content.Reason
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

// Finished reports the result of a run.
func Finished(generation int64, result content.Result) Report {
	report := finished(generation, result)
	report.fields, report.removed = result.Fields, result.Removed
	for _, c := range result.Conditions {
		report.conditions = append(report.conditions, condition{kind: Type(c.Type), status: c.Status, reason: c.Reason, message: c.Message})
	}
	return report
}

func finished(generation int64, result content.Result) Report {
	switch result.Outcome.Verdict {
	case content.Succeeded:
		return succeeded(generation, result.Counts)
	case content.Canceled:
		return Report{generation: generation, conditions: []condition{
			{kind: Running, status: "False", reason: content.ReasonCanceled, message: messageCanceled},
		}}
	default:
		return failed(generation, result.Outcome, result.Counts)
	}
}

// Paused reports that nothing runs for now. The result of the generation before stays.
func Paused(generation int64) Report {
	return Report{generation: generation, idle: true, conditions: []condition{
		{kind: Running, status: "False", reason: ReasonPaused, message: messagePaused},
	}}
}

// Slowed reports that the CR's runs are slowed down, and by what; "" is nothing any more.
func Slowed(generation int64, by string) Report {
	if by == "" {
		return Report{generation: generation, idle: true, removed: []string{string(SlowedDown)}}
	}
	return Report{generation: generation, idle: true, conditions: []condition{
		{kind: SlowedDown, status: "True", reason: ReasonTriggered, message: MessageSlowed(by)},
	}}
}

// MessageSlowed says by what a CR's runs are slowed down.
func MessageSlowed(by string) string {
	return "Runs are slowed down, because the resource is triggered again and again, perhaps by its own runs: " + by
}

// Working reports the task that the run executes, and since when. It is only written over a
// status that shows a run at work. A long name is cut.
func Working(generation int64, task string, since time.Time) Report {
	name := strconv.Quote(bounded(visible.Text(task), maxTask))
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
func Refused(generation int64, reason content.Reason, message string) Report {
	return failed(generation, content.Outcome{Verdict: content.Failed, Reason: reason, Message: message}, nil)
}

func succeeded(generation int64, result map[string]any) Report {
	const reason = content.ReasonSuccessful
	return Report{generation: generation, success: true, conditions: []condition{
		{kind: Running, status: "True", reason: reason, message: messageAwaiting, result: result},
		{kind: Successful, status: "True", reason: reason, message: messageSucceeded, result: result},
		{kind: Failure, status: "False", reason: reason},
	}}
}

func failed(generation int64, outcome content.Outcome, result map[string]any) Report {
	const reason = content.ReasonFailed
	return Report{generation: generation, conditions: []condition{
		{kind: Running, status: "False", reason: reason, message: messageFailed},
		{kind: Successful, status: "False", reason: reason, message: messageFailed},
		{kind: Failure, status: "True", reason: outcome.Reason, message: outcome.Message, result: result},
	}}
}
