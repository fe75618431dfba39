package jobevent_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// addCaptures adds the recorded output of ensign_run.py for some runs.
func addCaptures(f *testing.F, add func(stream []byte)) {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(paths) == 0 {
		f.Fatal("no captures", err)
	}
	for _, path := range paths {
		stream, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		add(stream)
	}
}

// decoded is what Decode returned for a stream.
type decoded struct {
	Events []jobevent.Event
	Output []string
}

func decodeAll(t *testing.T, stream []byte, bytewise bool) decoded {
	t.Helper()
	r := iotest.HalfReader(bytes.NewReader(stream))
	if bytewise {
		r = iotest.OneByteReader(bytes.NewReader(stream))
	}
	var d decoded
	err := jobevent.Decode(r, jobevent.Handler{
		Event:  func(e jobevent.Event) { d.Events = append(d.Events, e) },
		Output: func(line string) { d.Output = append(d.Output, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// FuzzOutcome judges runs by their output. It checks that DetermineOutcome returns a success only by the
// rule, and that every message is safe to show.
func FuzzOutcome(f *testing.F) {
	addCaptures(f, func(stream []byte) {
		f.Add(stream, 0, uint8(0), "", "")
		f.Add(stream, 2, uint8(1), "the timeout of the watch is 1m0s", "[ERROR]: no role 'x'")
	})
	f.Fuzz(func(t *testing.T, stream []byte, code int, cause uint8, why, output string) {
		if len(stream) > 64<<10 || len(output) > 8<<10 {
			return
		}
		causes := []jobevent.Cause{jobevent.Exited, jobevent.TimedOut, jobevent.Interrupted, jobevent.Crashed}
		ending := jobevent.ProcessExit{ExitCode: code, Cause: causes[int(cause)%len(causes)], Output: output}
		if why != "" {
			ending.Err = errors.New(why)
		}
		summary := folded(t, stream, false)
		outcome := jobevent.DetermineOutcome(ending, summary)
		if again := jobevent.DetermineOutcome(ending, folded(t, stream, true)); again != outcome {
			t.Errorf("one run, two outcomes: %+v and %+v", outcome, again)
		}
		if outcome.Verdict == content.Succeeded {
			checkSuccess(t, stream, ending)
		}
		checkSummary(t, summary)
		checkMessage(t, outcome)
	})
}

func render(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

func folded(t *testing.T, stream []byte, bytewise bool) jobevent.Summary {
	t.Helper()
	var s jobevent.Summary
	for _, e := range decodeAll(t, stream, bytewise).Events {
		s.Fold(e)
	}
	return s
}

// checkSuccess applies the rule of a success to the lines themselves: exit code 0, the run's
// only statistics event, a host in it or a play before it that no event reports as matching
// no host, no failure, and no host that was unreachable in the end.
func checkSuccess(t *testing.T, stream []byte, ending jobevent.ProcessExit) {
	t.Helper()
	if ending.ExitCode != 0 || ending.Cause == jobevent.Crashed {
		t.Errorf("a run that ended with %+v has succeeded", ending)
	}
	plays := 0
	for _, e := range decodeAll(t, stream, false).Events {
		switch e.Kind {
		case jobevent.PlayStart:
			plays++
		case jobevent.NoHostsMatched:
			plays = max(plays-1, 0)
		case jobevent.Stats:
			if len(e.HostStats.Processed) == 0 && plays == 0 {
				t.Errorf("a run without a host has succeeded: %+v", e)
			}
			if len(e.HostStats.Processed) == 0 && (e.HostStats.Failures == nil || e.HostStats.Unreachable == nil) {
				t.Errorf("a run has succeeded whose failures nobody counted: %+v", e)
			}
			lost := e.HostStats.Lost
			if lost == nil {
				lost = e.HostStats.Unreachable
			}
			for _, counts := range []map[string]int{e.HostStats.Failures, lost} {
				for host, n := range counts {
					if n > 0 {
						t.Errorf("a run has succeeded with %d failures of %q", n, host)
					}
				}
			}
			return // A second one never counts.
		}
	}
	t.Error("a run without stats has succeeded")
}

func checkSummary(t *testing.T, s jobevent.Summary) {
	t.Helper()
	size := len(s.Play) + len(s.Task)
	for _, list := range [][]jobevent.TaskFailure{s.Failed, s.UnreachableHosts, s.FailedItems} {
		for _, f := range list {
			size += len(f.Play) + len(f.Task) + len(f.Host) + len(f.TaskPath) + len(f.Message)
			if hasHidden(f.Message) || hasHidden(f.Task+f.Host+f.Play+f.TaskPath) {
				t.Errorf("a failure cannot be shown: %+v", f)
			}
		}
	}
	if size > 128<<10 {
		t.Errorf("the summary takes %d bytes", size)
	}
	for _, n := range []int{s.OK, s.Changed, s.Skipped, s.Failures, s.Unreachable, s.Rescued, s.Ignored, s.Hosts} {
		if n < 0 {
			t.Errorf("a negative count: %+v", s)
		}
	}
}

func checkMessage(t *testing.T, o content.Outcome) {
	t.Helper()
	if len(o.Message) > 4<<10 || hasHidden(o.Message) {
		t.Errorf("the message cannot be shown: %d bytes, %q", len(o.Message), o.Message)
	}
	if o.Verdict == content.Failed && (strings.TrimSpace(o.Message) == "" || o.Reason == "") {
		t.Errorf("a failure without a word: %+v", o)
	}
}

// hasHidden reports whether a terminal or a log would not show the text as it is.
func hasHidden(text string) bool { return sanitize.Text(text) != text }

// A canary stands for a value of a Secret.
const canary = "hunter2-canary"

// FuzzSanitize puts a canary into every Secret of a result, and into one Secret as text, and
// checks that the sanitized result does not have it.
func FuzzSanitize(f *testing.F) {
	f.Add(`{"result":{"kind":"Secret","data":{"k":"v"}},"invocation":{"module_args":{}}}`, "apiVersion: v1", "type: Opaque")
	f.Fuzz(func(t *testing.T, text, before, after string) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var result map[string]any
		if d.Decode(&result) != nil || strings.Contains(text+before+after, canary) {
			return
		}
		plant(result)
		if len(result) > 0 {
			result["yaml"] = before + "\nkind: Secret\ndata:\n  k: " + canary + "\n" + after
			result["lines"] = []any{before, "kind: Secret", "stringData:", "  k: " + canary, after}
			result["json"] = before + `{"kind": "Secret", "data": {"k": "` + canary + `"}}` + after
		}
		untouched := render(result)
		got := jobevent.Sanitize(result)
		if render(result) != untouched {
			t.Errorf("the original changed from %s to %s", untouched, render(result))
		}
		if shown := render(got); strings.Contains(shown, canary) {
			t.Errorf("%s is shown as %s", untouched, shown)
		}
		checkShown(t, got, 0)
		if again := jobevent.Sanitize(got); !reflect.DeepEqual(again, got) {
			t.Errorf("%s becomes %s", render(got), render(again))
		}
	})
}

// plant puts the canary into the data of every Secret.
func plant(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if v["kind"] == "Secret" && (key == "data" || key == "stringData") {
				v[key] = planted(member)
				continue
			}
			plant(member)
		}
	case []any:
		for _, element := range v {
			plant(element)
		}
	}
}

func planted(data any) any {
	entries, ok := data.(map[string]any)
	if !ok {
		return canary
	}
	for key := range entries {
		entries[key] = []any{canary}
	}
	return entries
}

func checkShown(t *testing.T, value any, depth int) {
	t.Helper()
	if depth > 64 {
		t.Fatal("a result is shown deeper than 64 levels")
	}
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key == "invocation" || strings.HasPrefix(key, "_ansible_") {
				t.Errorf("%q is shown", key)
			}
			checkShown(t, member, depth+1)
		}
	case []any:
		for _, element := range v {
			checkShown(t, element, depth+1)
		}
	}
}
