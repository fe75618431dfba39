package runner

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/process"
)

// output is the text of a run without a job event. Its parts are complete once the process
// has been waited for.
type output struct {
	// displayed is the end of the text that Ansible displayed. The process has the end of the
	// text that was written to the standard error. Their order is not known.
	displayed process.Tail
	// taskStarted is true once a task has started.
	taskStarted bool
}

// decode calls handle with the job events of a run, in order, until the end of its records.
func (o *output) decode(records io.Reader, handle func(jobevent.Event)) error {
	return jobevent.Decode(records, jobevent.Handler{
		Event: func(e jobevent.Event) {
			o.taskStarted = o.taskStarted || e.Task != ""
			handle(e)
		},
		Output: func(line string) { _, _ = o.displayed.Write([]byte(line + "\n")) },
	})
}

// text returns the end of all text without a job event. Text that Ansible displayed comes
// last, because it has the error that ended the run.
func (o *output) text(printed string) string {
	if o.taskStarted {
		printed = jobevent.SafeOutput(printed)
	}
	if printed != "" && !strings.HasSuffix(printed, "\n") {
		printed += "\n"
	}
	var all process.Tail
	_, _ = all.Write([]byte(printed))
	_, _ = all.Write([]byte(o.displayed.String()))
	return all.String()
}

// ending returns how a run ended. A run that was told to end and exited with 0 may or may
// not have completed, which its statistics tell: ansible-runner also exits with 0 if the
// signal ended ansible-playbook first.
func ending(code int, cause, readErr error, output string) jobevent.ProcessExit {
	e := jobevent.ProcessExit{ExitCode: code, Cause: jobevent.Exited, Output: output}
	switch {
	case readErr != nil:
		e.Cause, e.Err = jobevent.Crashed, readErr
	case cause == nil:
	case errors.Is(cause, process.ErrTimeout):
		e.Cause, e.Err = jobevent.TimedOut, cause
	case errors.Is(cause, process.ErrIdle):
		e.Cause, e.Err = jobevent.Idle, cause
	default:
		e.Cause, e.Err = jobevent.Interrupted, cause
	}
	return e
}

// generatedPlaybook matches the name of the playbook that ansible-runner makes for a role.
var generatedPlaybook = regexp.MustCompile(`/[0-9a-f]{32}\b`)

// withoutRandomNames replaces the random name of the generated playbook, which
// ansible-runner puts into the project directory, so that the same failure gives the same
// text.
func withoutRandomNames(output, project string) string {
	parts := strings.Split(output, project)
	for i := range parts[1:] {
		if at := generatedPlaybook.FindStringIndex(parts[i+1]); at != nil && at[0] == 0 {
			parts[i+1] = "/play" + parts[i+1][at[1]:]
		}
	}
	return strings.Join(parts, project)
}
