package jobevent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxKept bounds the failures of a sort that a Summary holds, and maxLoops the
	// hosts of whose loops it holds failed items.
	maxKept, maxLoops = 16, 8
	// maxFailureName and maxFailureMessage bound the texts of one failure.
	maxFailureName    = 256
	maxFailureMessage = 2 << 10
	// maxCount bounds the count of a host, so that no sum of them overflows.
	maxCount = 1 << 30
	// minRequeue is the shortest period after which a CR comes again.
	minRequeue = time.Second
)

// Summary is what one run's events came to. The zero value is a run that has
// reported nothing yet.
type Summary struct {
	// StatsSeen is true when the run reported its closing counts. They are
	// summed over all hosts; a second report never counts.
	StatsSeen bool

	OK, Changed, Skipped, Failures, Unreachable, Rescued, Ignored int

	// Hosts is the number of hosts that have a result of a task. A play that has no
	// task, or ends before the first, leaves none.
	Hosts int
	// Plays is the number of plays that started on a host, where each batch of a
	// play's hosts counts, and Unmatched that of plays that matched none.
	Plays, Unmatched int
	// Completion is when the run reported its counts, in UTC.
	Completion time.Time
	// Failed and UnreachableHosts are at most 16 of their sort, oldest first. Where
	// there were more, they are the last one of each host, then the last but one,
	// and so on: the same ones, in whatever order hosts report. They never hold
	// ignored failures; rescued ones are taken out when the counts are known, see
	// Fold.
	Failed, UnreachableHosts []TaskFailure
	// Requeue is the shortest period that a requeue_after task asked for; 0 when
	// none did. Each such task wants the CR to be looked at again by then, and
	// only the shortest period keeps what all of them were promised. It is at
	// least a second: no task makes a CR run without pause.
	Requeue time.Duration
	// BadRequeue is the first requeue_after task whose period is no positive Go
	// duration; nil when there is none. Such a run has failed.
	BadRequeue *TaskFailure
	// Play, Task and Place name the task that was started last.
	Play, Task, Place string
	// FailedItems are the first failed items of loops that are still at work, five
	// for each of eight hosts. When a task with a loop fails, they become part of
	// its message.
	FailedItems []TaskFailure
}

// TaskFailure is a task that did not succeed on a host. Its texts are bounded
// and fit to be shown.
type TaskFailure struct {
	Play, Task, Host string
	// Place is where the task stands, as file:line; "" where nobody knows.
	Place string
	// Message is Ansible's msg; "" where Ansible gives none.
	Message string
}

// started reports whether a play started on a host. Ansible counts no host
// without a result, and tells of a play that no host matches in an event.
func (s *Summary) started() bool { return s.Hosts > 0 || s.Plays > 0 }

// Fold takes the next event of the run into account. A Summary stays below
// 128 KiB whatever the events hold.
//
// Which failures were rescued shows in the closing counts only, and there as a
// number for each host. A host's play ends with its failure, so the rescued
// failures are taken to be the earlier ones. (Only an "always" section that
// rescues a failure of its own, after one that nobody rescued, is told wrong.)
func (s *Summary) Fold(e Event) {
	switch e.Kind {
	case PlayStart, NoHostsMatched:
		s.foldPlay(e.Kind)
	case TaskStart:
		s.Play, s.Task, s.Place = name(e.Play), name(e.TaskName()), placed(e.Place)
	case ItemFailed:
		s.foldItem(name(e.Host), e)
	case ItemOK:
		s.foldRequeue(e)
	case HostOK:
		s.foldRequeue(e)
		s.takeItems(name(e.Host))
	case HostFailed:
		s.foldFailed(e)
	case HostUnreachable:
		s.UnreachableHosts = keep(s.UnreachableHosts, newFailure(e, message(e.Result)))
	case Stats:
		s.foldStats(e)
	}
}

// foldPlay counts a play where it starts, and takes it back where it has no host.
func (s *Summary) foldPlay(k Kind) {
	switch {
	case s.StatsSeen:
	case k == PlayStart:
		s.Plays++
	default:
		s.Plays, s.Unmatched = max(s.Plays-1, 0), s.Unmatched+1
	}
}

func (s *Summary) foldFailed(e Event) {
	lines := append([]string{message(e.Result)}, s.takeItems(name(e.Host))...)
	if !e.IgnoreErrors {
		s.Failed = keep(s.Failed, newFailure(e, strings.Join(lines, "\n")))
	}
}

func (s *Summary) foldItem(host string, e Event) {
	mine, hosts := 0, map[string]bool{host: true}
	for _, f := range s.FailedItems {
		hosts[f.Host] = true
		if f.Host == host {
			mine++
		}
	}
	if mine < maxItems && len(hosts) <= maxLoops {
		s.FailedItems = append(s.FailedItems, TaskFailure{Host: host, Message: steady(shown(itemMessage(e.Result), maxItemMessage))})
	}
}

// takeItems ends the loop that is at work on a host and gives what its failed
// items said.
func (s *Summary) takeItems(host string) []string {
	var said []string
	s.FailedItems = slices.DeleteFunc(s.FailedItems, func(f TaskFailure) bool {
		if f.Host == host {
			said = append(said, f.Message)
		}
		return f.Host == host
	})
	return said
}

func (s *Summary) foldStats(e Event) {
	if s.StatsSeen || e.HostStats == nil {
		return
	}
	h := e.HostStats
	s.StatsSeen = true
	s.OK, s.Changed, s.Skipped = sum(h.OK), sum(h.Changed), sum(h.Skipped)
	s.Failures, s.Unreachable = sum(h.Failures), sum(h.Unreachable)
	s.Rescued, s.Ignored = sum(h.Rescued), sum(h.Ignored)
	s.Hosts = len(h.Processed)
	if h.Failures == nil || h.Unreachable == nil || h.Processed == nil {
		s.Plays = 0 // Whether they went well, these counts do not say.
	}
	s.Completion = e.Created
	s.Failed = lastByHost(s.Failed, h.Failures)
	s.UnreachableHosts = lastByHost(s.UnreachableHosts, h.Unreachable)
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += min(max(n, 0), maxCount)
	}
	return total
}

// lastByHost keeps as many failures of each host, the last ones, as were counted.
func lastByHost(failures []TaskFailure, counts map[string]int) []TaskFailure {
	left := map[string]int{}
	for host, n := range counts {
		left[name(host)] += n
	}
	var kept []TaskFailure
	for _, f := range slices.Backward(failures) {
		if left[f.Host] > 0 {
			left[f.Host]--
			kept = append(kept, f)
		}
	}
	slices.Reverse(kept)
	return kept
}

// keep adds a failure and, where they become too many, takes out the oldest of
// the host that has the most; of several such hosts the one whose name comes last.
// So it does not matter in what order different hosts fail.
func keep(list []TaskFailure, f TaskFailure) []TaskFailure {
	list = append(list, f)
	if len(list) <= maxKept {
		return list
	}
	count := map[string]int{}
	for _, f := range list {
		count[f.Host]++
	}
	out := slices.MaxFunc(slices.Collect(maps.Keys(count)), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(a, b))
	})
	oldest := slices.IndexFunc(list, func(f TaskFailure) bool { return f.Host == out })
	return slices.Delete(list, oldest, oldest+1)
}

// foldRequeue looks at the module's name and at what the module returned, never
// at a text that was printed.
func (s *Summary) foldRequeue(e Event) {
	period, ok := e.Result["period"]
	if !ok || !(isRequeueAfter(e.Action) || isRequeueAfter(e.Resolved)) {
		return
	}
	text, _ := period.(string)
	wish, err := time.ParseDuration(text)
	if err != nil || wish <= 0 {
		if s.BadRequeue == nil {
			f := newFailure(e, fmt.Sprintf("requeue_after: period %q is no positive duration such as \"90s\" or \"1h30m\"", clip(render(period), maxFailureName)))
			s.BadRequeue = &f
		}
		return
	}
	wish = max(wish, minRequeue)
	if s.Requeue == 0 || wish < s.Requeue {
		s.Requeue = wish
	}
}

func isRequeueAfter(module string) bool {
	switch module {
	case "requeue_after", "operator_sdk.util.requeue_after", "ensign.operator.requeue_after":
		return true
	}
	return false
}

// Failure tells of a task that failed on a host, as an outcome does, with the items
// of its loop. It is the same text for the same failure.
func Failure(e Event) string {
	lines := []string{newFailure(e, message(e.Result)).tell()}
	results, _ := e.Result["results"].([]any)
	for _, item := range results {
		result, _ := item.(map[string]any)
		if failed, _ := result["failed"].(bool); failed && len(lines) <= maxItems {
			lines = append(lines, steady(shown(itemMessage(result), maxItemMessage)))
		}
	}
	return strings.Join(lines, "\n")
}

func newFailure(e Event, message string) TaskFailure {
	return TaskFailure{
		Play:    name(e.Play),
		Task:    name(e.TaskName()),
		Place:   placed(e.Place),
		Host:    name(e.Host),
		Message: steady(shown(message, maxFailureMessage)),
	}
}

// placed is a place fit to be shown; its end says the most.
func placed(text string) string {
	return clipFront(strings.ReplaceAll(Visible(text), "\n", `\n`), maxFailureName)
}

func name(text string) string {
	return clip(strings.ReplaceAll(shown(text, maxFailureName), "\n", `\n`), maxFailureName)
}
