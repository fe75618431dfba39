package jobevent

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// maxFailures is how many failures of each kind a Summary holds. maxLoopHosts is the
	// number of hosts for which it holds failed items of loops.
	maxFailures, maxLoopHosts = 16, 8
	// maxNear is how many names a Refusal has.
	maxNear = 3
	// maxFailureName and maxFailureMessage are the maximum lengths of one failure's texts.
	maxFailureName    = 256
	maxFailureMessage = 2 << 10
	// maxHostCount is the maximum count of a host, so that sums do not overflow.
	maxHostCount = 1 << 30
	// minRequeueAfter is the shortest period after which a role can have its CR requeued.
	minRequeueAfter = time.Second
)

// Summary is the result of folding the events of one run. The zero value is a run that
// has not reported anything yet.
type Summary struct {
	// StatsSeen is true if the run reported its closing statistics. The counts below
	// are sums over all hosts. Only the first statistics of a run are used.
	StatsSeen bool

	OK, Changed, Skipped, Failures, Unreachable, Rescued, Ignored int
	// Lost is the part of Unreachable that is of hosts that were still unreachable in the end.
	Lost int

	// Hosts is the number of hosts with a result of a task. A play that has no task, or
	// ends before its first task, adds none.
	Hosts int
	// Plays is the number of plays that started on a host; each batch of a play's hosts
	// counts. Unmatched is the number of plays that matched no host.
	Plays, Unmatched int
	// Completion is the time of the closing statistics, in UTC.
	Completion time.Time
	// Failed and UnreachableHosts hold at most 16 failures each, oldest first. If there
	// were more, they hold the last failure of each host, then the one before it, and so
	// on, so that the order in which hosts report does not matter. They never hold
	// ignored failures. When it gets the statistics, Fold removes rescued failures and hosts that
	// are unreachable no more.
	Failed, UnreachableHosts []TaskFailure
	// RequeueAfter is the shortest period that a requeue_after task asked for, at least
	// a second; 0 if no task asked. Each such task is promised that the CR is reconciled
	// within its period.
	RequeueAfter time.Duration
	// BadRequeue is the first requeue_after task whose period is not a positive Go
	// duration; nil if there is none. Such a run has failed.
	BadRequeue *TaskFailure
	// Play, Task and TaskPath name the task that started last.
	Play, Task, TaskPath string
	// FailedItems are the first failed items of loops that are still running, five for
	// each of eight hosts. When the task with the loop fails, they become part of its
	// message.
	FailedItems []TaskFailure
	// Refusal is set if Ansible refused to load the content.
	Refusal *Refusal
}

// Refusal describes content that Ansible refused to load, beside Ansible's own words. Its texts are
// bounded and safe to show.
type Refusal struct {
	// Place is file:line; "" if Ansible gives none.
	Place string
	// Near are at most three names of modules or roles, one of which may be meant.
	Near []string
}

// Counts returns the summary without its texts, in less than 1 KiB.
func (s *Summary) Counts() Summary {
	return Summary{
		StatsSeen: s.StatsSeen, OK: s.OK, Changed: s.Changed, Skipped: s.Skipped, Failures: s.Failures, Unreachable: s.Unreachable, Rescued: s.Rescued, Ignored: s.Ignored,
		Lost: s.Lost, Hosts: s.Hosts, Plays: s.Plays, Unmatched: s.Unmatched, Completion: s.Completion, RequeueAfter: s.RequeueAfter,
	}
}

// started reports whether a play started on a host. Ansible's statistics leave out hosts
// without a result, so the events of plays count too.
func (s *Summary) started() bool { return s.Hosts > 0 || s.Plays > 0 }

// Fold adds the next event of the run. A Summary stays below 128 KiB whatever the
// events hold.
//
// Only the closing statistics tell which failures were rescued, as a number for each
// host. A host's play ends with its failure, so Fold assumes that the earlier failures
// were the rescued ones. (This is wrong only if an "always" section rescues a failure of
// its own after a failure that was not rescued.)
func (s *Summary) Fold(e Event) {
	switch e.Kind {
	case PlayStart, NoHostsMatched:
		s.foldPlay(e.Kind)
	case TaskStart:
		s.Play, s.Task, s.TaskPath = displayName(e.Play), displayName(e.TaskName()), displayPath(e.TaskPath)
	case ItemFailed:
		s.foldItem(displayName(e.Host), e)
	case ItemOK:
		s.foldRequeue(e)
	case HostOK:
		s.foldRequeue(e)
		s.takeFailedItems(displayName(e.Host))
	case HostFailed:
		s.foldFailed(e)
	case HostUnreachable:
		s.UnreachableHosts = addFailure(s.UnreachableHosts, newFailure(e, message(e.Result)))
	case Stats:
		s.foldStats(e)
	case ContentRefused:
		s.Refusal = newRefusal(e)
	}
}

func newRefusal(e Event) *Refusal {
	r := &Refusal{Place: displayPath(e.TaskPath)}
	near, _ := e.Result["near"].([]any)
	for _, name := range near[:min(len(near), maxNear)] {
		r.Near = append(r.Near, displayName(render(name)))
	}
	return r
}

// foldPlay counts a play when it starts, and uncounts it if it matched no host.
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
	lines := append([]string{message(e.Result)}, s.takeFailedItems(displayName(e.Host))...)
	if !e.IgnoreErrors {
		s.Failed = addFailure(s.Failed, newFailure(e, strings.Join(lines, "\n")))
	}
}

func (s *Summary) foldItem(host string, e Event) {
	count, hosts := 0, map[string]bool{host: true}
	for _, f := range s.FailedItems {
		hosts[f.Host] = true
		if f.Host == host {
			count++
		}
	}
	if count < maxFailedItems && len(hosts) <= maxLoopHosts {
		s.FailedItems = append(s.FailedItems, TaskFailure{Host: host, Message: stabilize(clipVisible(itemMessage(e.Result), maxItemMessage))})
	}
}

// takeFailedItems removes the failed items of the host's loop and returns their
// messages.
func (s *Summary) takeFailedItems(host string) []string {
	var messages []string
	s.FailedItems = slices.DeleteFunc(s.FailedItems, func(f TaskFailure) bool {
		if f.Host == host {
			messages = append(messages, f.Message)
		}
		return f.Host == host
	})
	return messages
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
	lost := h.Lost
	if lost == nil {
		lost = h.Unreachable
	}
	s.Lost = sum(lost)
	s.Hosts = len(h.Processed)
	if h.Failures == nil || h.Unreachable == nil || h.Processed == nil {
		s.Plays = 0 // Incomplete statistics do not say whether the plays succeeded.
	}
	s.Completion = e.Created
	s.Failed = lastFailuresByHost(s.Failed, h.Failures)
	s.UnreachableHosts = lastFailuresByHost(s.UnreachableHosts, lost)
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += min(max(n, 0), maxHostCount)
	}
	return total
}

// foldRequeue uses only the module's name and its result, never text that was printed.
func (s *Summary) foldRequeue(e Event) {
	period, ok := e.Result["period"]
	if !ok || !(isRequeueAfter(e.Action) || isRequeueAfter(e.ResolvedAction)) {
		return
	}
	text, _ := period.(string)
	requested, err := time.ParseDuration(text)
	if err != nil || requested <= 0 {
		if s.BadRequeue == nil {
			f := newFailure(e, fmt.Sprintf("requeue_after: invalid period %q: write a positive duration such as \"90s\" or \"1h30m\"", clip(render(period), maxFailureName)))
			s.BadRequeue = &f
		}
		return
	}
	requested = max(requested, minRequeueAfter)
	if s.RequeueAfter == 0 || requested < s.RequeueAfter {
		s.RequeueAfter = requested
	}
}

func isRequeueAfter(module string) bool {
	switch module {
	case "requeue_after", "operator_sdk.util.requeue_after", "ensign.operator.requeue_after":
		return true
	}
	return false
}
