package jobevent_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

type run struct {
	events  []jobevent.Event
	output  []string
	summary jobevent.Summary
}

func decode(t *testing.T, text string) run {
	t.Helper()
	var r run
	err := jobevent.Decode(strings.NewReader(text), jobevent.Handler{
		Event: func(e jobevent.Event) {
			r.events = append(r.events, e)
			r.summary.Fold(e)
		},
		Output: func(line string) { r.output = append(r.output, line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func captured(t *testing.T, name string) run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(text))
}

const hiddenByNoLog = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"

// TestRealRuns judges recorded output of ensign_run.py. testdata/capture/capture.py printed
// the exit codes.
func TestRealRuns(t *testing.T) {
	cases := map[string]struct {
		exit   int
		reason content.Reason
		says   string
		counts jobevent.Summary
	}{
		"ok":           {0, content.ReasonSuccessful, "", jobevent.Summary{OK: 4, Changed: 1, Skipped: 1}},
		"rescued_only": {0, content.ReasonSuccessful, "", jobevent.Summary{OK: 1, Rescued: 1}},
		"ignored":      {0, content.ReasonSuccessful, "", jobevent.Summary{OK: 2, Changed: 1, Ignored: 1}},
		"requeue":      {0, content.ReasonSuccessful, "", jobevent.Summary{OK: 3}},
		"rescued": {2, content.ReasonFailed, "play [Repair], task [Fails for good] (/run/project/rescued.yml:12), host [localhost]: the disk is full",
			jobevent.Summary{OK: 1, Rescued: 1, Failures: 1}},
		"always": {2, content.ReasonFailed, "play [Repair], task [Fails for good] (/run/project/always.yml:7), host [localhost]: the disk is full",
			jobevent.Summary{OK: 1, Failures: 1}},
		"loop": {2, content.ReasonFailed, "play [Loop], task [Each] (/run/project/loop.yml:5), host [localhost]: One or more items failed\n(item=a) no room for a\n(item=c) no room for c",
			jobevent.Summary{Failures: 1}},
		"no_log": {2, content.ReasonFailed, "play [Discreet], task [Log in] (/run/project/no_log.yml:13), host [localhost]: " + hiddenByNoLog,
			jobevent.Summary{OK: 2, Changed: 1, Failures: 1, Ignored: 1}},
		"unreachable": {4, jobevent.ReasonUnreachable,
			"play [Far away], task [Call] (/run/project/unreachable.yml:5), host [far]: Task failed: Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1: Connection refused",
			jobevent.Summary{Unreachable: 1}},
		"no_hosts":     {0, jobevent.ReasonNoHosts, "no host took part: the pattern under hosts in the play matches no host of the inventory", jobevent.Summary{}},
		"half_matched": {0, content.ReasonSuccessful, "", jobevent.Summary{}},
		"empty_play":   {0, content.ReasonSuccessful, "", jobevent.Summary{}},
		"empty_role":   {0, content.ReasonSuccessful, "", jobevent.Summary{}},
		"end_play":     {0, content.ReasonSuccessful, "", jobevent.Summary{}},
		"bad_requeue": {0, content.ReasonFailed,
			`play [Come back], task [Soon] (/run/project/bad_requeue.yml:5), host [localhost]: requeue_after: invalid period "soon": write a positive duration such as "90s" or "1h30m"`,
			jobevent.Summary{OK: 1}},
		"syntax": {4, jobevent.ReasonContentError, "Ansible cannot load the content (/run/project/syntax.yml:6): " +
			"YAML parsing failed: While scanning a quoted scalar found unexpected end of stream.\n" +
			"Origin: /run/project/syntax.yml:6:1\n\n(source not shown: file truncated)", jobevent.Summary{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := captured(t, name)
			got := jobevent.DetermineOutcome(jobevent.ProcessExit{ExitCode: c.exit, Cause: jobevent.Exited, Output: strings.Join(r.output, "\n")}, r.summary)
			if got.Reason != c.reason || got.Message != c.says {
				t.Errorf("%s: %q", got.Reason, got.Message)
			}
			s := r.summary
			counts := jobevent.Summary{OK: s.OK, Changed: s.Changed, Skipped: s.Skipped, Failures: s.Failures, Unreachable: s.Unreachable, Rescued: s.Rescued, Ignored: s.Ignored}
			if diff := cmp.Diff(c.counts, counts); diff != "" {
				t.Errorf("counts: %s", diff)
			}
		})
	}
}

func TestRealEvents(t *testing.T) {
	r := captured(t, "ok")
	got := r.events[4]
	if got.Created.IsZero() || got.Created.Location() != time.UTC || got.UUID == "" || got.Duration <= 0 || !strings.HasPrefix(got.Stdout, "ok: [localhost]") {
		t.Errorf("%+v", got)
	}
	got.Created, got.UUID, got.Duration, got.Stdout = time.Time{}, "", 0, ""
	want := jobevent.Event{
		Kind: jobevent.HostOK, Play: "Set up", Task: "Say hello", Role: "site", Host: "localhost", TaskPath: "/run/project/roles/site/tasks/main.yml:1",
		Action: "ansible.builtin.debug", ResolvedAction: "ansible.builtin.debug",
		Result: map[string]any{"changed": false, "msg": "hello", "_ansible_verbose_always": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	last := r.events[len(r.events)-1]
	one := map[string]int{"localhost": 1}
	stats := &jobevent.HostStats{
		OK: map[string]int{"localhost": 4}, Changed: one, Skipped: one, Processed: one,
		Failures: map[string]int{}, Unreachable: map[string]int{}, Rescued: map[string]int{}, Ignored: map[string]int{},
	}
	if diff := cmp.Diff(stats, last.HostStats); diff != "" {
		t.Error(diff)
	}
	if !r.summary.Completion.Equal(last.Created) {
		t.Errorf("completion %v", r.summary.Completion)
	}
}

func TestRequeueTakesTheShortestPeriod(t *testing.T) {
	if got := captured(t, "requeue").summary.RequeueAfter; got != 90*time.Second {
		t.Errorf("comes again after %v", got)
	}
}

// TestForgedMarkers uses a recording with text that unmodified ansible-runner takes for
// events: in a play's name, a task's name, a debug and a fail.
func TestForgedMarkers(t *testing.T) {
	r := captured(t, "forged")
	if got := r.summary; got.OK != 2 || got.Failures != 1 || got.Ignored != 1 || got.RequeueAfter != 0 || len(got.Failed) != 1 || got.Failed[0].Task != "Really fails" {
		t.Errorf("%+v", got)
	}
	stream, err := os.ReadFile("testdata/forged.jsonl")
	if shown := bytes.Count(stream, []byte(`\u001b[K`)); err != nil || shown < 8 {
		t.Errorf("the capture shows only %d ends of markers, error %v", shown, err)
	}
	for _, e := range r.events {
		if e.UUID == "forged" {
			t.Errorf("a forged event passed: %+v", e)
		}
	}
}

func TestWhatIsNoReportIsPassedOver(t *testing.T) {
	const event = `{"event":"runner_on_ok","uuid":"u"}` + "\n"
	for why, line := range map[string]string{
		"a text":                     "Segmentation fault",
		"bytes that are not strings": "a\x00b\xff",
		"an object that has no end":  `{"event":"runner_on_ok"`,
		"an object behind something": `x {"event":"runner_on_ok"}`,
		"an object in a list":        `[{"event":"runner_on_ok"}]`,
		"another shape":              `{"event":"runner_on_ok","event_data":[]}`,
		"a line of 100 MB":           `{"event":"runner_on_ok","stdout":"` + strings.Repeat("x", 100<<20) + `"}`,
		"many small lines":           strings.Repeat("\n", 1<<20),
	} {
		t.Run(why, func(t *testing.T) {
			if r := decode(t, event+line+"\n"+event); len(r.events) != 2 || len(r.output) > 0 {
				t.Errorf("%d events, output %.200q", len(r.events), r.output)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"a line":                    {`{"stdout":"Segmentation fault"}`, []string{"Segmentation fault"}},
		"several lines":             {`{"stdout":"one\r\ntwo"}`, []string{"one", "two"}},
		"NUL bytes":                 {`{"stdout":"a\u0000b"}`, []string{"a\x00b"}},
		"a warning before any task": {genuine("warning", "", "[WARNING]: old"), []string{"[WARNING]: old"}},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			r := decode(t, c.text)
			if diff := cmp.Diff(c.want, r.output); diff != "" || len(r.events) > 0 {
				t.Error(diff)
			}
		})
	}
}

func genuine(kind, task, stdout string) string {
	return fmt.Sprintf(`{"event":%q,"event_data":{"task":%q},"stdout":%q}`+"\n", kind, task, stdout)
}

func printed(text string) string { return fmt.Sprintf(`{"stdout":%q}`+"\n", text) }

// Besides the error that ends a run, Ansible displays commands of tasks under no_log with
// their environment, and their errors. Only the error that ends the run may be passed on.
func TestWhatAnsibleDisplaysOfTasksIsNoOutput(t *testing.T) {
	const fatal = "[ERROR]: A worker was found in a dead state"
	const hidden = "[ERROR]: (Ansible's error is not shown, because it may have values that no_log hides)"
	throttle := "[ERROR]: Failed to convert the throttle value to an integer: invalid literal for int() with base 10: 'secret'\r\n" +
		"Origin: /p/main.yml:8:17\r\n\r\n7   debug: {msg: secret}\r\n8   throttle: \"{{ secret }}\"\r\n              ^ column 17"
	yaml := "[ERROR]: YAML parsing failed: While parsing a flow node did not find expected node content.\r\nOrigin: /p/broken.yml:2:1\r\n\r\n1 password: secret"
	trace := "Traceback (most recent call last):\n  File \"/lib/x.py\", line 7, in run\n    int(secret)\nValueError: invalid literal for int() with base 10: 'secret'\n"
	exec := genuine("verbose", "t", "<localhost> EXEC /bin/sh -c 'DB_PASSWORD=secret python'")
	started, ended := genuine("playbook_on_task_start", "t", "TASK [t]"), genuine("runner_on_failed", "t", "")
	failed := genuine("error", "t", "[ERROR]: Task failed: Action failed: secret")
	cases := map[string]struct {
		text string
		want []string
	}{
		"the command of a module":                    {started + exec, nil},
		"a verbose message before any task":          {genuine("verbose", "", "1 plays in x.yml"), nil},
		"a debug message":                            {started + genuine("debug", "t", "secret"), nil},
		"a warning of a task":                        {started + genuine("warning", "t", "[WARNING]: secret"), nil},
		"a deprecated argument":                      {started + genuine("deprecated", "t", "[DEPRECATION WARNING]: secret"), nil},
		"an error that a task's result follows":      {started + genuine("error", "t", "[ERROR]: secret") + ended, nil},
		"an error that a task survives":              {started + genuine("error", "t", "[ERROR]: secret") + exec, nil},
		"a task's failure, even as the last word":    {started + failed, nil},
		"an error before any task":                   {genuine("error", "", fatal) + genuine("verbose", "", "x"), []string{fatal}},
		"the error that ends a run":                  {started + exec + ended + failed + genuine("error", "t", fatal), []string{fatal}},
		"a handler, whose name may be a template":    {started + genuine("error", "t", "[ERROR]: The requested handler 'secret' was not found in any list"), []string{"[ERROR]: The requested handler '********' was not found in any list"}},
		"a value of a keyword":                       {started + genuine("error", "t", throttle), []string{"[ERROR]: Failed to convert the throttle value to an integer", "Origin: /p/main.yml:8:17"}},
		"an error that nobody knows":                 {started + genuine("error", "t", "[ERROR]: it is secret\r\nOrigin: /p/main.yml:8:17\r\n\r\n8 secret"), []string{hidden, "Origin: /p/main.yml:8:17"}},
		"an error without a place":                   {started + genuine("error", "t", "[ERROR]: it is secret"), []string{hidden}},
		"a file that is no YAML":                     {started + genuine("error", "t", yaml), []string{"[ERROR]: YAML parsing failed: While parsing a flow node did not find expected node content.", "Origin: /p/broken.yml:2:1"}},
		"what is printed past Ansible":               {started + printed("secret") + printed("[WARNING]: secret\r\n1 secret"), nil},
		"a trace, whose message may hold a value":    {started + printed(trace), []string{"Traceback (most recent call last):", `  File "/lib/x.py", line 7, in run`, "ValueError"}},
		"a trace of a full disk":                     {started + printed("OSError: [Errno 28] No space left on device: '/secret'"), []string{"OSError: [Errno 28] No space left on device"}},
		"such an error, and what is printed with it": {started + genuine("error", "t", fatal) + printed("Killed"), []string{"Killed", fatal}},
	}
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			if diff := cmp.Diff(c.want, decode(t, c.text).output); diff != "" {
				t.Error(diff)
			}
		})
	}
}
