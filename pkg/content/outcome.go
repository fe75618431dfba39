package content

import (
	"strings"
)

// Verdict says whether a run succeeded.
type Verdict string

// Canceled is the verdict of a run that the manager interrupted.
const (
	Succeeded Verdict = "Succeeded"
	Failed    Verdict = "Failed"
	Canceled  Verdict = "Canceled"
)

// Reason is the machine-readable reason of a condition, in CamelCase.
type Reason string

// The reasons that every kind of content may give. ReasonSuccessful and ReasonCanceled
// belong to their verdicts, all others to Failed.
const (
	ReasonSuccessful    Reason = "Successful"
	ReasonFailed        Reason = "Failed"
	ReasonTimeout       Reason = "Timeout"
	ReasonRunnerCrashed Reason = "RunnerCrashed"
	ReasonCanceled      Reason = "Canceled"
	// ReasonInvalidSpec: the content cannot work with the CR's spec.
	ReasonInvalidSpec Reason = "InvalidSpec"
	// ReasonInvalidAnnotation: an annotation of ours does not parse.
	ReasonInvalidAnnotation Reason = "InvalidAnnotation"
)

// Outcome is the result of a run, as it is reported.
type Outcome struct {
	Verdict Verdict
	Reason  Reason
	// Message is for people: ≤ 4 KiB, valid UTF-8, without control characters other than
	// tabs and line feeds. The same failure gives the same message. That of a success only
	// stands in the log.
	Message string
}

// maxMessage is the longest message of an Outcome in bytes.
const maxMessage = 4 << 10

// Explained returns the outcome of a run. Its message is fit to be shown, whatever the content made
// of it, and that of a failure ends with the rights that the run lacked. The controller calls it for
// the outcomes of all kinds of content.
func (o Outcome) Explained(job Job) Outcome {
	o.Message = Shown(o.Message)
	if o.Verdict != Failed || job.Denied == nil {
		return o
	}
	denied := job.Denied()
	if denied == "" {
		return o
	}
	if room := maxMessage - len(denied) - 1; len(o.Message) > room {
		o.Message = strings.ToValidUTF8(o.Message[:room-len(cutMark)], "") + cutMark
	}
	o.Message += "\n" + denied
	return o
}
