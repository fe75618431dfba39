package status

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/internal/sanitize"
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
	ReasonRunning = "Running"
	// ReasonPaused is the reason while an annotation keeps runs from starting.
	ReasonPaused = "Paused"
	// ReasonTriggered is the only reason of SlowedDown.
	ReasonTriggered = "TriggeredTooOften"
	// ReasonUnwritable is set when the kind's schema refuses the result of a run.
	ReasonUnwritable = "StatusRefused"
	// ReasonUnhealthy is the reason of Ready while children are not Current, ReasonLooking until that is known.
	ReasonUnhealthy = "Unhealthy"
	ReasonLooking   = "ObservingObjects"
	// ReasonRetrying is the reason of Reconciling after a failure.
	ReasonRetrying = "Retrying"
)

const (
	messageRunning   = "Running reconciliation"
	messageAwaiting  = "Awaiting next reconciliation"
	messageSucceeded = "Last reconciliation succeeded"
	messageFailed    = "Last reconciliation failed"
	messageCanceled  = "Reconciliation was canceled"
	messageRefused   = "The schema of this kind refuses the result of the run; the operator's log says why"
	messagePaused    = "Nothing is run while the resource is paused"
	messageLooking   = "The objects of the resource have not been observed since the run"
	messageEnded     = "The run was canceled by the resource's annotation; the next change or request starts another"
)

// Report is a change of a status: the one type of all that is written to it. Conditions and
// keys that it does not name stay as they are.
type Report struct {
	generation int64
	conditions []metav1.Condition
	// onlyNew holds conditions that are set only if the existing one of their type observes
	// another generation.
	onlyNew []metav1.Condition
	// counts is the ansibleResult of those of Ensign's own conditions that are True; nil is none.
	counts map[string]any
	// removed are the types of conditions that the status must not have.
	removed []string
	// fields are keys of the status with their values; nil removes one.
	fields map[string]any
	// nothingRan is true if the report is about no run: the status keeps the run before, without
	// the time of its retry.
	nothingRan bool
	// idle is true for a report that does not make the generation observed.
	idle bool
	// during is true for a report that is only written over a status that shows a current run.
	during bool

	// The next fields decide about the conditions of kstatus: see readiness.
	moment  moment
	outcome content.Outcome
	// again is true if this manager has reported the generation before.
	again, asked, stalled bool
	// ran is true if the report is of a run of the content with this digest.
	health        *Health
	ran           bool
	contentDigest string
	readyBy       string
	wroteReady    bool
}

// with returns the report with a key of the status.
func (r Report) with(key string, value any) Report {
	fields := map[string]any{}
	maps.Copy(fields, r.fields)
	fields[key] = value
	r.fields = fields
	return r
}

func condition(kind Type, status metav1.ConditionStatus, reason content.Reason, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: message}
}

// Started reports that a run of the generation begins. For a generation that has not been
// reported yet, Successful becomes False, so that `kubectl wait` does not see an older
// result. again is true if the generation was reported before; the conditions show that
// only if the kind's schema keeps their observedGeneration.
func Started(generation int64, again bool) Report {
	report := Report{
		generation: generation, moment: momentStarts, again: again,
		conditions: []metav1.Condition{condition(Running, "True", ReasonRunning, messageRunning)},
	}
	if !again {
		report.onlyNew = []metav1.Condition{condition(Successful, "False", ReasonRunning, messageRunning)}
	}
	return report
}

// Finished reports the result of a run, or why nothing runs.
func Finished(generation int64, result content.Result) Report {
	report := finished(generation, result)
	report.outcome = result.Outcome
	report.wroteReady = slices.ContainsFunc(result.Conditions, func(c metav1.Condition) bool { return c.Type == string(Ready) })
	report.removed = result.Removed
	for key, value := range result.Fields {
		report = report.with(key, value)
	}
	report.conditions = append(report.conditions, result.Conditions...)
	return report
}

func finished(generation int64, result content.Result) Report {
	switch result.Outcome.Verdict {
	case content.Succeeded:
		return succeeded(generation, result.Counts)
	case content.Canceled:
		return Report{generation: generation, moment: momentCanceled, conditions: []metav1.Condition{
			condition(Running, "False", content.ReasonCanceled, messageCanceled),
		}}
	default:
		return failed(generation, result.Outcome, result.Counts)
	}
}

// Paused reports that nothing runs for now. The result of the generation before stays.
func Paused(generation int64) Report {
	return Report{generation: generation, idle: true, moment: momentPaused, conditions: []metav1.Condition{
		condition(Running, "False", ReasonPaused, messagePaused),
	}}
}

// Confirmed reports that an earlier manager's run of the generation succeeded, where the status lacks
// Ready: that manager did not know it.
func Confirmed(generation int64) Report {
	return Report{generation: generation, idle: true, moment: momentConfirmed}
}

// Slowed reports that the CR's runs are slowed down, and the reason; "" means that they no longer
// are.
func Slowed(generation int64, by string) Report {
	if by == "" {
		return Report{generation: generation, idle: true, removed: []string{string(SlowedDown)}}
	}
	return Report{generation: generation, idle: true, conditions: []metav1.Condition{
		condition(SlowedDown, "True", ReasonTriggered, MessageSlowed(by)),
	}}
}

// MessageSlowed says by what a CR's runs are slowed down.
func MessageSlowed(by string) string {
	return "Too many triggers, perhaps by its own runs; runs are slowed down: " + by
}

// Progress is the current step of a run.
type Progress struct {
	// Task is the one that the run executes since Since; "": none yet.
	Task  string
	Since time.Time
	// Place is where a run outside of the manager executes. Waits is the thing that it waits for.
	// Both may be "".
	Place, Waits string
}

// String returns the progress in words, which are cut where they are long.
func (p Progress) String() string {
	words := messageRunning
	if p.Place != "" {
		words += " in " + bounded(sanitize.Text(p.Place), maxTask)
	}
	switch {
	case p.Waits != "":
		return words + ", waiting: " + bounded(sanitize.Text(p.Waits), maxWaits)
	case p.Task != "":
		return fmt.Sprintf("%s: task %s since %s", words, strconv.Quote(bounded(sanitize.Text(p.Task), maxTask)), p.Since.UTC().Format(time.RFC3339))
	}
	return words
}

// Working reports the current step of the run. It is only written over a status that shows a
// running run.
func Working(generation int64, p Progress) Report {
	return Report{generation: generation, idle: true, during: true, conditions: []metav1.Condition{
		condition(Running, "True", ReasonRunning, p.String()),
	}}
}

// Unwritable reports that a run has ended whose result the kind's schema refuses. It is only
// written over a status that shows a running run.
func Unwritable(generation int64) Report {
	return Report{
		generation: generation, idle: true, during: true, moment: momentFailed, stalled: true,
		outcome:    content.Outcome{Reason: ReasonUnwritable, Message: messageRefused},
		conditions: []metav1.Condition{condition(Running, "False", ReasonUnwritable, messageRefused)},
	}
}

func succeeded(generation int64, counts map[string]any) Report {
	const reason = content.ReasonSuccessful
	return Report{generation: generation, moment: momentSucceeded, counts: counts, fields: map[string]any{digestKey: nil}, conditions: []metav1.Condition{
		condition(Running, "True", reason, messageAwaiting),
		condition(Successful, "True", reason, messageSucceeded),
		condition(Failure, "False", reason, ""),
	}}
}

func failed(generation int64, outcome content.Outcome, counts map[string]any) Report {
	const reason = content.ReasonFailed
	return Report{generation: generation, moment: momentFailed, counts: counts, conditions: []metav1.Condition{
		condition(Running, "False", reason, messageFailed),
		condition(Successful, "False", reason, messageFailed),
		condition(Failure, "True", outcome.Reason, outcome.Message),
	}}
}
