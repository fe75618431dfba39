package eventlog_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/pkg/content"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// pretty is an eventlog as the manager makes it for a terminal, with the level.
func pretty(out *bytes.Buffer, level eventlog.Level, color bool) *eventlog.Log {
	logger := funcr.New(func(_, line string) { out.WriteString("LOGGED " + line) }, funcr.Options{})
	return eventlog.New(eventlog.Options{
		Logger: logger, Level: level,
		Screen: &eventlog.Screen{Out: out, Palette: terminal.Palette{On: color}, Shared: true, Now: noon},
	})
}

func TestAScreenShowsARunInLinesThatNameTheCR(t *testing.T) {
	var out bytes.Buffer
	replay(t, pretty(&out, eventlog.Tasks, false), "unreachable", 4)
	got := regexp.MustCompile(`\d+\.\d\d s`).ReplaceAllString(out.String(), "1.00 s")
	const want = `12:00:00 default/sample  run of example.com/v1, Kind=Site, generation 3: changed
`
	if !strings.HasPrefix(got, want) {
		t.Errorf("want it to begin with\n%s, got\n%s", want, got)
	}
	for line := range strings.Lines(got) {
		if !strings.HasPrefix(line, "12:00:00 default/sample  ") && !strings.HasPrefix(line, "         default/sample  ") {
			t.Errorf("this line does not name the CR: %q", line)
		}
	}
	for _, want := range []string{"UNREACHABLE", "default/sample        at ", "default/sample  failed (Unreachable) in "} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}

func event(kind jobevent.Kind, result map[string]any) jobevent.Event {
	return jobevent.Event{Kind: kind, Task: "t", Host: "localhost", Duration: time.Second, Result: result}
}

func TestTasksOnAScreen(t *testing.T) {
	const prefix = "\x1b[2m12:00:00 default/sample  \x1b[0m"
	failed := event(jobevent.HostFailed, map[string]any{"msg": "it broke", "rc": 2, "stdout": "a\nb", "stdout_lines": []any{"a", "b"}})
	failed.TaskPath = "/roles/x/tasks/main.yml:3"
	ignored := event(jobevent.HostFailed, map[string]any{"msg": "m"})
	ignored.IgnoreErrors = true
	elsewhere := event(jobevent.HostUnreachable, nil)
	elsewhere.Host = "db1"
	for name, test := range map[string]struct {
		event jobevent.Event
		level eventlog.Level
		want  string
	}{
		"ok is green":          {event(jobevent.HostOK, nil), eventlog.Tasks, prefix + "\x1b[32m  ok            1.00 s  t\x1b[0m\n"},
		"changed is yellow":    {event(jobevent.HostOK, map[string]any{"changed": true}), eventlog.Tasks, prefix + "\x1b[33m  changed       1.00 s  t\x1b[0m\n"},
		"skipped is cyan":      {event(jobevent.HostSkipped, nil), eventlog.Tasks, prefix + "\x1b[36m  skipped       1.00 s  t\x1b[0m\n"},
		"items are for levels": {event(jobevent.ItemOK, nil), eventlog.Tasks, ""},
		"an item has its label": {
			event(jobevent.ItemFailed, map[string]any{"_ansible_item_label": "a"}), eventlog.Everything,
			prefix + "\x1b[31m  item failed   1.00 s  t (a)\x1b[0m\n",
		},
		"nothing of tasks where none is asked for": {failed, eventlog.Nothing, ""},
		"another host is named":                    {elsewhere, eventlog.Tasks, prefix + "\x1b[31m  UNREACHABLE   1.00 s  t on db1\x1b[0m\n"},
		"a failure's message comes first, and no output twice": {
			failed, eventlog.Tasks, prefix + "\x1b[31m  FAILED        1.00 s  t\x1b[0m\n" +
				indented("at /roles/x/tasks/main.yml:3") + indented("it broke") + indented("rc: 2") + indented("stdout: |-") + indented("  a") + indented("  b"),
		},
		"an ignored failure": {ignored, eventlog.Tasks, prefix + "\x1b[31m  ignored       1.00 s  t\x1b[0m\n" + indented("m")},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			pretty(&out, test.level, true).JobEvent(aRun, test.event)
			got := out.String()
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// indented is a line of a block on a coloured screen.
func indented(text string) string {
	return "\x1b[2m         default/sample  \x1b[0m\x1b[31m      " + text + "\x1b[0m\n"
}

func TestAScreenShowsARepeatedFailureOnce(t *testing.T) {
	var out bytes.Buffer
	l := pretty(&out, eventlog.Tasks, false)
	for range 3 {
		l.RunStarted(aRun)
		l.JobEvent(aRun, event(jobevent.HostFailed, map[string]any{"msg": "it broke"}))
		l.RunEnded(aRun, ended(content.Outcome{Verdict: content.Failed, Reason: "Failed", Message: "m"}, jobevent.Summary{}), time.Second)
	}
	if got := strings.Count(out.String(), "it broke"); got != 1 {
		t.Errorf("want the block once, got it %d times:\n%s", got, out.String())
	}
	if !strings.Contains(out.String(), "as before, in 3 runs now") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestAScreenObeysTheLevelOfTheLogger(t *testing.T) {
	var out bytes.Buffer
	l := pretty(&out, eventlog.Tasks, false)
	l.RunEnded(aRun, ended(content.Outcome{Verdict: content.Succeeded}, jobevent.Summary{StatsSeen: true, OK: 2}), time.Second)
	if want := "12:00:00 default/sample  succeeded in 1.00 s, cold: 2 ok, 0 changed, 0 skipped, 0 failed\n"; out.String() != want {
		t.Errorf("want %q, got %q", want, out.String())
	}
	out.Reset()
	l.RunEnded(aRun, ended(content.Outcome{Verdict: content.Canceled, Reason: "Canceled", Message: "by x"}, jobevent.Summary{}), time.Second)
	if want := "12:00:00 default/sample  canceled (Canceled) in 1.00 s, cold\n         default/sample  by x\n"; out.String() != want {
		t.Errorf("without statistics: want %q, got %q", want, out.String())
	}
	out.Reset()
	quiet := eventlog.New(eventlog.Options{Logger: logr.Discard(), Level: eventlog.Tasks, Screen: &eventlog.Screen{Out: &out, Shared: true, Now: noon}})
	quiet.RunStarted(aRun)
	quiet.JobEvent(aRun, event(jobevent.HostOK, nil))
	quiet.RunEnded(aRun, ended(content.Outcome{Verdict: content.Succeeded}, jobevent.Summary{}), time.Second)
	if out.Len() > 0 {
		t.Errorf("errors alone were asked for, got\n%s", out.String())
	}
	quiet.JobEvent(aRun, event(jobevent.HostFailed, map[string]any{"msg": "it broke"}))
	quiet.RunEnded(aRun, ended(content.Outcome{Verdict: content.Failed, Message: "why"}, jobevent.Summary{}), time.Second)
	if !strings.Contains(out.String(), "it broke") || !strings.Contains(out.String(), "why") {
		t.Errorf("want the errors, got\n%s", out.String())
	}
}

func TestAScreenHoldsNothingThatARunForges(t *testing.T) {
	var out bytes.Buffer
	l := pretty(&out, eventlog.Everything, false)
	e := event(jobevent.HostFailed, map[string]any{
		"msg": "a\n12:00:01 default/other  succeeded\x1b[2J\u202e", "invocation": map[string]any{"password": "hunter2"},
		"resources": []any{map[string]any{"kind": "Secret", "apiVersion": "v1", "data": map[string]any{"key": "aHVudGVyMg=="}}},
	})
	e.Task, e.Host = "bad\nsucceeded\x1b]0;title\a", "db\n1"
	l.JobEvent(aRun, e)
	l.RunEnded(aRun, ended(content.Outcome{Verdict: content.Failed, Message: "x\n12:00:01 default/other  succeeded\r"}, jobevent.Summary{}), time.Second)
	for _, never := range []string{"\x1b", "\a", "\r", "\u202e", "hunter2", "aHVudGVyMg==", "\n12:00:01"} {
		if strings.Contains(out.String(), never) {
			t.Errorf("%q is in\n%q", never, out.String())
		}
	}
}
