package jobevent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

func fold(events ...jobevent.Event) jobevent.Summary {
	var s jobevent.Summary
	for _, e := range events {
		s.Fold(e)
	}
	return s
}

func failedOn(host, task string) jobevent.Event {
	return jobevent.Event{Kind: jobevent.HostFailed, Play: "p", Task: task, Host: host, Result: map[string]any{"msg": task + " failed"}}
}

func stats(h jobevent.HostStats) jobevent.Event {
	return jobevent.Event{Kind: jobevent.Stats, HostStats: &h}
}

func tasks(failures []jobevent.TaskFailure) string {
	var names []string
	for _, f := range failures {
		names = append(names, f.Host+"/"+f.Task)
	}
	return strings.Join(names, " ")
}

func TestRescuedFailuresAreTakenOut(t *testing.T) {
	cases := map[string]struct {
		failed []jobevent.Event
		counts map[string]int
		want   string
	}{
		"all were rescued":                        {[]jobevent.Event{failedOn("a", "1"), failedOn("a", "2")}, nil, ""},
		"the last one was not":                    {[]jobevent.Event{failedOn("a", "1"), failedOn("a", "2")}, map[string]int{"a": 1}, "a/2"},
		"hosts are told apart":                    {[]jobevent.Event{failedOn("a", "1"), failedOn("b", "1"), failedOn("b", "2")}, map[string]int{"a": 1, "b": 1}, "a/1 b/2"},
		"one rescued on one host, one not":        {[]jobevent.Event{failedOn("b", "1"), failedOn("a", "1")}, map[string]int{"b": 1}, "b/1"},
		"a failure in the always section as well": {[]jobevent.Event{failedOn("a", "1"), failedOn("a", "2")}, map[string]int{"a": 2}, "a/1 a/2"},
		"counted but never reported":              {nil, map[string]int{"a": 1}, ""},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			s := fold(append(c.failed, stats(jobevent.HostStats{Failures: c.counts}))...)
			if got := tasks(s.Failed); got != c.want {
				t.Errorf("%q is left", got)
			}
		})
	}
}

func TestIgnoredAndReachedHostsAreNotKept(t *testing.T) {
	ignored := failedOn("a", "1")
	ignored.IgnoreErrors = true
	lost := jobevent.Event{Kind: jobevent.HostUnreachable, Host: "b", Task: "2"}
	tolerated := jobevent.Event{Kind: jobevent.HostUnreachable, Host: "c", Task: "3"}
	s := fold(ignored, tolerated, lost, stats(jobevent.HostStats{Unreachable: map[string]int{"b": 1}, Ignored: map[string]int{"a": 1, "c": 1}}))
	if tasks(s.Failed) != "" || tasks(s.UnreachableHosts) != "b/2" || s.Ignored != 2 {
		t.Errorf("%+v", s)
	}
}

// The statistics count a host whose error a meta task has cleared. Only with exit code 0, and
// where the closing statistics say which hosts are lost, is such a run a success.
func TestAHostThatIsUnreachableNoMore(t *testing.T) {
	lost := func(host string) jobevent.Event {
		return jobevent.Event{Kind: jobevent.HostUnreachable, Play: "p", Task: "t", Host: host, Result: map[string]any{"msg": "refused"}}
	}
	type counts = map[string]int
	cases := map[string]struct {
		exit  int
		stats jobevent.HostStats
		want  content.Reason
		told  string // which hosts the message names
	}{
		"it was cleared":                     {0, jobevent.HostStats{Unreachable: counts{"a": 1}, Lost: counts{}}, content.ReasonSuccessful, ""},
		"nobody says so":                     {0, jobevent.HostStats{Unreachable: counts{"a": 1}}, jobevent.ReasonUnreachable, "a"},
		"it is lost, whatever the exit code": {0, jobevent.HostStats{Unreachable: counts{"a": 1}, Lost: counts{"a": 1}}, jobevent.ReasonUnreachable, "a"},
		"another one is":                     {4, jobevent.HostStats{Unreachable: counts{"a": 1, "b": 1}, Lost: counts{"b": 1}}, jobevent.ReasonUnreachable, "b"},
		"it was cleared and lost again":      {4, jobevent.HostStats{Unreachable: counts{"a": 2}, Lost: counts{"a": 2}}, jobevent.ReasonUnreachable, "a"},
		"the exit code says otherwise":       {4, jobevent.HostStats{Unreachable: counts{"a": 1}, Lost: counts{}}, content.ReasonFailed, ""},
		"a task of it failed":                {2, jobevent.HostStats{Unreachable: counts{"a": 1}, Lost: counts{}, Failures: counts{"a": 1}}, content.ReasonFailed, ""},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			c.stats.Processed = counts{"a": 1}
			got := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: c.exit}, fold(lost("a"), lost("b"), stats(c.stats)))
			if got.Reason != c.want {
				t.Errorf("got %+v, want %s", got, c.want)
			}
			for _, host := range []string{"a", "b"} {
				if told := strings.Contains(got.Message, "host ["+host+"]"); told != (host == c.told) {
					t.Errorf("got %q, want %q in it", got.Message, c.told)
				}
			}
		})
	}
}

func TestASecondStatsEventNeverCounts(t *testing.T) {
	s := fold(stats(jobevent.HostStats{Failures: map[string]int{"a": 1}}), stats(jobevent.HostStats{OK: map[string]int{"a": 9}, Processed: map[string]int{"a": 1}}))
	if s.Failures != 1 || s.OK != 0 || s.Hosts != 0 {
		t.Errorf("%+v", s)
	}
}

// Events say which plays started. Only the statistics say whether they succeeded.
func TestPlaysThatStarted(t *testing.T) {
	begun, unmatched := jobevent.Event{Kind: jobevent.PlayStart}, jobevent.Event{Kind: jobevent.NoHostsMatched}
	none := map[string]int{}
	whole := stats(jobevent.HostStats{Failures: none, Unreachable: none, Processed: none})
	cases := map[string]struct {
		events []jobevent.Event
		want   content.Reason
	}{
		"a play without a result":                   {[]jobevent.Event{begun, whole}, content.ReasonSuccessful},
		"no host matched":                           {[]jobevent.Event{begun, unmatched, whole}, jobevent.ReasonNoHosts},
		"no host matched twice":                     {[]jobevent.Event{begun, unmatched, begun, unmatched, whole}, jobevent.ReasonNoHosts},
		"none matched the first play":               {[]jobevent.Event{begun, unmatched, begun, whole}, content.ReasonSuccessful},
		"none matched the last play":                {[]jobevent.Event{begun, begun, unmatched, whole}, content.ReasonSuccessful},
		"no play":                                   {[]jobevent.Event{whole}, content.ReasonFailed},
		"a play that was lost, and a word about it": {[]jobevent.Event{unmatched, begun, unmatched, whole}, jobevent.ReasonNoHosts},
		"counts without failures":                   {[]jobevent.Event{begun, stats(jobevent.HostStats{Unreachable: none, Processed: none})}, content.ReasonFailed},
		"counts without unreachable hosts":          {[]jobevent.Event{begun, stats(jobevent.HostStats{Failures: none, Processed: none})}, content.ReasonFailed},
		"counts without hosts":                      {[]jobevent.Event{begun, stats(jobevent.HostStats{Failures: none, Unreachable: none})}, content.ReasonFailed},
		"a play after the counts":                   {[]jobevent.Event{whole, begun}, content.ReasonFailed},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := jobevent.DetermineOutcome(jobevent.ProcessExit{}, fold(c.events...)); got.Reason != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRequeue(t *testing.T) {
	asked := func(action, resolved string, period any) jobevent.Event {
		return jobevent.Event{Kind: jobevent.HostOK, Task: "t", Action: action, ResolvedAction: resolved, Result: map[string]any{"period": period}}
	}
	item := asked("requeue_after", "", "5s")
	item.Kind = jobevent.ItemOK
	failed := asked("requeue_after", "", "5s")
	failed.Kind = jobevent.HostFailed
	noPeriod := jobevent.Event{Kind: jobevent.HostOK, Action: "requeue_after", Result: map[string]any{"censored": "hidden"}}
	cases := map[string]struct {
		events []jobevent.Event
		want   time.Duration
		bad    bool
	}{
		"the bare name":                           {[]jobevent.Event{asked("requeue_after", "", "1h30m")}, 90 * time.Minute, false},
		"the old collection":                      {[]jobevent.Event{asked("operator_sdk.util.requeue_after", "", "90s")}, 90 * time.Second, false},
		"our collection":                          {[]jobevent.Event{asked("ensign.operator.requeue_after", "", "90s")}, 90 * time.Second, false},
		"a name that was resolved":                {[]jobevent.Event{asked("action", "ensign.operator.requeue_after", "90s")}, 90 * time.Second, false},
		"an item of a loop":                       {[]jobevent.Event{item}, 5 * time.Second, false},
		"the shortest of many":                    {[]jobevent.Event{asked("requeue_after", "", "9s"), asked("requeue_after", "", "7s"), asked("requeue_after", "", "8s")}, 7 * time.Second, false},
		"no shorter than a second":                {[]jobevent.Event{asked("requeue_after", "", "1ns")}, time.Second, false},
		"another module that returns a period":    {[]jobevent.Event{asked("debug", "ansible.builtin.debug", "1s")}, 0, false},
		"a module of a similar name":              {[]jobevent.Event{asked("evil.requeue_after", "evil.requeue_after", "1s")}, 0, false},
		"a task that failed":                      {[]jobevent.Event{failed}, 0, false},
		"a result without period":                 {[]jobevent.Event{noPeriod}, 0, false},
		"no duration":                             {[]jobevent.Event{asked("requeue_after", "", "soon")}, 0, true},
		"a number":                                {[]jobevent.Event{asked("requeue_after", "", json.Number("90"))}, 0, true},
		"nothing":                                 {[]jobevent.Event{asked("requeue_after", "", nil)}, 0, true},
		"zero":                                    {[]jobevent.Event{asked("requeue_after", "", "0s")}, 0, true},
		"a negative period":                       {[]jobevent.Event{asked("requeue_after", "", "-1s")}, 0, true},
		"a good period beside a bad one":          {[]jobevent.Event{asked("requeue_after", "", "1s"), asked("requeue_after", "", "x")}, time.Second, true},
		"a period that is too long for an int64":  {[]jobevent.Event{asked("requeue_after", "", "9999999h")}, 0, true},
		"a period of a megabyte keeps its bounds": {[]jobevent.Event{asked("requeue_after", "", strings.Repeat("€", 1<<19))}, 0, true},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			s := fold(c.events...)
			if s.RequeueAfter != c.want || (s.BadRequeue != nil) != c.bad {
				t.Errorf("%v, %+v", s.RequeueAfter, s.BadRequeue)
			}
			if c.bad && len(s.BadRequeue.Message) > 1024 {
				t.Errorf("the message has %d bytes", len(s.BadRequeue.Message))
			}
		})
	}
}

// Hosts run at the same time and report in any order.
func TestTheOrderOfHostsDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		hosts := 1 + random.IntN(25)
		queues, counts := make([][]jobevent.Event, hosts), jobevent.HostStats{Failures: map[string]int{}}
		for h := range hosts {
			host := fmt.Sprintf("host-%02d", h)
			for i := range random.IntN(5) {
				queues[h] = append(queues[h], failedOn(host, fmt.Sprint(i)))
			}
			counts.Failures[host] = random.IntN(len(queues[h]) + 1)
		}
		want := judged(random, queues, counts)
		for range 5 {
			if got := judged(random, queues, counts); got != want {
				t.Fatalf("got\n%s\nafter\n%s", got, want)
			}
		}
	}
}

// judged returns the message of the failures in an order that keeps that of each host.
func judged(random *rand.Rand, queues [][]jobevent.Event, counts jobevent.HostStats) string {
	var events []jobevent.Event
	at := make([]int, len(queues))
	for left := true; left; {
		left = false
		for _, h := range random.Perm(len(queues)) {
			if at[h] < len(queues[h]) && random.IntN(2) == 0 {
				events = append(events, queues[h][at[h]])
				at[h]++
			}
			left = left || at[h] < len(queues[h])
		}
	}
	return jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 2}, fold(append(events, stats(counts))...)).Message
}

func TestItemsOfSeveralHostsAreToldApart(t *testing.T) {
	var events []jobevent.Event
	for i := range 30 {
		for _, host := range []string{"b", "a"} {
			events = append(events, jobevent.Event{Kind: jobevent.ItemFailed, Host: host, Result: map[string]any{"_ansible_item_label": fmt.Sprint(i), "msg": "no"}})
		}
	}
	s := fold(append(events, failedOn("a", "t"), failedOn("b", "t"))...)
	const want = "t failed\n(item=0) no\n(item=1) no\n(item=2) no\n(item=3) no\n(item=4) no"
	if len(s.Failed) != 2 || s.Failed[0].Message != want || s.Failed[1].Message != want || len(s.FailedItems) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestASummaryIsBounded(t *testing.T) {
	long := strings.Repeat("€\x1b\n", 1<<12)
	var s jobevent.Summary
	for i := range 25 {
		for _, kind := range []jobevent.Kind{jobevent.TaskStart, jobevent.ItemFailed, jobevent.HostFailed, jobevent.HostUnreachable, jobevent.HostOK, jobevent.ContentRefused} {
			s.Fold(jobevent.Event{
				Kind: kind, Play: long, Task: long, Role: long, Host: fmt.Sprint(i, long), Action: "requeue_after",
				Result:   map[string]any{"msg": long, "period": long, "_ansible_item_label": long, "near": []any{long, long, long, long}},
				TaskPath: long,
			})
		}
	}
	if size := len(fmt.Sprintf("%+v", s)) + len(fmt.Sprintf("%+v", *s.Refusal)); size > 128<<10 {
		t.Errorf("%d bytes", size)
	}
	if outcome := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 2}, s); len(outcome.Message) > 4<<10 {
		t.Errorf("a message of %d bytes", len(outcome.Message))
	}
}

func TestMessages(t *testing.T) {
	cases := map[string]struct {
		result map[string]any
		want   string
	}{
		"a text":                                   {map[string]any{"msg": "boom"}, "boom"},
		"a list":                                   {map[string]any{"msg": []any{"a", json.Number("1")}}, `["a",1]`},
		"no result":                                {nil, ""},
		"no msg":                                   {map[string]any{"rc": json.Number("1")}, ""},
		"a censored result":                        {map[string]any{"censored": "hidden"}, "hidden"},
		"a result that says no_log":                {map[string]any{"msg": "password", "_ansible_no_log": true}, hiddenByNoLog},
		"a Secret in a text":                       {map[string]any{"msg": "kind: Secret\ndata: {a: Yg==}"}, "******** (text of a Secret)"},
		"a Secret as it is":                        {map[string]any{"msg": map[string]any{"kind": "Secret", "data": map[string]any{"a": "Yg=="}}}, `{"data":{"a":"********"},"kind":"Secret"}`},
		"colours are taken out":                    {map[string]any{"msg": "\x1b[0;31mred\x1b[0m"}, "red"},
		"controls are shown":                       {map[string]any{"msg": "a\x1b[2Jb\x00\x7f\u202e\u2028c"}, `a\x1b[2Jb\x00\x7f\u202e\u2028c`},
		"lines stay lines":                         {map[string]any{"msg": "a\r\nb\tc"}, "a\nb\tc"},
		"names of temporary files are steady":      {map[string]any{"msg": "in /root/.ansible/tmp/ansible-tmp-1795264862.5-123-456789/x.py and /tmp/tmpab_c12d3/y"}, "in /root/.ansible/tmp/ansible-tmp-…/x.py and /tmp/tmp…/y"},
		"addresses and precise times are, too":     {map[string]any{"msg": "<object at 0x7f1234567890> at 2026-11-21 12:41:01.460473 on 2026-11-21"}, "<object at 0x…> at (time) on 2026-11-21"},
		"so are headers new with each answer":      {map[string]any{"msg": "HTTPHeaderDict({'Audit-Id': '5c0f', 'Date': 'Sat, 21 Nov 2026 12:41:01 GMT', 'Content-Type': 'x'})"}, "HTTPHeaderDict({'Audit-Id': '…', 'Date': '…', 'Content-Type': 'x'})"},
		"what the API server quotes of a Secret":   {map[string]any{"msg": `Secret "s" is invalid: data[password]: Invalid value: "hunter2": too short`}, `Secret "s" is invalid: data[password]: Invalid value: "********": too short`},
		"the environment among facts":              {map[string]any{"msg": map[string]any{"ansible_env": map[string]any{"TOKEN": "t"}}}, `{"ansible_env":{"TOKEN":"********"}}`},
		"what Ansible has no msg for":              {map[string]any{"msg": "Task failed: Unknown error.", "message": "no vault secrets found"}, "Task failed: Unknown error. no vault secrets found"},
		"a message beside a msg":                   {map[string]any{"msg": "boom", "message": "else"}, "boom"},
		"names that modules and jobs have once":    {map[string]any{"msg": "/x/ansible_ansible.legacy.command_payload_ah_bcs0o/a.zip, ansible-local-4728abc_1234, job j358468742558.4728, PID 4711, pid=4712"}, "/x/ansible_ansible.legacy.command_payload_…/a.zip, ansible-local-…, job j…, PID …, pid=…"},
		"how long it took, to the millisecond":     {map[string]any{"msg": "0.123456 s, 12.345seconds, 0:00:00.003257, but 1.5 s and version 1.26.3"}, "… s, …seconds, …, but 1.5 s and version 1.26.3"},
		"this end of a connection":                 {map[string]any{"msg": "read tcp 10.1.2.3:43512->10.96.0.1:443: reset"}, "read tcp 10.1.2.3:…->10.96.0.1:443: reset"},
		"the signal that ended a command":          {map[string]any{"msg": "non-zero return code", "rc": json.Number("-9")}, "non-zero return code (rc -9: ended by SIGKILL)"},
		"the same, as a shell has it":              {map[string]any{"msg": "non-zero return code", "rc": json.Number("139")}, "non-zero return code (rc 139: ended by SIGSEGV)"},
		"a return code that means no signal":       {map[string]any{"msg": "non-zero return code", "rc": json.Number("129")}, "non-zero return code (rc 129)"},
		"a return code of success":                 {map[string]any{"msg": "failed_when", "rc": json.Number("0")}, "failed_when"},
		"what a command says of its failure":       {map[string]any{"msg": "non-zero return code", "rc": json.Number("2"), "stderr": "sh: 1: nope: not found\n"}, "non-zero return code (rc 2)\nsh: 1: nope: not found"},
		"the end of what it says":                  {map[string]any{"msg": "m", "rc": json.Number("2"), "stderr": strings.Repeat("é", 4000) + "\nlast"}, "m (rc 2)\n… [cut]" + strings.Repeat("é", 505) + "\nlast"},
		"errors that the message has":              {map[string]any{"msg": "helm: boom\n", "rc": json.Number("1"), "stderr": "boom\n"}, "helm: boom (rc 1)"},
		"errors with colours and a new process":    {map[string]any{"msg": "m", "rc": json.Number("1"), "stderr": "\x1b[31mpid 4711\x1b[0m\x00"}, "m (rc 1)\npid …\\x00"},
		"a Secret among errors":                    {map[string]any{"msg": "m", "rc": json.Number("1"), "stderr": "kind: Secret\ndata: {a: Yg==}"}, "m (rc 1)\n******** (text of a Secret)"},
		"errors under no_log":                      {map[string]any{"censored": "hidden", "rc": json.Number("2"), "stderr": "pa55word", "_ansible_no_log": true}, hiddenByNoLog},
		"an API server's answer":                   {map[string]any{"msg": "Failed to create object: " + refused("ConfigMap")}, `Failed to create object: ConfigMap "X" is invalid: data[k]: Invalid value: "********": it's é`},
		"an answer, and more":                      {map[string]any{"msg": "a " + refused("Pod") + " b " + refused("Pod") + " c"}, `a Pod "X" is invalid: data[k]: Invalid value: "********": it's é b Pod "X" is invalid: data[k]: Invalid value: "********": it's é c`},
		"an answer as JSON":                        {map[string]any{"msg": `body: {"kind":"Status","apiVersion":"v1","message":"no \"x\"","code":404}` + "\nmore"}, "body: no \"x\"\nmore"},
		"an answer that was cut":                   {map[string]any{"msg": `Failed: b'{"kind":"Status","message":"a`}, `Failed: b'{"kind":"Status","message":"a`},
		"an answer without a message":              {map[string]any{"msg": `Failed: b'{"kind":"Status","code":404}'`}, `Failed: b'{"kind":"Status","code":404}'`},
		"an answer that is no answer":              {map[string]any{"msg": `Failed: b'{"kind":"Status",}' {"kind":"Status",`}, `Failed: b'{"kind":"Status",}' {"kind":"Status",`},
		"a return code that is no number":          {map[string]any{"msg": "no", "rc": "-9"}, "no"},
		"a return code under no_log":               {map[string]any{"censored": "hidden", "rc": json.Number("-9"), "_ansible_no_log": true}, hiddenByNoLog},
		"a Secret's name alone is nothing to hide": {map[string]any{"msg": "the Secret mysql-admin does not exist (kind: Secret)"}, "the Secret mysql-admin does not exist (kind: Secret)"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			s := fold(jobevent.Event{Kind: jobevent.HostFailed, Play: "p", Task: "t", Role: "r", Host: "h", Result: c.result})
			want := []jobevent.TaskFailure{{Play: "p", Task: "r : t", Host: "h", Message: c.want}}
			if diff := cmp.Diff(want, s.Failed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// refused is an API server's answer as Python writes its bytes.
func refused(kind string) string {
	return `b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + kind + ` \\"X\\" is invalid: data[k]: Invalid value: \\"hunter2\\": it\'s \xc3\xa9","reason":"Invalid","details":{"name":"X","kind":"` + kind + `"},"code":422}\n'`
}

// A long path loses its beginning: the name of the file and the line say the most.
func TestPlacesOfFailures(t *testing.T) {
	failed := jobevent.Event{Kind: jobevent.HostFailed, Play: "p", Task: "t", Host: "h", TaskPath: strings.Repeat("é/", 300) + "main.yml:3", Result: map[string]any{"msg": "boom"}}
	s := fold(jobevent.Event{Kind: jobevent.TaskStart, Play: "p", Task: "t", TaskPath: "a\x1b\nb.yml:1"}, failed)
	if got := s.Failed[0].TaskPath; len(got) > 256 || !strings.HasSuffix(got, "é/main.yml:3") || !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
	want := "ansible-runner exited with code 1 before the run ended\nended in play [p], task [t] (a\\x1b\\nb.yml:1)\n" +
		"play [p], task [t] (" + s.Failed[0].TaskPath + "), host [h]: boom"
	if got := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1}, s).Message; got != want {
		t.Errorf("%q", got)
	}
}

func TestTaskName(t *testing.T) {
	cases := map[string]struct{ role, task, want string }{
		"a task of a play":                          {"", "t", "t"},
		"a task of a role":                          {"r", "t", "r : t"},
		"a handler, which has its role in its name": {"r", "r : t", "r : t"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if got := (jobevent.Event{Role: c.role, Task: c.task}).TaskName(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestItemsOfALoopAreTold(t *testing.T) {
	item := func(host string, label any) jobevent.Event {
		return jobevent.Event{Kind: jobevent.ItemFailed, Host: host, Result: map[string]any{"_ansible_item_label": label, "msg": "no"}}
	}
	var many []jobevent.Event
	for i := range 100 {
		many = append(many, item("a", fmt.Sprint(i)))
	}
	of := func(kind string) jobevent.Event {
		e := item("a", []any{map[string]any{"op": "add", "path": "/data/k", "value": "v"}})
		e.Result["invocation"] = map[string]any{"module_args": map[string]any{"kind": kind}}
		return e
	}
	ignored := failedOn("a", "ignored")
	ignored.IgnoreErrors = true
	cases := map[string]struct {
		events []jobevent.Event
		want   string
	}{
		"with their labels":             {[]jobevent.Event{item("a", "x"), item("a", map[string]any{"n": "y"}), failedOn("a", "t")}, "t failed\n(item=x) no\n(item={\"n\":\"y\"}) no"},
		"without data of a Secret":      {[]jobevent.Event{of("Secret"), failedOn("a", "t")}, `t failed` + "\n" + `(item=[{"op":"add","path":"/data/k","value":"********"}]) no`},
		"with data of something else":   {[]jobevent.Event{of("ConfigMap"), failedOn("a", "t")}, `t failed` + "\n" + `(item=[{"op":"add","path":"/data/k","value":"v"}]) no`},
		"not those of another host":     {[]jobevent.Event{item("b", "x"), failedOn("a", "t")}, "t failed"},
		"not those of an ignored loop":  {[]jobevent.Event{item("a", "x"), ignored, failedOn("a", "t")}, "t failed"},
		"not those of a task gone well": {[]jobevent.Event{item("a", "x"), {Kind: jobevent.HostOK, Host: "a"}, failedOn("a", "t")}, "t failed"},
		"the first five":                {append(many, failedOn("a", "t")), "t failed\n(item=0) no\n(item=1) no\n(item=2) no\n(item=3) no\n(item=4) no"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			s := fold(c.events...)
			if len(s.Failed) != 1 || s.Failed[0].Message != c.want {
				t.Errorf("%+v", s.Failed)
			}
		})
	}
}
