package jobevent

import (
	"regexp"
	"strings"
)

const (
	// unshown stands for an error of which nothing may be shown.
	unshown = "[ERROR]: (Ansible's words for what ended the run are not shown: they do not respect no_log)"
	// unresolved stands for an action that Ansible has not found, or not looked for.
	unresolved = "(an action that was not resolved)"
)

// What a line that was displayed may show once a task has started: the words
// of Ansible, of Python and of the system, and what they quote of content's files.
// No value that a task was given is among them.
var (
	ownLine = regexp.MustCompile(`^(\[ERROR\]: )?(` + strings.Join([]string{
		`YAML parsing failed: .*`,
		`couldn't resolve module/action .*`,
		`conflicting action statements: .*`,
		`no module/action detected in task.*`,
		`'\w+' is not a valid attribute for an? \w+`,
		`invalid meta action requested: .*`, // A meta task's action is no template.
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
	ownWords    = regexp.MustCompile(`(?i)cannot allocate memory|\bMemoryError\b|no space left on device|disk quota exceeded|too many open files|no vault secrets`)
	handlerName = regexp.MustCompile(`(The requested handler ').*(' was not found)`)
)

// Own returns of a text that was printed past Ansible what may be shown of it once a task
// has started: nothing that a task was given.
func Own(text string) string { return own(text) }

// own returns of a displayed text what may be shown of it once a task has started.
func own(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = handlerName.ReplaceAllString(strings.TrimRight(line, "\r\n"), "${1}"+masked+"${2}")
		said := ownLine.FindString(line)
		if said == "" {
			said = ownWords.FindString(line)
		}
		if said != "" {
			kept = append(kept, said)
		}
	}
	return strings.Join(kept, "\n")
}

// ownError is own for the error that ended a run, which says at least that it did.
func ownError(text string) string {
	kept := own(text)
	if kept == "" || strings.HasPrefix(kept, "Origin: ") {
		kept = strings.TrimSpace(unshown + "\n" + kept)
	}
	return kept
}

// hideAction hides the action of a task for which Ansible has resolved none, and
// with it the name of a task that has no other. Such an action is a template, whose
// value may be anything; an action that stands in the content is resolved before
// any task starts.
func hideAction(e *Event) {
	if e.Task == e.Action {
		e.Task = unresolved
	}
	e.Action = unresolved
}
