package jobevent

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// TaskFailure is a task that failed on a host or could not reach it. Its texts are
// bounded and safe to show.
type TaskFailure struct {
	Play, Task, Host string
	// TaskPath is the file and line of the task, as file:line; "" if not known.
	TaskPath string
	// Message is Ansible's msg; "" if there is none.
	Message string
}

func newFailure(e Event, message string) TaskFailure {
	return TaskFailure{
		Play:     displayName(e.Play),
		Task:     displayName(e.TaskName()),
		TaskPath: displayPath(e.TaskPath),
		Host:     displayName(e.Host),
		Message:  stabilize(clipVisible(message, maxFailureMessage)),
	}
}

// FailureMessage returns the message of a task that failed on a host, as an Outcome has
// it, with the failed items of its loop. Equal failures give equal messages.
func FailureMessage(e Event) string {
	lines := []string{newFailure(e, message(e.Result)).String()}
	results, _ := e.Result["results"].([]any)
	for _, item := range results {
		result, _ := item.(map[string]any)
		if failed, _ := result["failed"].(bool); failed && len(lines) <= maxFailedItems {
			lines = append(lines, stabilize(clipVisible(itemMessage(result), maxItemMessage)))
		}
	}
	return strings.Join(lines, "\n")
}

// addFailure adds a failure. If there are too many, it removes the oldest failure of the
// host that has the most; of several such hosts, the one whose name sorts last. So the
// order in which different hosts fail does not matter.
func addFailure(list []TaskFailure, f TaskFailure) []TaskFailure {
	list = append(list, f)
	if len(list) <= maxFailures {
		return list
	}
	count := map[string]int{}
	for _, f := range list {
		count[f.Host]++
	}
	host := slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b))
	})
	oldest := slices.IndexFunc(list, func(f TaskFailure) bool { return f.Host == host })
	return slices.Delete(list, oldest, oldest+1)
}

// lastFailuresByHost returns the last failures of each host, as many as the statistics
// count.
func lastFailuresByHost(failures []TaskFailure, counts map[string]int) []TaskFailure {
	remaining := map[string]int{}
	for host, n := range counts {
		remaining[displayName(host)] += n
	}
	var kept []TaskFailure
	for _, f := range slices.Backward(failures) {
		if remaining[f.Host] > 0 {
			remaining[f.Host]--
			kept = append(kept, f)
		}
	}
	slices.Reverse(kept)
	return kept
}

// displayPath returns a task's path without control characters. A long path loses its
// beginning, because its end says more.
func displayPath(text string) string {
	return clipFront(strings.ReplaceAll(sanitize.Text(text), "\n", `\n`), maxFailureName)
}

func displayName(text string) string {
	return clip(strings.ReplaceAll(clipVisible(text, maxFailureName), "\n", `\n`), maxFailureName)
}
