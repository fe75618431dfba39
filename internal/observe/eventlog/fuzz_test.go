package eventlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
)

// FuzzLog lets a run print what it likes as task, host, item, result and output.
// In the console form every line is one of the log's own or begins with the CR's
// name; in the JSON form every line is one object. Nobody writes a line but the
// log, and no terminal gets anything but text.
func FuzzLog(f *testing.F) {
	f.Add("mysql : Work", "localhost", `{"msg":"boom","invocation":{"module_args":{}}}`, "item", "[ERROR]: x", uint8(1))
	f.Fuzz(func(t *testing.T, task, host, result, label, output string, which uint8) {
		kinds := []jobevent.Kind{
			jobevent.HostOK, jobevent.HostFailed, jobevent.HostSkipped, jobevent.HostUnreachable, jobevent.HostRetry,
			jobevent.ItemOK, jobevent.ItemFailed, jobevent.TaskStart,
		}
		e := jobevent.Event{Kind: kinds[int(which)%len(kinds)], Task: task, Host: host, Role: label, IgnoreErrors: which&64 != 0}
		d := json.NewDecoder(strings.NewReader(result))
		d.UseNumber()
		if d.Decode(&e.Result) == nil && e.Result != nil {
			e.Result["_ansible_item_label"] = label
		}
		var s jobevent.Summary
		s.Fold(e)
		outcome := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: 1, Err: errors.New(output), Cause: jobevent.Crashed, Output: output}, s)
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			l := log(&out, eventlog.Everything, asJSON)
			l.RunStarted(aRun)
			l.JobEvent(aRun, e)
			l.RunEnded(aRun, ended(outcome, s), time.Second)
			want := 3
			if e.Kind == jobevent.TaskStart {
				want = 2
			}
			records := consoleRecords
			if asJSON {
				records = jsonRecords
			}
			if got := records(t, out.String()); got != want {
				t.Errorf("%d records, want %d, in:\n%s", got, want, out.String())
			}
		}
	})
}

// consoleRecords counts the log's own lines.
func consoleRecords(t *testing.T, text string) int {
	t.Helper()
	checkText(t, text)
	records, inBlock := 0, false
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line += "\n"
		switch {
		case (line == top || line == runTop) && !inBlock:
			inBlock = true
		case line == bottom && inBlock:
			inBlock = false
		case inBlock:
			if !strings.HasPrefix(line, aRun.Object+" | ") {
				t.Errorf("a line of a block could be anybody's: %q", line)
			}
		case strings.HasPrefix(line, "INFO ") || strings.HasPrefix(line, "ERROR "):
			records++
		default:
			t.Errorf("a line that is nobody's: %q", line)
		}
	}
	if inBlock {
		t.Error("a block does not end")
	}
	return records
}

// jsonRecords counts the lines, each an object whose texts can be shown.
func jsonRecords(t *testing.T, text string) int {
	t.Helper()
	records := 0
	for line := range strings.Lines(text) {
		checkText(t, line)
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q is not a record: %v", line, err)
		}
		for key, value := range record {
			if text, ok := value.(string); ok {
				checkText(t, text)
			}
			if key == "invocation" {
				t.Errorf("arguments are shown: %s", line)
			}
		}
		records++
	}
	return records
}

func checkText(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
	}) {
		t.Errorf("%q would reach a terminal", text)
	}
}
