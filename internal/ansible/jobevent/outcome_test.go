package jobevent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

// counted is a run whose stats count these on the hosts that took part.
func counted(hosts, failures, lost int) jobevent.Summary {
	return jobevent.Summary{StatsSeen: true, Hosts: hosts, Failures: failures, Unreachable: lost, Lost: lost}
}

// TestEveryCombinationHasARow goes through all of cause × exit code × stats. A
// row lists the reasons for the summaries nothing reported, no stats though a
// task had failed, fine, rescued and ignored failures, no host matched, failed,
// unreachable, both, a bad requeue period, a play without a result, such a play
// beside one that no host matched, no play at all, unreachable and then cleared,
// that and failed, that and another host unreachable, content that Ansible refused to
// load, the same though there are stats, in this order.
func TestEveryCombinationHasARow(t *testing.T) {
	bad := counted(1, 0, 0)
	bad.BadRequeue = &jobevent.TaskFailure{Message: "bad"}
	lost := jobevent.Summary{Play: "p", Task: "t", Failed: []jobevent.TaskFailure{{Task: "t", Message: "boom"}}}
	forgiven := counted(2, 0, 0)
	forgiven.Rescued, forgiven.Ignored = 3, 2
	cleared, clearedAndFailed, clearedAndLost := counted(2, 0, 0), counted(2, 1, 0), counted(3, 0, 1)
	cleared.Unreachable, clearedAndFailed.Unreachable, clearedAndLost.Unreachable = 1, 1, 2
	refused := jobevent.Summary{Play: "p", Task: "t", Refusal: &jobevent.Refusal{Place: "main.yml:1"}}
	lateRefused := refused
	lateRefused.StatsSeen, lateRefused.Hosts = true, 1
	played := func(plays, unmatched int) jobevent.Summary {
		return jobevent.Summary{StatsSeen: true, Plays: plays, Unmatched: unmatched}
	}
	summaries := []jobevent.Summary{
		{}, lost, counted(1, 0, 0), forgiven, played(0, 1), counted(1, 1, 0), counted(1, 0, 1), counted(2, 1, 1), bad,
		played(1, 0), played(1, 1), played(0, 0), cleared, clearedAndFailed, clearedAndLost,
		refused, lateRefused,
	}
	const (
		S = content.ReasonSuccessful
		F = content.ReasonFailed
		T = content.ReasonTimeout
		U = jobevent.ReasonUnreachable
		H = jobevent.ReasonNoHosts
		N = jobevent.ReasonNoStats
		E = jobevent.ReasonContentError
		R = content.ReasonRunnerCrashed
		C = content.ReasonCanceled
	)
	all := func(r content.Reason) []content.Reason { return slices.Repeat([]content.Reason{r}, len(summaries)) }
	failed := []content.Reason{N, N, F, F, H, F, U, F, F, F, F, F, F, F, U, E, F}
	rows := map[jobevent.Cause]map[int][]content.Reason{
		jobevent.Exited: {
			0:   {N, N, S, S, H, F, U, F, F, S, S, F, S, F, U, E, S},
			1:   failed, // no hosts at all, a parse error, a worker that died
			2:   failed, // failed hosts
			3:   failed,
			4:   failed, // unreachable hosts, variables refused
			5:   failed,
			8:   failed, // the play was broken off
			99:  failed, // interrupted
			126: failed, // ansible-playbook can't be executed
			127: failed, // ansible-playbook is missing
			250: failed, // an unexpected exception
			254: failed, // told to end by somebody else
			255: failed,
			134: all(R), // ended by a signal, as a shell has it
			137: all(R),
			139: all(R),
			143: all(R),
			-1:  all(R), // ended by a signal
			-6:  all(R),
			-9:  all(R),
			-11: all(R),
			-15: all(R),
		},
		jobevent.TimedOut: {
			0:   {T, T, S, S, T, T, T, T, T, S, S, T, S, T, T, T, S},
			2:   all(T),
			137: all(T),
			254: all(T),
			-9:  all(T),
			-15: all(T),
		},
		jobevent.Idle: {
			0:   {T, T, S, S, T, T, T, T, T, S, S, T, S, T, T, T, S},
			254: all(T),
			-9:  all(T),
		},
		jobevent.Interrupted: {
			0:   {C, C, S, S, C, C, C, C, C, S, S, C, S, C, C, C, S},
			2:   all(C),
			137: all(C),
			254: all(C),
			-1:  all(C),
			-9:  all(C),
			-15: all(C),
		},
		jobevent.Crashed: {
			0:  all(R),
			1:  all(R),
			-1: all(R),
			-9: all(R),
		},
	}
	for cause, codes := range rows {
		for code, reasons := range codes {
			for i, want := range reasons {
				got := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: code, Cause: cause}, summaries[i])
				verdict := content.Failed
				switch want {
				case S:
					verdict = content.Succeeded
				case C:
					verdict = content.Canceled
				}
				if got.Reason != want || got.Verdict != verdict {
					t.Errorf("%s with %d, %+v: %s %s instead of %s", cause, code, summaries[i], got.Verdict, got.Reason, want)
				}
				if verdict == content.Failed && strings.TrimSpace(got.Message) == "" {
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
		ending  jobevent.ProcessExit
		summary jobevent.Summary
		want    string
	}{
		"Ansible gives no msg": {jobevent.ProcessExit{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{silent}},
			"play [p], task [t], host [h]: unknown playbook failure"},
		"counted, but no event told of it": {jobevent.ProcessExit{ExitCode: 2}, counted(1, 1, 0), "unknown playbook failure"},
		"more were counted than are kept": {jobevent.ProcessExit{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 9, Failures: 9, Failed: []jobevent.TaskFailure{one}},
			"play [p], task [t], host [h]: boom\n(and 8 more)"},
		"failed and unreachable hosts": {jobevent.ProcessExit{ExitCode: 2}, jobevent.Summary{StatsSeen: true, Hosts: 2, Failures: 1, Unreachable: 1, Lost: 1, Failed: []jobevent.TaskFailure{one}, UnreachableHosts: []jobevent.TaskFailure{silent}},
			"play [p], task [t], host [h]: boom\nplay [p], task [t], host [h]: unknown playbook failure"},
		"a timeout says what was at work": {jobevent.ProcessExit{ExitCode: 254, Cause: jobevent.TimedOut, Err: errors.New("the timeout of the watch is 1m0s")}, jobevent.Summary{Play: "p", Task: "wait"},
			"the run took longer than its timeout\nthe timeout of the watch is 1m0s\nended in play [p], task [wait]"},
		"a run that is idle says how long it was": {jobevent.ProcessExit{ExitCode: 254, Cause: jobevent.Idle, Err: errors.New("no job event and no output for 1m0s")}, jobevent.Summary{Play: "p", Task: "wait"},
			"the run was idle\nno job event and no output for 1m0s\nended in play [p], task [wait]"},
		"a runner that cannot start says why": {jobevent.ProcessExit{ExitCode: -1, Cause: jobevent.Crashed, Err: errors.New("exec: no such file")}, jobevent.Summary{},
			"ansible-runner could not be run\nexec: no such file"},
		"a traceback explains a run without stats": {jobevent.ProcessExit{ExitCode: 1, Output: "Traceback (most recent call last):\n  x\nValueError: embedded null byte\n"}, jobevent.Summary{},
			"ansible-runner exited with code 1 before the run ended\nTraceback (most recent call last):\n  x\nValueError: embedded null byte"},
		"the last error goes before what was said earlier": {jobevent.ProcessExit{ExitCode: 4, Output: "Using /etc/ansible.cfg\n\x1b[0;31m[ERROR]: no role 'x'\x1b[0m\nOrigin: /x"}, jobevent.Summary{},
			"ansible-runner exited with code 4 before the run ended\n[ERROR]: no role 'x'\nOrigin: /x"},
		"a value that the API server quotes of a Secret": {jobevent.ProcessExit{ExitCode: 1, Output: "stringData[k]: Invalid value: \"hunter2\": bad"}, jobevent.Summary{},
			"ansible-runner exited with code 1 before the run ended\nstringData[k]: Invalid value: \"********\": bad"},
		"what ansible-playbook says of itself is no reason": {jobevent.ProcessExit{ExitCode: 1, Output: "ansible-playbook [core 2.21.5]\n  config file = None\n  libyaml = True\nNo config file found; using defaults\nKilled\n"}, jobevent.Summary{},
			"ansible-runner exited with code 1 before the run ended\nKilled"},
		"content that Ansible refused": {jobevent.ProcessExit{ExitCode: 4, Output: "Using x\n[ERROR]: couldn't resolve module/action 'debugg'.\nOrigin: /r/main.yml:3:5\n"}, jobevent.Summary{Play: "p", Task: "t", Refusal: &jobevent.Refusal{Place: "main.yml:3", Near: []string{"debug", "debugs"}}},
			"Ansible cannot load the content (main.yml:3): couldn't resolve module/action 'debugg'.\nOrigin: /r/main.yml:3:5\nended in play [p], task [t]\ndid you mean debug or debugs?"},
		"content that Ansible refused without a word": {jobevent.ProcessExit{ExitCode: 1}, jobevent.Summary{Refusal: &jobevent.Refusal{}},
			"Ansible cannot load the content: ansible-runner exited with code 1 before the run ended"},
		"what was at work when it ended": {jobevent.ProcessExit{ExitCode: 1, Output: "Killed"}, jobevent.Summary{Play: "p", Task: "t"},
			"ansible-runner exited with code 1 before the run ended\nended in play [p], task [t]\nKilled"},
		"a hint ends the message of a failure": {jobevent.ProcessExit{ExitCode: 2, Hint: "the disk is full"}, jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{one}},
			"play [p], task [t], host [h]: boom\nthe disk is full"},
		"a hint explains no run that succeeded": {jobevent.ProcessExit{Hint: "the disk is full"}, counted(1, 0, 0), ""},
		"a hint explains no run that was ended": {jobevent.ProcessExit{Cause: jobevent.Interrupted, ExitCode: 254, Hint: "the disk is full"}, jobevent.Summary{},
			"run canceled"},
		"an exit code that no task explains": {jobevent.ProcessExit{ExitCode: 250, Output: "unexpected"}, counted(1, 0, 0),
			"ansible-runner exited with code 250 although no task failed\nunexpected"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := jobevent.DetermineOutcome(c.ending, c.summary).Message; got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}

// The message of a failure outside of tasks says what to do about it.
func TestFailuresOfTheMachineNameTheirRemedy(t *testing.T) {
	at := jobevent.Summary{Play: "p", Task: "t"}
	failure := func(message string) jobevent.Summary {
		return jobevent.Summary{StatsSeen: true, Hosts: 1, Failures: 1, Failed: []jobevent.TaskFailure{{Task: "t", Message: message}}}
	}
	cases := map[string]struct {
		ending     jobevent.ProcessExit
		summary    jobevent.Summary
		want, help string // help is a part of the last line, "" for none
	}{
		"ansible-runner killed for want of memory":     {jobevent.ProcessExit{ExitCode: -9}, at, "ended by SIGKILL", "memory limit"},
		"the setting that takes less":                  {jobevent.ProcessExit{ExitCode: -9, RunLimit: "--max-concurrent-runs"}, at, "ended by SIGKILL", "because memory ran out: raise the memory limit, or run fewer at once by --max-concurrent-runs"},
		"the same, told by what started it":            {jobevent.ProcessExit{ExitCode: 137}, at, "ended by SIGKILL", "memory limit"},
		"another signal is only named":                 {jobevent.ProcessExit{ExitCode: -11}, at, "ended by SIGSEGV", ""},
		"a signal without a name":                      {jobevent.ProcessExit{ExitCode: -40}, at, "signal 40", ""},
		"ansible-playbook that had nothing to do":      {jobevent.ProcessExit{ExitCode: 0, Output: "playbook: /p.yml"}, jobevent.Summary{}, "exited with code 0", ""},
		"a worker killed":                              {jobevent.ProcessExit{ExitCode: 1, Output: "[ERROR]: A worker was found in a dead state"}, at, "dead state", "memory limit"},
		"Python out of memory":                         {jobevent.ProcessExit{ExitCode: 250, Output: "MemoryError"}, at, "MemoryError", "memory limit"},
		"a module killed":                              {jobevent.ProcessExit{ExitCode: 2}, failure("no start of json char found (rc 137: ended by SIGKILL)"), "rc 137", "memory limit"},
		"told to end by a stranger":                    {jobevent.ProcessExit{ExitCode: 254}, at, "by somebody other than this operator", ""},
		"no ansible-playbook":                          {jobevent.ProcessExit{ExitCode: 127, Output: "The command was not found or was not executable: ansible-playbook."}, jobevent.Summary{}, "exited with code 127", "pip install"},
		"no password for what is encrypted":            {jobevent.ProcessExit{ExitCode: 4, Output: "[ERROR]: Attempting to decrypt but no vault secrets found."}, jobevent.Summary{}, "no vault secrets", "ANSIBLE_VAULT_PASSWORD_FILE"},
		"no password, met by a task":                   {jobevent.ProcessExit{ExitCode: 2}, failure("Attempting to decrypt but no vault secrets found."), "no vault secrets", "ANSIBLE_VAULT_PASSWORD_FILE"},
		"a namespace that is being deleted":            {jobevent.ProcessExit{ExitCode: 2}, failure(`Failed to create object: {"message":"configmaps \"x\" is forbidden: unable to create new content in namespace shop because it is being terminated","reason":"Forbidden"}`), "configmaps", `abandon: "true"`},
		"a text as a condition":                        {jobevent.ProcessExit{ExitCode: 2}, failure("Task failed: A 'when' expression failed: Conditional result (True) was derived from value of type 'str' at '/p/main.yml:4:33'. Conditionals must have a boolean result."), "'str'", "is truthy"},
		"a number where text is wanted":                {jobevent.ProcessExit{ExitCode: 2}, failure(`Failed to create object: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string`), "number", "| string"},
		"the same, applied by the server":              {jobevent.ProcessExit{ExitCode: 2}, failure("Failed to apply object: failed to create typed patch object (default/c; /v1, Kind=ConfigMap): errors:\n  .data.b: expected string, got &value.valueUnstructured{Value:true}"), "typed", "| string"},
		"a template that renders nothing":              {jobevent.ProcessExit{ExitCode: 2}, failure("Task failed: Finalization of task args for 'ansible.builtin.debug' failed: Error while resolving value for 'msg': Error rendering template: unsupported operand type(s) for +: 'NoneType' and 'str'"), "operand", "default('', true)"},
		"its length":                                   {jobevent.ProcessExit{ExitCode: 2}, failure("The filter plugin 'ansible.builtin.length' failed: object of type 'NoneType' has no len()"), "len()", "default('', true)"},
		"it as an argument":                            {jobevent.ProcessExit{ExitCode: 2}, failure("value of state must be one of: absent, directory, file, hard, link, touch, got: None"), "state", "default('', true)"},
		"a sum of a text and a number":                 {jobevent.ProcessExit{ExitCode: 2}, failure(`Error rendering template: can only concatenate str (not "_AnsibleTaggedInt") to str`), "concatenate", "write ~"},
		"a sum of a number and a text":                 {jobevent.ProcessExit{ExitCode: 2}, failure("Error rendering template: unsupported operand type(s) for +: '_AnsibleTaggedInt' and 'str'"), "operand", "write ~"},
		"a playbook among tasks":                       {jobevent.ProcessExit{ExitCode: 2}, failure("Task failed: Action 'ansible.builtin.import_playbook' does not support raw params."), "raw params", "include_role"},
		"a module of a collection that is not there":   {jobevent.ProcessExit{ExitCode: 4, Output: "[ERROR]: couldn't resolve module/action 'a.b.c'. This often indicates a misspelling."}, jobevent.Summary{}, "a.b.c", "requirements.yml"},
		"a filter of one":                              {jobevent.ProcessExit{ExitCode: 2}, failure("Task failed: Syntax error in template: No filter named 'a.b.c'."), "a.b.c", "requirements.yml"},
		"a lookup of one":                              {jobevent.ProcessExit{ExitCode: 2}, failure("The lookup plugin 'a.b.c' was not found."), "a.b.c", "requirements.yml"},
		"a role of the project":                        {jobevent.ProcessExit{ExitCode: 2}, failure("The role 'c' was not found in: /r"), "/r", ""},
		"a template that nobody rendered":              {jobevent.ProcessExit{ExitCode: 2}, failure("Failed to load resource definition: while constructing a mapping\n  in \"<unicode string>\", line 4, column 9:\n      ********\n            ^\nfound unhashable key"), "unhashable", "requirements.yml"},
		"one with statements":                          {jobevent.ProcessExit{ExitCode: 2}, failure("Failed to load resource definition: while scanning for the next token\nfound character '%' that cannot start any token"), "token", "requirements.yml"},
		"one that came as far as the API server":       {jobevent.ProcessExit{ExitCode: 2}, failure(`Failed to create object: ConfigMap "{{ name }}" is invalid: metadata.name: Invalid value: "{{ name }}": a lowercase RFC 1123 subdomain`), "RFC", "requirements.yml"},
		"a hint knows better":                          {jobevent.ProcessExit{ExitCode: -9, Hint: "enlarge it"}, at, "SIGKILL", "enlarge it"},
		"a parse error says what to do by its own":     {jobevent.ProcessExit{ExitCode: 4, Output: "[ERROR]: conflicting action statements: debug, fail"}, jobevent.Summary{}, "conflicting action", ""},
		"a task that failed says what to do by itself": {jobevent.ProcessExit{ExitCode: 2}, failure("there is no Secret"), "there is no Secret", ""},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			got := jobevent.DetermineOutcome(c.ending, c.summary).Message
			last := got[strings.LastIndex(got, "\n")+1:]
			if !strings.Contains(got, c.want) || c.help != "" && !strings.Contains(last, c.help) || c.help == "" && strings.Contains(got, "raise the") {
				t.Errorf("%q", got)
			}
		})
	}
}

// A full disk makes another line of code fail each time.
func TestAFullDiskSaysTheSameEachTime(t *testing.T) {
	judged := func(line int) content.Outcome {
		trace := fmt.Sprintf("  File \"x.py\", line %d\nOSError: [Errno 28] No space left on device\n", line)
		return jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1, Output: trace, Hint: "the disk is full"}, jobevent.Summary{Play: "p", Task: "t"})
	}
	const want = "ansible-runner exited with code 1 before the run ended\nended in play [p], task [t]\nthe disk is full"
	if a, b := judged(1), judged(2); a != b || a.Message != want {
		t.Errorf("%q and %q", a.Message, b.Message)
	}
}

// The end of the output says the most.
func TestLongOutputLosesItsBeginning(t *testing.T) {
	long := jobevent.TaskFailure{Task: "t", Message: strings.Repeat("x", 2<<10)}
	output := strings.Repeat("€\x1b", 2000) + "\nthe end"
	for why, s := range map[string]jobevent.Summary{
		"alone":                     {},
		"behind many long failures": {Failures: 3, Failed: []jobevent.TaskFailure{long, long, long}},
	} {
		for _, ending := range []jobevent.ProcessExit{
			{ExitCode: 1, Output: output},
			{ExitCode: -1, Output: output},
			{Cause: jobevent.Crashed, Err: errors.New(strings.Repeat("e", 8<<10)), Output: output},
		} {
			got := jobevent.DetermineOutcome(ending, s).Message
			if len(got) > 4<<10 || len(got) < 3800 || !utf8.ValidString(got) {
				t.Errorf("%s, %s: %d bytes", why, ending.Cause, len(got))
			}
			if !strings.HasPrefix(got, "ansible-runner") || !strings.HasSuffix(got, "\nthe end") {
				t.Errorf("%s, %s: %.60q … %q", why, ending.Cause, got, got[max(0, len(got)-60):])
			}
		}
	}
}

func TestMessagesAreBoundedAndFitToBeShown(t *testing.T) {
	for size := range 8 { // A bound cuts a character at each place.
		text := strings.Repeat("x", size) + strings.Repeat("€\x1b", 4000)
		s := counted(1, 1, 0)
		for i := range 16 {
			s.Failed = append(s.Failed, jobevent.TaskFailure{Task: fmt.Sprint(i), Message: text[:size]})
		}
		for _, got := range []string{
			jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1, Output: text}, jobevent.Summary{}).Message,
			jobevent.DetermineOutcome(jobevent.ProcessExit{Cause: jobevent.Crashed, Err: errors.New(text)}, jobevent.Summary{}).Message,
			jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 2}, s).Message,
			jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1, Output: text, Hint: strings.Repeat("h", 1000)}, jobevent.Summary{}).Message,
			jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: -9, Output: text}, s).Message,
			jobevent.DetermineOutcome(jobevent.ProcessExit{Cause: jobevent.Crashed, Err: errors.New("cannot allocate memory" + text)}, s).Message,
		} {
			if len(got) > 4<<10 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") {
				t.Fatalf("%d bytes: %q", len(got), got)
			}
		}
	}
}
