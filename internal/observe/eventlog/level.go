package eventlog

import (
	"fmt"
	"strings"
)

// Level is how much of a run the log shows. It always shows the start and the end of a run.
type Level int

const (
	// Nothing shows no task.
	Nothing Level = iota
	// Tasks shows a line for each task on each host, and the output of failed tasks.
	Tasks
	// Everything also shows the output of every task, and a line for each item of a loop and
	// for each retry.
	Everything
)

// ParseLevel reads Nothing, Tasks or Everything, in upper or lower case.
func ParseLevel(text string) (Level, error) {
	for _, level := range []Level{Nothing, Tasks, Everything} {
		if strings.EqualFold(text, level.String()) {
			return level, nil
		}
	}
	return Nothing, fmt.Errorf("%q: allowed are Nothing, Tasks and Everything", text)
}

// String returns the level's name, as ParseLevel reads it.
func (l Level) String() string {
	switch l {
	case Nothing:
		return "Nothing"
	case Tasks:
		return "Tasks"
	case Everything:
		return "Everything"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}
