package jobevent

import (
	"strings"
	"time"
)

// Kind is the name that ansible-runner gives an event, such as "runner_on_failed".
type Kind string

// These are the kinds that Ensign uses; other kinds are passed on unchanged. The start
// of a handler is a TaskStart too. A NoHostsMatched follows the PlayStart of its play.
const (
	PlayStart       Kind = "playbook_on_play_start"
	NoHostsMatched  Kind = "playbook_on_no_hosts_matched"
	TaskStart       Kind = "playbook_on_task_start"
	Stats           Kind = "playbook_on_stats"
	HostOK          Kind = "runner_on_ok"
	HostFailed      Kind = "runner_on_failed"
	HostSkipped     Kind = "runner_on_skipped"
	HostUnreachable Kind = "runner_on_unreachable"
	HostRetry       Kind = "runner_retry"
	ItemOK          Kind = "runner_item_on_ok"
	ItemFailed      Kind = "runner_item_on_failed"
	ItemSkipped     Kind = "runner_item_on_skipped"
	// ContentRefused is an event of ensign_run.py: Ansible refused to load content, and ends.
	ContentRefused Kind = "ensign_content_refused"
)

// Event is one job event of one run. Every string in it may hold text that a task
// printed: it is untrusted and may hold control characters.
type Event struct {
	UUID string
	Kind Kind
	// Created is in UTC. It is zero if ansible-runner gave no time.
	Created time.Time
	// Stdout is the text that Ansible displays for the event, with terminal colours and module
	// arguments. It is not sanitized: show Result instead.
	Stdout string
	Play   string
	Task   string
	Role   string
	Host   string
	// TaskPath is the file and line of the task, as file:line; "" if Ansible gives none.
	TaskPath string
	// Action is the module as the task's author wrote it. ResolvedAction is the full name
	// of the module that Ansible found ("kubernetes.core.k8s"); "" if it found none.
	Action, ResolvedAction string
	// Duration is how long the task took on Host; 0 if Ansible does not say.
	Duration time.Duration
	// IgnoreErrors is true when the task's failure does not fail the play.
	IgnoreErrors bool
	// Result is the task's result on Host, as the module returned it: maps, slices,
	// strings, booleans, nil, and json.Number for every number. It includes "invocation"
	// and whatever the module printed. Under no_log, Ansible has censored it before.
	// Strings of more than 64 KiB and results of more than 256 KiB are truncated and
	// marked by CutMark or CutKey.
	Result map[string]any
	// HostStats is set in a Stats event only.
	HostStats *HostStats
}

// TaskName returns the task with its role, as Ansible shows it.
func (e Event) TaskName() string {
	if e.Role == "" || strings.HasPrefix(e.Task, e.Role+" : ") {
		return e.Task
	}
	return e.Role + " : " + e.Task
}

// HostStats are Ansible's counts by host. If there are too many hosts, the counts of
// the last ones are added up under CutKey.
type HostStats struct {
	OK          map[string]int `json:"ok"`
	Changed     map[string]int `json:"changed"`
	Failures    map[string]int `json:"failures"`
	Unreachable map[string]int `json:"dark"`
	Skipped     map[string]int `json:"skipped"`
	Rescued     map[string]int `json:"rescued"`
	Ignored     map[string]int `json:"ignored"`
	Processed   map[string]int `json:"processed"`
	// Lost has the hosts of Unreachable that were still unreachable in the end: Unreachable
	// also has those whose errors a meta task has cleared. It is nil where ensign_run.py could
	// not tell.
	Lost map[string]int `json:"lost"`
}
