package jobevent

import "time"

// Summary is what one run's events came to. The zero value is a run that has
// reported nothing yet.
type Summary struct {
	// StatsSeen is true when the run reported its closing counts. They are
	// summed over all hosts; a second report never counts.
	StatsSeen                                                     bool
	OK, Changed, Skipped, Failures, Unreachable, Rescued, Ignored int
	// Hosts is the number of hosts that the run worked on.
	Hosts int
	// Completion is when the run reported its counts, in UTC.
	Completion time.Time
	// Failed and UnreachableHosts are the last maxKept of their sort, oldest
	// first, without ignored failures and, once the counts are known, without
	// rescued ones.
	Failed, UnreachableHosts []TaskFailure
	// Requeue is the shortest period that a requeue_after task asked for; 0 when
	// none did.
	Requeue time.Duration
	// BadRequeue is the first requeue_after task whose period is no positive Go
	// duration; nil when there is none. Such a run has failed.
	BadRequeue *TaskFailure
	// Play and Task name the task that was started last.
	Play, Task string
}

// TaskFailure is a task that did not succeed on a host. Its texts are bounded
// and fit to be shown.
type TaskFailure struct {
	Play, Task, Host string
	// Message is Ansible's msg; "" where Ansible gives none.
	Message string
}

// Fold takes the next event of the run into account. A Summary stays below
// 128 KiB whatever the events hold.
func (s *Summary) Fold(e Event) {}
