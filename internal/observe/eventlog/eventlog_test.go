package eventlog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/zapr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/pkg/content"
)

var aRun = content.Run{ID: "r1", Watch: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}, Object: "default/sample", Generation: 3, Trigger: "changed", Heading: "Ansible Run"}

// log is an eventlog as the manager makes it, without times.
func log(out *bytes.Buffer, level eventlog.Level, asJSON bool) *eventlog.Log {
	stream := zapcore.Lock(zapcore.AddSync(out))
	config := zapcore.EncoderConfig{MessageKey: "msg", LevelKey: "level", EncodeLevel: zapcore.CapitalLevelEncoder, ConsoleSeparator: " "}
	encoder := zapcore.NewConsoleEncoder(config)
	if asJSON {
		encoder = zapcore.NewJSONEncoder(config)
	}
	logger := zapr.NewLogger(zap.New(zapcore.NewCore(encoder, stream, zapcore.DebugLevel)))
	return eventlog.New(eventlog.Options{Logger: logger, Blocks: stream, JSON: asJSON, Level: level})
}

// ended returns the result of a run of Ansible that was started cold.
func ended(outcome content.Outcome, s jobevent.Summary) content.Result {
	return content.Result{Outcome: outcome, RequeueAfter: s.RequeueAfter, Account: s.Account(jobevent.StartCold)}
}

// replay shows a run that the real ansible-runner reported.
func replay(t *testing.T, l *eventlog.Log, name string, exit int) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "ansible", "jobevent", "testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var s jobevent.Summary
	var output []string
	l.RunStarted(aRun)
	err = jobevent.Decode(file, jobevent.Handler{
		Event: func(e jobevent.Event) {
			e.Duration = e.Duration.Truncate(time.Hour)
			s.Fold(e)
			l.JobEvent(aRun, e)
		},
		Output: func(line string) { output = append(output, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	outcome := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: exit, Output: strings.Join(output, "\n")}, s)
	if outcome.Verdict == content.Succeeded {
		outcome.Message = "Ansible-runner exited successfully"
	}
	l.RunEnded(aRun, ended(outcome, s), 2345678*time.Microsecond)
}

const (
	top    = "--------------------------- Ansible Task StdOut -------------------------------\n"
	runTop = "------------------------------- Ansible Run -----------------------------------\n"
	bottom = "-------------------------------------------------------------------------------\n"
	begun  = `INFO run started {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "generation": 3, "reason": "changed", "run": "r1"}` + "\n"
)

// longResult is a result that does not fit on a line.
const longResult = `default/sample | ok: [localhost] => {
default/sample |     "ansible_facts": {
default/sample |         "discovered_interpreter_python": "/bin/python3.13"
default/sample |     },
default/sample |     "changed": false,
default/sample |     "period": "1h30m",
default/sample |     "warnings": [
default/sample |         "Host 'localhost' is using the discovered Python interpreter at '/bin/python3.13', but future installation of another Python interpreter could cause a different interpreter to be discovered."
default/sample |     ]
default/sample | }
`

func TestConsole(t *testing.T) {
	cases := map[string]struct {
		capture string
		exit    int
		level   eventlog.Level
		want    string
	}{
		"a failed task is followed by its block, a rescued one too": {"rescued", 2, eventlog.Tasks, begun +
			`ERROR task failed {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Fails but is rescued", "host": "localhost", "outcome": "failed", "seconds": 0, "run": "r1"}` + "\n" +
			top +
			"default/sample | TASK [Fails but is rescued] ****\n" +
			"default/sample | fatal: [localhost]: FAILED! => {\"changed\": false, \"msg\": \"the first try failed\"}\n" +
			bottom +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Clean up", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			`ERROR task failed {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Fails for good", "host": "localhost", "outcome": "failed", "seconds": 0, "run": "r1"}` + "\n" +
			top +
			"default/sample | TASK [Fails for good] ****\n" +
			"default/sample | fatal: [localhost]: FAILED! => {\"changed\": false, \"msg\": \"the disk is full\"}\n" +
			bottom +
			`ERROR run failed {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": "Failed", "reason": "Failed", "message": "play [Repair], task [Fails for good] (/run/project/rescued.yml:12), host [localhost]: the disk is full", "seconds": 2.346, "ok": 1, "changed": 0, "skipped": 0, "failures": 1, "unreachable": 0, "rescued": 1, "ignored": 0, "run": "r1"}` + "\n"},
		"each task has one line": {"ok", 0, eventlog.Tasks, begun +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "site : Say hello", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "site : ansible.builtin.debug", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Change something", "host": "localhost", "outcome": "changed", "seconds": 0, "run": "r1"}` + "\n" +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Not today", "host": "localhost", "outcome": "skipped", "seconds": 0, "run": "r1"}` + "\n" +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Restart", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			`INFO run succeeded {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": "Succeeded", "reason": "Successful", "seconds": 2.346, "ok": 4, "changed": 1, "skipped": 1, "failures": 0, "unreachable": 0, "rescued": 0, "ignored": 0, "message": "Ansible-runner exited successfully", "run": "r1"}` + "\n"},
		"a run without a failed task explains itself in a block": {"syntax", 4, eventlog.Tasks, begun +
			`ERROR run failed {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": "Failed", "reason": "ContentError", "message": "Ansible cannot load the content (/run/project/syntax.yml:6): YAML parsing failed: While scanning a quoted scalar found unexpected end of stream.\nOrigin: /run/project/syntax.yml:6:1\n\n(source not shown: file truncated)", "seconds": 2.346, "ok": 0, "changed": 0, "skipped": 0, "failures": 0, "unreachable": 0, "rescued": 0, "ignored": 0, "run": "r1"}` + "\n" +
			runTop +
			"default/sample | Ansible cannot load the content (/run/project/syntax.yml:6): YAML parsing failed: While scanning a quoted scalar found unexpected end of stream.\n" +
			"default/sample | Origin: /run/project/syntax.yml:6:1\n" +
			"default/sample | \n" +
			"default/sample | (source not shown: file truncated)\n" +
			bottom},
		"nothing of tasks at Nothing": {"rescued_only", 0, eventlog.Nothing, begun +
			`INFO run succeeded {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": "Succeeded", "reason": "Successful", "seconds": 2.346, "ok": 1, "changed": 0, "skipped": 0, "failures": 0, "unreachable": 0, "rescued": 1, "ignored": 0, "message": "Ansible-runner exited successfully", "run": "r1"}` + "\n"},
		"every task has a block at Everything": {"requeue", 0, eventlog.Everything, begun +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Later", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			top + "default/sample | TASK [Later] ****\n" +
			longResult +
			bottom +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Sooner", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			top + "default/sample | TASK [Sooner] ****\n" +
			`default/sample | ok: [localhost] => {"changed": false, "period": "90s"}` + "\n" + bottom +
			`INFO task {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "Only says so", "host": "localhost", "outcome": "ok", "seconds": 0, "run": "r1"}` + "\n" +
			top + "default/sample | TASK [Only says so] ****\n" +
			`default/sample | ok: [localhost] => {"changed": false, "msg": {"period": "1s"}}` + "\n" + bottom +
			`INFO run succeeded {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": "Succeeded", "reason": "Successful", "seconds": 2.346, "ok": 3, "changed": 0, "skipped": 0, "failures": 0, "unreachable": 0, "rescued": 0, "ignored": 0, "requeueAfter": "1m30s", "message": "Ansible-runner exited successfully", "run": "r1"}` + "\n"},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			var out bytes.Buffer
			replay(t, log(&out, c.level, false), c.capture, c.exit)
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEachKindOfContentSaysWhatItsRunsCame: whatever a kind of content has to say of a run is
// shown, and nothing of another kind.
func TestEachKindOfContentSaysWhatItsRunsCame(t *testing.T) {
	failure := content.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: "Failed", Message: "first\nsecond"}}
	success := content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: "Successful"}}
	applied := success
	applied.Outcome.Message, applied.RequeueAfter = "All is there", time.Minute
	applied.Account = content.Account{Start: "fast", Numbers: []content.Number{{Name: "applied", Value: 3}, {Name: "pruned", Value: 0}}, Summary: "3 applied"}
	shown := failure
	shown.Account.AlreadyLogged = true
	const (
		about  = `{"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "outcome": `
		failed = "ERROR run failed " + about + `"Failed", "reason": "Failed", "message": "first\nsecond", "seconds": 2, "run": "r1"}` + "\n"
		block  = "default/sample | first\ndefault/sample | second\n" + bottom
	)
	for why, test := range map[string]struct {
		heading  string
		result   content.Result
		want     string
		terminal string
	}{
		"a success of a chart": {"Helm Chart", success, "INFO run succeeded " + about + `"Succeeded", "reason": "Successful", "seconds": 2, "run": "r1"}` + "\n", "in 2.00 s\n"},
		"a failure of a chart": {"Helm Chart", failure, failed + "-------------------------------- Helm Chart -----------------------------------\n" + block, "in 2.00 s\n"},
		"a success of another kind": {
			"Manifests", applied, "INFO run succeeded " + about + `"Succeeded", "reason": "Successful", "seconds": 2, "applied": 3, "pruned": 0, "requeueAfter": "1m0s", "message": "All is there", "run": "r1"}` + "\n",
			"in 2.00 s, fast: 3 applied; it asks to run again after 1m0s\n",
		},
		"a failure of another kind":   {"Manifests", failure, failed + "-------------------------------- Manifests ------------------------------------\n" + block, "in 2.00 s\n"},
		"one without a heading":       {"", failure, failed + bottom + block, "in 2.00 s\n"},
		"one with a heading of lines": {"a\nb" + strings.Repeat("c", 100), failure, failed + bottom + block, "in 2.00 s\n"},
		"one that was shown":          {"Manifests", shown, failed, "in 2.00 s\n"},
	} {
		t.Run(why, func(t *testing.T) {
			var out, terminal bytes.Buffer
			run := aRun
			run.Heading = test.heading
			log(&out, eventlog.Tasks, false).RunEnded(run, test.result, 2*time.Second)
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
			eventlog.Screen{Out: &terminal}.RunEnded(run, test.result, 2*time.Second)
			if got := terminal.String(); !strings.Contains(got, test.terminal) {
				t.Errorf("at a terminal: got %q, want %q", got, test.terminal)
			}
		})
	}
}

// The statistics count a host that was unreachable and is no more.
func TestAHostThatWasClearedIsNoFailure(t *testing.T) {
	for lost, want := range []string{" 0 failed", " 1 failed"} {
		var terminal bytes.Buffer
		eventlog.Screen{Out: &terminal}.RunEnded(aRun, ended(content.Outcome{Verdict: content.Succeeded}, jobevent.Summary{StatsSeen: true, Unreachable: 1, Lost: lost}), time.Second)
		if got := terminal.String(); !strings.Contains(got, want) {
			t.Errorf("%d lost: got %q, want %q in it", lost, got, want)
		}
	}
}

func TestARequeueIntervalIsLoggedOnlyWhereItCounts(t *testing.T) {
	for why, test := range map[string]struct {
		verdict   content.Verdict
		finalizer bool
		want      bool
	}{
		"after a success":               {content.Succeeded, false, true},
		"not where back-off rules":      {content.Failed, false, false},
		"not where nothing comes again": {content.Succeeded, true, false},
	} {
		t.Run(why, func(t *testing.T) {
			var out bytes.Buffer
			run := aRun
			run.Finalizer = test.finalizer
			log(&out, eventlog.Nothing, false).RunEnded(run, ended(content.Outcome{Verdict: test.verdict}, jobevent.Summary{RequeueAfter: time.Minute}), time.Second)
			if got := strings.Contains(out.String(), "requeueAfter"); got != test.want {
				t.Errorf("%s", out.String())
			}
		})
	}
}

func TestJSONHasOneObjectALine(t *testing.T) {
	var out bytes.Buffer
	replay(t, log(&out, eventlog.Tasks, true), "ignored", 0)
	var blocks []string
	for line := range strings.Lines(out.String()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if block, ok := record["block"].(string); ok {
			blocks = append(blocks, fmt.Sprint(record["outcome"], ": ", block))
		}
	}
	if len(blocks) != 1 || !strings.HasPrefix(blocks[0], "ignored: TASK [May fail] ****\nfatal: [localhost]: FAILED! => {") || !strings.HasSuffix(blocks[0], "\n...ignoring") {
		t.Errorf("%q", blocks)
	}
}

// A run is what happens in one: the messages of tasks that fail, in order, and "-"
// for the end of a run that was cut off.
func TestAFailureThatRepeatsIsShownOnce(t *testing.T) {
	other := aRun
	other.Object = "default/other"
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprint("failure ", i)
	}
	cases := map[string]struct {
		runs [][]string
		want []int // blocks of each run
	}{
		"the same failure":                  {[][]string{{"boom"}, {"boom"}, {"boom"}}, []int{1, 0, 0}},
		"another failure":                   {[][]string{{"boom"}, {"bang"}, {"bang"}}, []int{1, 1, 0}},
		"one that comes back":               {[][]string{{"boom"}, {"bang"}, {"boom"}}, []int{1, 1, 1}},
		"one more":                          {[][]string{{"boom"}, {"boom", "bang"}, {"boom", "bang"}}, []int{1, 1, 0}},
		"a success between":                 {[][]string{{"boom"}, {}, {"boom"}}, []int{1, 0, 1}},
		"a run that was cut off between":    {[][]string{{"boom"}, {"-"}, {"boom"}}, []int{1, 0, 0}},
		"what differs in each run":          {[][]string{{"boom at 2026-11-21 12:41:01.460473, pid 12"}, {"boom at 2026-11-21 12:41:02.1, pid 345"}}, []int{1, 0}},
		"more failures than are remembered": {[][]string{many, many}, []int{20, 4}},
		"a failure of the run":              {[][]string{{"run: no role"}, {"run: no role"}, {"run: no play"}}, []int{1, 0, 1}},
	}
	for why, c := range cases {
		for _, asJSON := range []bool{false, true} {
			t.Run(fmt.Sprint(why, ", JSON ", asJSON), func(t *testing.T) {
				var out bytes.Buffer
				l := log(&out, eventlog.Tasks, asJSON)
				for i, failures := range c.runs {
					shown := blocks(t, &out, asJSON, func() { play(l, aRun, failures) })
					if asJSON && strings.HasPrefix(why, "a failure of the run") {
						continue // Its line has it all.
					}
					if shown != c.want[i] {
						t.Errorf("run %d: %d blocks, want %d", i+1, shown, c.want[i])
					}
					if blocks(t, &out, asJSON, func() { play(l, other, []string{fmt.Sprint("only of run ", i)}) }) != 1 {
						t.Errorf("run %d: that of another CR is not shown", i+1)
					}
				}
			})
		}
	}
}

func TestEachLineOfARunHasItsTrace(t *testing.T) {
	var out bytes.Buffer
	l, run := log(&out, eventlog.Everything, true), aRun
	run.TraceID = "4bf9"
	l.RunStarted(run)
	l.JobEvent(run, jobevent.Event{Kind: jobevent.ItemOK, Task: "a"})
	l.JobEvent(run, jobevent.Event{Kind: jobevent.HostFailed, Task: "a"})
	l.RunEnded(run, content.Result{Detached: true}, 0)
	l.RunEnded(run, content.Result{}, 0)
	if lines, traced := strings.Count(out.String(), "\n"), strings.Count(out.String(), `"trace_id":"4bf9"`); lines != 5 || traced != 5 {
		t.Errorf("%d of %d lines:\n%s", traced, lines, &out)
	}
}

func TestARepeatSaysSo(t *testing.T) {
	var out bytes.Buffer
	l := log(&out, eventlog.Tasks, false)
	for range 3 {
		out.Reset()
		play(l, aRun, []string{"boom"})
	}
	const want = `ERROR task failed {"cr": "default/sample", "watch": "example.com/v1, Kind=Site", "task": "t", "host": "h", "outcome": "failed", "seconds": 0, "run": "r1", "asBefore": true, "times": 3}` + "\n"
	if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, top) {
		t.Errorf("%s", got)
	}
	l.Forget(aRun.Watch, aRun.Object)
	if blocks(t, &out, false, func() { play(l, aRun, []string{"boom"}) }) != 1 {
		t.Error("a CR that is gone is remembered")
	}
}

func TestEverythingIsEverything(t *testing.T) {
	var out bytes.Buffer
	l := log(&out, eventlog.Everything, false)
	play(l, aRun, []string{"boom"})
	if blocks(t, &out, false, func() { play(l, aRun, []string{"boom"}) }) != 1 {
		t.Error("a block is left out at the highest level")
	}
}

// play shows a run in which tasks fail.
func play(l *eventlog.Log, run content.Run, failures []string) {
	var s jobevent.Summary
	outcome := content.Outcome{Verdict: content.Succeeded}
	l.RunStarted(run)
	for _, message := range failures {
		outcome.Verdict = content.Failed
		if said, ofRun := strings.CutPrefix(message, "run: "); ofRun {
			outcome.Message = said
			continue
		}
		if message == "-" {
			outcome.Verdict = content.Canceled
			continue
		}
		e := jobevent.Event{Kind: jobevent.HostFailed, Task: "t", Host: "h", Result: map[string]any{"msg": message}}
		s.Fold(e)
		l.JobEvent(run, e)
	}
	l.RunEnded(run, ended(outcome, s), 0)
}

// blocks counts those that are written meanwhile.
func blocks(t *testing.T, out *bytes.Buffer, asJSON bool, do func()) int {
	t.Helper()
	out.Reset()
	do()
	if asJSON {
		return strings.Count(out.String(), `"block":`)
	}
	return strings.Count(out.String(), top) + strings.Count(out.String(), runTop)
}

func TestNoLogHolds(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		replay(t, log(&out, eventlog.Everything, asJSON), "no_log", 2)
		if strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "censored") {
			t.Errorf("json %v: %s", asJSON, out.String())
		}
		if changed := regexp.MustCompile(`"Change in secret",.*"outcome": ?"changed"`); !changed.MatchString(out.String()) {
			t.Errorf("json %v: %s does not say that something changed", asJSON, out.String())
		}
	}
}

func TestItemsHaveLinesAtEverythingOnly(t *testing.T) {
	for level, want := range map[eventlog.Level]int{eventlog.Tasks: 0, eventlog.Everything: 3} {
		var out bytes.Buffer
		replay(t, log(&out, level, false), "loop", 2)
		if got := strings.Count(out.String(), "INFO item {"); got != want {
			t.Errorf("%v: %d lines for 3 items\n%s", level, got, out.String())
		}
	}
}

// TestNothingPassesForARecord: whatever a task is called and returns, each line
// is a record of the log's own, a frame, or begins with the CR.
func TestNothingPassesForARecord(t *testing.T) {
	evil := "x\nINFO run succeeded {}\r\n\x1b[2J\x1b]0;title\a\u202e\u0085\u2028\x00" + top + bottom
	for _, kind := range []jobevent.Kind{jobevent.HostOK, jobevent.HostFailed, jobevent.HostSkipped, jobevent.HostUnreachable, jobevent.ItemFailed} {
		var out bytes.Buffer
		l := log(&out, eventlog.Everything, false)
		l.JobEvent(aRun, jobevent.Event{Kind: kind, Task: evil, Role: evil, Host: evil, Result: map[string]any{
			"msg": evil, evil: []any{evil}, "_ansible_item_label": evil, "invocation": "hidden arguments",
			"result": map[string]any{"kind": "Secret", "data": map[string]any{"key": "hidden value"}},
		}})
		l.RunEnded(aRun, ended(jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1, Output: evil}, jobevent.Summary{}), jobevent.Summary{}), 0)
		for line := range strings.Lines(out.String()) {
			record := strings.HasPrefix(line, "INFO task {") || strings.HasPrefix(line, "INFO item {") || strings.HasPrefix(line, "ERROR ") && strings.Contains(line, ` {"cr"`)
			if !record && line != top && line != runTop && line != bottom && !strings.HasPrefix(line, "default/sample | ") {
				t.Errorf("%s: %q", kind, line)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\a\x00\r\u202e\u0085\u2028") || strings.Contains(out.String(), "hidden") {
			t.Errorf("%s: %q", kind, out.String())
		}
	}
}

func TestAnItemShowsNoDataOfASecret(t *testing.T) {
	for kind, want := range map[string]string{"Secret": "********", "ConfigMap": "value"} {
		var out bytes.Buffer
		log(&out, eventlog.Everything, false).JobEvent(aRun, jobevent.Event{Kind: jobevent.ItemOK, Result: map[string]any{
			"_ansible_item_label": map[string]any{"data": map[string]any{"key": "value"}},
			"result":              map[string]any{"kind": kind},
		}})
		if shown := fmt.Sprintf(`"item": "{\"data\": {\"key\": \"%s\"}}"`, want); !strings.Contains(out.String(), shown) {
			t.Errorf("%s: got %s, want %s in it", kind, out.String(), shown)
		}
	}
}

func TestConcurrentRunsNeverMix(t *testing.T) {
	var out bytes.Buffer
	l := log(&out, eventlog.Tasks, false)
	var runs sync.WaitGroup
	for i := range 8 {
		runs.Go(func() {
			run := aRun
			run.Object = fmt.Sprintf("default/cr-%d", i)
			for range 50 {
				l.JobEvent(run, jobevent.Event{Kind: jobevent.HostFailed, Task: "t", Result: map[string]any{"msg": strings.Repeat(run.Object, 50)}})
			}
		})
	}
	runs.Wait()
	blocks := 0
	for rest := out.String(); rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		if line+"\n" != top {
			if !strings.HasPrefix(line, "ERROR task failed {") {
				t.Fatalf("%q stands outside of a block", line)
			}
			rest = after
			continue
		}
		inside, after, _ := strings.Cut(after, bottom)
		object, _, _ := strings.Cut(inside, " | ")
		for line := range strings.Lines(inside) {
			if !strings.HasPrefix(line, object+" | ") {
				t.Fatalf("%q stands in a block of %s", line, object)
			}
		}
		blocks++
		rest = after
	}
	if blocks != 400 {
		t.Errorf("%d blocks instead of 400", blocks)
	}
}

func TestParseLevel(t *testing.T) {
	for text, want := range map[string]eventlog.Level{"Nothing": eventlog.Nothing, "tasks": eventlog.Tasks, "EVERYTHING": eventlog.Everything} {
		if got, err := eventlog.ParseLevel(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "all", "Tasks ", "1"} {
		if got, err := eventlog.ParseLevel(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestALogWithoutLoggerWritesBlocksOnly(t *testing.T) {
	var out bytes.Buffer
	l := eventlog.New(eventlog.Options{Level: eventlog.Everything, Blocks: &out})
	l.RunStarted(aRun)
	l.JobEvent(aRun, jobevent.Event{Kind: jobevent.HostFailed, Task: "t", Host: "h"})
	l.RunEnded(aRun, ended(content.Outcome{Verdict: content.Succeeded}, jobevent.Summary{}), time.Second)
	want := top + "default/sample | TASK [t] ****\ndefault/sample | fatal: [h]: FAILED!\n" + bottom
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Whatever a task returned, its block leaves the rest of the log in place: log
// collectors turn over at a few megabytes.
func TestABlockIsBounded(t *testing.T) {
	run := aRun
	run.Object = strings.Repeat("n", 63) + "/" + strings.Repeat("o", 253)
	results := map[string]map[string]any{
		"many lines":                    {"lines": slices.Repeat([]any{strings.Repeat("x", 40)}, 8000)},
		"characters that are not shown": {"a": strings.Repeat("\x00", 64<<10), "b": strings.Repeat("\u202e", 60<<10)},
		"a long line":                   {"msg": strings.Repeat("é", 300<<10)},
	}
	for what, result := range results {
		for _, asJSON := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, JSON %t", what, asJSON), func(t *testing.T) {
				var out bytes.Buffer
				log(&out, eventlog.Tasks, asJSON).JobEvent(run, jobevent.Event{Kind: jobevent.HostFailed, Task: "t", Host: "h", Result: result})
				if out.Len() > 520<<10 || !utf8.Valid(out.Bytes()) {
					t.Errorf("%d bytes, valid UTF-8: %t", out.Len(), utf8.Valid(out.Bytes()))
				}
				if !strings.Contains(out.String(), "… [cut]") {
					t.Error("what is missing is not marked")
				}
				if !asJSON && !strings.HasSuffix(out.String(), bottom) {
					t.Error("the block has no end")
				}
			})
		}
	}
}
