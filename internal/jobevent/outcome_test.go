package jobevent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

// counted is a run whose stats count these on the hosts that took part.
func counted(hosts, failures, unreachable int) jobevent.Summary {
	return jobevent.Summary{StatsSeen: true, Hosts: hosts, Failures: failures, Unreachable: unreachable}
}

// TestEveryCombinationHasARow goes through all of cause × exit code × stats. A
// row lists the reasons for the summaries none, fine, noHosts, failed,
// unreachable, both, badRequeue, in this order.
func TestEveryCombinationHasARow(t *testing.T) {
	bad := counted(1, 0, 0)
	bad.BadRequeue = &jobevent.TaskFailure{Message: "bad"}
	summaries := []jobevent.Summary{{}, counted(1, 0, 0), counted(0, 0, 0), counted(1, 1, 0), counted(1, 0, 1), counted(2, 1, 1), bad}
	const (
		S = jobevent.ReasonSuccessful
		F = jobevent.ReasonFailed
		T = jobevent.ReasonTimeout
		U = jobevent.ReasonUnreachable
		H = jobevent.ReasonNoHosts
		N = jobevent.ReasonNoStats
		R = jobevent.ReasonRunnerCrashed
		C = jobevent.ReasonCanceled
	)
	rows := map[jobevent.Cause]map[int][]jobevent.Reason{
		jobevent.Exited: {
			0:   {N, S, H, F, U, F, F},
			1:   {N, F, H, F, U, F, F},
			2:   {N, F, H, F, U, F, F},
			4:   {N, F, H, F, U, F, F},
			254: {N, F, H, F, U, F, F},
			-1:  {R, R, R, R, R, R, R},
		},
		jobevent.TimedOut: {
			0:   {T, S, T, T, T, T, T},
			2:   {T, T, T, T, T, T, T},
			254: {T, T, T, T, T, T, T},
			-1:  {T, T, T, T, T, T, T},
		},
		jobevent.Interrupted: {
			0:   {C, S, C, C, C, C, C},
			2:   {C, C, C, C, C, C, C},
			254: {C, C, C, C, C, C, C},
			-1:  {C, C, C, C, C, C, C},
		},
		jobevent.Crashed: {
			0:  {R, R, R, R, R, R, R},
			1:  {R, R, R, R, R, R, R},
			-1: {R, R, R, R, R, R, R},
		},
	}
	for cause, codes := range rows {
		for code, reasons := range codes {
			for i, want := range reasons {
				got := jobevent.Judge(jobevent.Ending{ExitCode: code, Cause: cause}, summaries[i])
				verdict := jobevent.Failed
				switch want {
				case S:
					verdict = jobevent.Succeeded
				case C:
					verdict = jobevent.Canceled
				}
				if got.Reason != want || got.Verdict != verdict {
					t.Errorf("%s with %d, %+v: %s %s instead of %s", cause, code, summaries[i], got.Verdict, got.Reason, want)
				}
				if verdict == jobevent.Failed && strings.TrimSpace(got.Message) == "" {
					t.Errorf("%s with %d, %+v: no message", cause, code, summaries[i])
				}
			}
		}
	}
}

func TestMessageOfAnOutcome(t *testing.T) {
	one := jobevent.TaskFailure{Play: "p", Task: "t", Host: "h", Message: "boom"}
	silent := jobevent.TaskFailure{Play: "p", Task: "t", Host: "h"}
	cases := map[string]struct {
		ending  jobevent.Ending
		summary jobevent.Summary
		want    string
	}{
		"Ansible gives no msg": {jobevent.Ending{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{silent}},
			"play [p], task [t], host [h]: unknown playbook failure"},
		"counted, but no event told of it": {jobevent.Ending{ExitCode: 2}, counted(1, 1, 0), "unknown playbook failure"},
		"more were counted than are kept": {jobevent.Ending{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 9, Failures: 9, Failed: []jobevent.TaskFailure{one}},
			"play [p], task [t], host [h]: boom\n(and 8 more)"},
		"failed and unreachable hosts": {jobevent.Ending{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 2, Failures: 1, Unreachable: 1, Failed: []jobevent.TaskFailure{one}, UnreachableHosts: []jobevent.TaskFailure{silent}},
			"play [p], task [t], host [h]: boom\nplay [p], task [t], host [h]: unknown playbook failure"},
		"a timeout says what was at work": {jobevent.Ending{ExitCode: 254, Cause: jobevent.TimedOut, Err: errors.New("the timeout of the watch is 1m0s")}, jobevent.Summary{Play: "p", Task: "wait"},
			"the run took longer than its timeout\nthe timeout of the watch is 1m0s\nended in play [p], task [wait]"},
		"a runner that cannot start says why": {jobevent.Ending{ExitCode: -1, Cause: jobevent.Crashed, Err: errors.New("exec: no such file")}, jobevent.Summary{},
			"ansible-runner could not be run\nexec: no such file"},
		"a traceback explains a run without stats": {jobevent.Ending{ExitCode: 1, Output: "Traceback (most recent call last):\n  x\nValueError: embedded null byte\n"}, jobevent.Summary{},
			"ansible-runner exited with 1 before the run was through\nTraceback (most recent call last):\n  x\nValueError: embedded null byte"},
		"the last error goes before what was said earlier": {jobevent.Ending{ExitCode: 4, Output: "Using /etc/ansible.cfg\n\x1b[0;31m[ERROR]: no role 'x'\x1b[0m\nOrigin: /x"}, jobevent.Summary{},
			"ansible-runner exited with 4 before the run was through\n[ERROR]: no role 'x'\nOrigin: /x"},
		"a value that the API server quotes of a Secret": {jobevent.Ending{ExitCode: 1, Output: "stringData[k]: Invalid value: \"hunter2\": bad"}, jobevent.Summary{},
			"ansible-runner exited with 1 before the run was through\nstringData[k]: Invalid value: \"********\": bad"},
		"what was at work when it ended": {jobevent.Ending{ExitCode: 1, Output: "Killed"}, jobevent.Summary{Play: "p", Task: "t"},
			"ansible-runner exited with 1 before the run was through\nended in play [p], task [t]\nKilled"},
		"a hint ends the message of a failure": {jobevent.Ending{ExitCode: 2, Hint: "the disk is full"}, jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{one}},
			"play [p], task [t], host [h]: boom\nthe disk is full"},
		"a hint explains no run that succeeded": {jobevent.Ending{Hint: "the disk is full"}, counted(1, 0, 0), ""},
		"a hint explains no run that was ended": {jobevent.Ending{Cause: jobevent.Interrupted, ExitCode: 254, Hint: "the disk is full"}, jobevent.Summary{},
			"the run was ended before its time"},
		"an exit code that no task explains": {jobevent.Ending{ExitCode: 250, Output: "unexpected"}, counted(1, 0, 0),
			"ansible-runner exited with 250 although no task failed\nunexpected"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := jobevent.Judge(c.ending, c.summary).Message; got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

// The end of what was printed says the most.
func TestLongOutputLosesItsBeginning(t *testing.T) {
	long := jobevent.TaskFailure{Task: "t", Message: strings.Repeat("x", 2<<10)}
	output := strings.Repeat("€\x1b", 2000) + "\nthe end"
	for why, s := range map[string]jobevent.Summary{
		"alone":                     {},
		"behind many long failures": {Failures: 3, Failed: []jobevent.TaskFailure{long, long, long}},
	} {
		for _, ending := range []jobevent.Ending{
			{ExitCode: 1, Output: output},
			{ExitCode: -1, Output: output},
			{Cause: jobevent.Crashed, Err: errors.New(strings.Repeat("e", 8<<10)), Output: output},
		} {
			got := jobevent.Judge(ending, s).Message
			if len(got) > 4<<10 || len(got) < 4000 || !utf8.ValidString(got) {
				t.Errorf("%s, %s: %d bytes", why, ending.Cause, len(got))
			}
			if !strings.HasPrefix(got, "ansible-runner") || !strings.HasSuffix(got, "\nthe end") {
				t.Errorf("%s, %s: %.60q … %q", why, ending.Cause, got, got[max(0, len(got)-60):])
			}
		}
	}
}

func TestMessagesAreBoundedAndFitToBeShown(t *testing.T) {
	for size := range 40 {
		text := strings.Repeat("x", size) + strings.Repeat("€\x1b", 4000)
		s := counted(1, 1, 0)
		for i := range 16 {
			s.Failed = append(s.Failed, jobevent.TaskFailure{Task: fmt.Sprint(i), Message: text[:size]})
		}
		for _, got := range []string{
			jobevent.Judge(jobevent.Ending{ExitCode: 1, Output: text}, jobevent.Summary{}).Message,
			jobevent.Judge(jobevent.Ending{Cause: jobevent.Crashed, Err: errors.New(text)}, jobevent.Summary{}).Message,
			jobevent.Judge(jobevent.Ending{ExitCode: 2}, s).Message,
			jobevent.Judge(jobevent.Ending{ExitCode: 1, Output: text, Hint: strings.Repeat("h", 1000)}, jobevent.Summary{}).Message,
		} {
			if len(got) > 4<<10 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") {
				t.Fatalf("%d bytes: %q", len(got), got)
			}
		}
	}
}
