package jobevent

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// maxMessage is the maximum length of an outcome's message in bytes.
const maxMessage = 4 << 10

const (
	unknownFailure = "unknown playbook failure"
	noHosts        = "no host took part: the pattern under hosts in the play matches no host of the inventory"
	noPlay         = "no play started on a host, as far as the run's events tell"
)

// Cause says why a run's processes ended.
type Cause string

const (
	// Exited means that ansible-runner ended by itself.
	Exited Cause = "Exited"
	// TimedOut means that the manager ended the run because it took longer than its timeout.
	TimedOut Cause = "TimedOut"
	// Idle means that the manager ended the run because nothing had come from it for too long.
	Idle Cause = "Idle"
	// Interrupted means that the manager ended the run because its context had ended (shutdown,
	// lost lease, deleted CR).
	Interrupted Cause = "Interrupted"
	// Crashed means that ansible-runner could not be started, or its events could not be read.
	Crashed Cause = "Crashed"
)

// ProcessExit says how a run's processes ended.
type ProcessExit struct {
	// ExitCode is ansible-runner's exit code. After a signal it is negative, as in Python:
	// -9 for SIGKILL. It has no meaning if Cause is Crashed.
	ExitCode int
	Cause    Cause
	// Err gives details if Cause is not Exited. Its text becomes part of the outcome's
	// message, so the same fault must give the same text.
	Err error
	// Output is the end of the text without a job event, ≤ 4 KiB. It explains a run that
	// ended without statistics.
	Output string
	// Hint says what else may have made the run fail and what to do about it, in less than
	// 1 KiB. It is the end of the message of a failure.
	Hint string
	// RunLimit is how a remedy names the setting that limits how many runs execute at once.
	RunLimit string
}

// The reasons that the outcome of a run can have beside those of every kind of content. All
// belong to content.Failed.
const (
	ReasonUnreachable  content.Reason = "Unreachable"
	ReasonNoHosts      content.Reason = "NoHosts"
	ReasonNoStats      content.Reason = "NoStats"
	ReasonContentError content.Reason = "ContentError"
)

// DetermineOutcome returns the outcome of a run. A run succeeded if and only if ansible-runner exited
// with 0, a play started on a host, the run's statistics count no failure, no host was
// unreachable in the end, and no task asked for an invalid requeue period. The first rule
// that matches decides.
func DetermineOutcome(e ProcessExit, s Summary) content.Outcome {
	switch {
	case e.Cause == Crashed:
		return explained(e, content.ReasonRunnerCrashed, "ansible-runner could not be run", cause(e))
	case e.ExitCode == 0 && succeeded(s):
		return content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful, Message: ""}
	case e.Cause == Interrupted:
		return content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "run canceled"}
	case e.Cause == TimedOut:
		return failed(e, content.ReasonTimeout, "the run took longer than its timeout", cause(e), at(s))
	case e.Cause == Idle:
		return failed(e, content.ReasonTimeout, "the run was idle", cause(e), at(s))
	case signalName(e.ExitCode) != "":
		return explained(e, content.ReasonRunnerCrashed, "ansible-runner was ended by "+signalName(e.ExitCode), at(s), failures(s))
	case !s.StatsSeen && s.Refusal != nil:
		return refused(e, s)
	case !s.StatsSeen:
		return explained(e, ReasonNoStats, early(e), at(s), failures(s))
	}
	return judgeStats(e, s)
}

// early says how a run without statistics ended. ansible-runner exits with 254 when it was
// told to end.
func early(e ProcessExit) string {
	if e.ExitCode == 254 {
		return "ansible-runner was told to end (exit code 254) by somebody other than this operator"
	}
	return fmt.Sprintf("ansible-runner exited with code %d before the run ended", e.ExitCode)
}

// refused returns the outcome of a run whose content Ansible refused to load. The message
// begins with Ansible's own words, because lists of CRs show the beginning of a message.
func refused(e ProcessExit, s Summary) content.Outcome {
	message := strings.TrimPrefix(output(e), "[ERROR]: ")
	if message == "" {
		message = early(e)
	}
	if e.Hint == "" && len(s.Refusal.Near) > 0 {
		e.Hint = "did you mean " + strings.Join(s.Refusal.Near, " or ") + "?"
	}
	return failed(e, ReasonContentError, "Ansible cannot load the content"+place(s.Refusal.Place)+": "+clip(message, maxMessage/2), at(s), failures(s))
}

// judgeStats returns the outcome of a run that ended by itself and reported statistics.
func judgeStats(e ProcessExit, s Summary) content.Outcome {
	switch {
	case s.Failures > 0:
		return failed(e, content.ReasonFailed, failures(s))
	case s.Lost > 0:
		return failed(e, ReasonUnreachable, failures(s))
	case !s.started() && s.Unmatched > 0:
		return failed(e, ReasonNoHosts, noHosts)
	case !s.started():
		return explained(e, content.ReasonFailed, noPlay)
	case s.BadRequeue == nil:
		return explained(e, content.ReasonFailed, fmt.Sprintf("ansible-runner exited with code %d although no task failed", e.ExitCode))
	}
	return failed(e, content.ReasonFailed, failures(s))
}

func succeeded(s Summary) bool {
	return s.StatsSeen && s.started() && s.Failures == 0 && s.Lost == 0 && s.BadRequeue == nil
}

func failed(e ProcessExit, r content.Reason, parts ...string) content.Outcome {
	e.Output = ""
	return explained(e, r, parts...)
}

// explained returns a failure. Its message consists of the parts, of the output, and of the
// hint or a remedy. The output gets at least half of the space and loses its beginning if
// it is too long. If the disk is full, the output is left out: a full disk ends a run
// anywhere, with a different traceback each time, and the hint is enough.
func explained(e ProcessExit, r content.Reason, parts ...string) content.Outcome {
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	message, printed := strings.Join(parts, "\n"), output(e)
	if e.Hint != "" && diskWords.MatchString(printed) {
		printed = ""
	}
	help := cmp.Or(e.Hint, e.remedy(message), e.remedy(printed))
	room := maxMessage - len(help) - 1
	if printed == "" {
		message = clip(message, room)
	} else {
		message = clip(message, room-min(len(printed)+1, room/2)) + "\n"
		message += clipFront(printed, room-len(message))
	}
	if help != "" {
		message += "\n" + help
	}
	return content.Outcome{Verdict: content.Failed, Reason: r, Message: message}
}

func cause(e ProcessExit) string {
	if e.Err == nil {
		return ""
	}
	return stabilize(clipVisible(e.Err.Error(), maxMessage))
}

// at names the task that was running when the run ended.
func at(s Summary) string {
	if s.StatsSeen || s.Task == "" {
		return ""
	}
	return fmt.Sprintf("ended in play [%s], task [%s]%s", s.Play, s.Task, place(s.TaskPath))
}

// failures describes the failed tasks, as many as there is space for. It sorts them by host,
// because hosts report in any order.
func failures(s Summary) string {
	var lines []string
	all := slices.Concat(s.Failed, s.UnreachableHosts)
	slices.SortStableFunc(all, func(a, b TaskFailure) int { return cmp.Compare(a.Host, b.Host) })
	for _, f := range all {
		lines = append(lines, f.String())
	}
	if more := s.Failures + s.Lost - len(lines); more > 0 && len(lines) > 0 {
		lines = append(lines, fmt.Sprintf("(and %d more)", more))
	} else if more > 0 {
		lines = append(lines, unknownFailure)
	}
	if s.BadRequeue != nil {
		lines = append(lines, s.BadRequeue.String())
	}
	return strings.Join(lines, "\n")
}

func (f TaskFailure) String() string {
	message := f.Message
	if message == "" {
		message = unknownFailure
	}
	return fmt.Sprintf("play [%s], task [%s]%s, host [%s]: %s", f.Play, f.Task, place(f.TaskPath), f.Host, message)
}

func place(place string) string {
	if place == "" {
		return ""
	}
	return " (" + place + ")"
}

// banner matches the text that ansible-playbook prints about itself if it is verbose.
var banner = regexp.MustCompile(`(?s)\Aansible-playbook \[core .*?\n(No config file found; using defaults|Using \S+ as config file)\n?`)

// output returns the part of the output that explains a run without statistics: from
// Ansible's last error message on, or all of it if there is none.
func output(e ProcessExit) string {
	text := banner.ReplaceAllLiteralString(strings.TrimSpace(stabilize(sanitize.Text(e.Output))), "")
	if secretPath.MatchString(text) {
		text = maskInvalid(text)
	}
	for _, prefix := range []string{"[ERROR]:", "ERROR! "} {
		if i := strings.LastIndex(text, prefix); i >= 0 {
			return text[i:]
		}
	}
	return text
}
