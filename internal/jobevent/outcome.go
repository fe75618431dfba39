package jobevent

// Cause says what ended a run's processes.
type Cause string

// The ways in which a run ends.
const (
	// Exited: ansible-runner ended by itself.
	Exited Cause = "Exited"
	// TimedOut: the run was ended because it took longer than its timeout.
	TimedOut Cause = "TimedOut"
	// Interrupted: the run was ended because its context was: shutdown, lost
	// lease, deleted CR.
	Interrupted Cause = "Interrupted"
	// Crashed: ansible-runner could not be started, or what it reports could not
	// be read.
	Crashed Cause = "Crashed"
)

// Ending is how a run's processes ended.
type Ending struct {
	// ExitCode is ansible-runner's; -1 when a signal ended it or it never started.
	ExitCode int
	Cause    Cause
	// Err says more where Cause is not Exited. Its text becomes part of the
	// outcome's message, so it must be the same for the same fault.
	Err error
	// Output is the tail of what was printed and was no event, ≤ 4 KiB. It
	// explains a run that ended without stats.
	Output string
}

// Verdict is what a run came to.
type Verdict string

// The verdicts.
const (
	Succeeded Verdict = "Succeeded"
	Failed    Verdict = "Failed"
	Canceled  Verdict = "Canceled"
)

// Reason is the machine-readable reason of a condition, in CamelCase.
type Reason string

// The reasons that the outcome of a run can have. ReasonSuccessful and
// ReasonCanceled belong to their verdicts, all others to Failed.
const (
	ReasonSuccessful    Reason = "Successful"
	ReasonFailed        Reason = "Failed"
	ReasonTimeout       Reason = "Timeout"
	ReasonUnreachable   Reason = "Unreachable"
	ReasonNoHosts       Reason = "NoHosts"
	ReasonNoStats       Reason = "NoStats"
	ReasonRunnerCrashed Reason = "RunnerCrashed"
	ReasonCanceled      Reason = "Canceled"
)

// Outcome is what is reported about a run.
type Outcome struct {
	Verdict Verdict
	Reason  Reason
	// Message is for people: ≤ 4 KiB, valid UTF-8 without control characters
	// other than line feeds, and the same for the same failure.
	Message string
}

// Judge says what a run came to. It succeeded exactly when ansible-runner
// exited with 0 and this run's stats count at least one host, no failure and no
// unreachable host, and no task asked for an unusable requeue period.
func Judge(e Ending, s Summary) Outcome { return Outcome{} }
