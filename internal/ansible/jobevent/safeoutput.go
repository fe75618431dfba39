package jobevent

import (
	"regexp"
	"strings"
)

const (
	// hiddenError replaces an error of which no part may be shown.
	hiddenError = "[ERROR]: (Ansible's error is not shown, because it may have values that no_log hides)"
	// unresolvedAction replaces an action that Ansible did not resolve to a module.
	unresolvedAction = "(an action that was not resolved)"
)

// These patterns match the parts of displayed text that may be shown once a task has started:
// messages of Ansible, Python and the system, and their quotes from files of the content. They
// match no value that a task was given.
var (
	safeLine = regexp.MustCompile(`^(\[ERROR\]: )?(` + strings.Join([]string{
		`YAML parsing failed: .*`,
		`couldn't resolve module/action .*`,
		`conflicting action statements: .*`,
		`no module/action detected in task.*`,
		`'\w+' is not a valid attribute for an? \w+`,
		`invalid meta action requested: .*`, // A meta task's action is not a template.
		`The requested handler '\*{8}' was not found.*`,
		`Failed to convert the throttle value to an integer`,
		`A worker was found in a dead state`,
		`Attempting to decrypt but no vault secrets found`,
		`Unexpected Exception, this is probably a bug`,
		`Origin: \S+:\d+(:\d+)?$`,
		`Traceback \(most recent call last\):$`,
		` +File "[^"]+", line \d+, in \S+$`,
		`[\w.]*(Error|Exception)(: \[Errno \d+\] [A-Z][a-z ]+)?\b`,
		`(Killed|Terminated|Aborted|Segmentation fault)\b`,
	}, "|") + `)`)
	safeWords   = regexp.MustCompile(`(?i)cannot allocate memory|\bMemoryError\b|no space left on device|disk quota exceeded|too many open files|no vault secrets`)
	handlerName = regexp.MustCompile(`(The requested handler ').*(' was not found)`)
)

// SafeOutput returns the part of a text without a job event that may be shown once a
// task has started: known messages of Ansible, Python and the system. It leaves out
// every value that a task was given.
func SafeOutput(text string) string {
	var safe []string
	for line := range strings.Lines(text) {
		line = handlerName.ReplaceAllString(strings.TrimRight(line, "\r\n"), "${1}"+masked+"${2}")
		found := safeLine.FindString(line)
		if found == "" {
			found = safeWords.FindString(line)
		}
		if found != "" {
			safe = append(safe, found)
		}
	}
	return strings.Join(safe, "\n")
}

// safeError returns SafeOutput of the error that ended the run. If that has no
// message, it says that the message is hidden.
func safeError(text string) string {
	safe := SafeOutput(text)
	if safe == "" || strings.HasPrefix(safe, "Origin: ") {
		safe = strings.TrimSpace(hiddenError + "\n" + safe)
	}
	return safe
}

// hideAction hides the action of a task if Ansible did not resolve it, and the task's
// name if it is only the action. Such an action is a template, whose value may be a
// secret. Ansible resolves an action that is not a template before any task starts.
func hideAction(e *Event) {
	if e.Task == e.Action {
		e.Task = unresolvedAction
	}
	e.Action = unresolvedAction
}
