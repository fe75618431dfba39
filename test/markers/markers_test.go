package markers_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

// forgedID is the job_id that the author of the text chose. The run's own is
// not known to anybody before the run.
const forgedID = 666

// marker is the terminal sequence in which ansible-runner looks for events.
func marker(t *testing.T, event any) string {
	t.Helper()
	text := base64.StdEncoding.EncodeToString([]byte(encode(t, event)))
	return fmt.Sprintf("\x1b[K%s\x1b[%dD\x1b[K", text, len(text))
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// payload claims that all went well, that a task failed, and that the CR is to
// come again at once: with another run's id, with an id as a text and with none,
// as markers, and as lines of their own behind a marker that ends the event in
// which they are printed.
func payload(t *testing.T) string {
	t.Helper()
	one := map[string]any{"localhost": 1}
	forged := []map[string]any{
		{"event": "playbook_on_stats", "event_data": map[string]any{"ok": one, "processed": one, "failures": map[string]any{}, "dark": map[string]any{}}},
		{"event": "runner_on_failed", "event_data": map[string]any{"task": "forged", "host": "localhost", "res": map[string]any{"msg": "forged"}}},
		{"event": "runner_on_ok", "event_data": map[string]any{"task": "forged", "task_action": "requeue_after", "res": map[string]any{"period": "1s"}}},
	}
	var markers, lines strings.Builder
	for _, event := range forged {
		for _, id := range []any{forgedID, strconv.Itoa(forgedID), nil} {
			event["uuid"] = fmt.Sprintf("forged-%v", id)
			event["job_id"] = id
			markers.WriteString(marker(t, event))
			lines.WriteString(encode(t, event) + "\n")
		}
	}
	return "text " + markers.String() + marker(t, map[string]any{}) + "\n" + lines.String()
}

// what a place makes of the text when the run is judged honestly.
type place struct {
	playbook string
	want     jobevent.Reason
	// ok and failures are the genuine counts.
	ok, failures int
	// forges is true where ansible-runner takes the text's markers for events.
	forges bool
}

func tasks(text string) string {
	return "- name: Show\n  hosts: localhost\n  gather_facts: false\n  tasks:\n" + text
}

func places() map[string]place {
	const ok, failed = jobevent.ReasonSuccessful, jobevent.ReasonFailed
	return map[string]place{
		"a play's name":              {"- name: '{{ cr }}'\n  hosts: localhost\n  gather_facts: false\n  tasks:\n  - ansible.builtin.debug: {msg: hi}\n", ok, 1, 0, true},
		"a play's name, no host":     {"- name: '{{ cr }}'\n  hosts: absent\n  tasks: []\n", jobevent.ReasonNoHosts, 0, 0, true},
		"a task's name":              {tasks("  - name: '{{ cr }}'\n    ansible.builtin.debug: {msg: hi}\n"), ok, 1, 0, true},
		"the name of a task to fail": {tasks("  - name: '{{ cr }}'\n    ansible.builtin.fail: {msg: genuine}\n"), failed, 0, 1, true},
		"fail":                       {tasks("  - ansible.builtin.fail: {msg: '{{ cr }}'}\n"), failed, 0, 1, true},
		"fail, ignored":              {tasks("  - ansible.builtin.fail: {msg: '{{ cr }}'}\n    ignore_errors: true\n"), ok, 1, 0, true},
		"fail, rescued":              {tasks("  - block:\n    - ansible.builtin.fail: {msg: '{{ cr }}'}\n    rescue:\n    - ansible.builtin.debug: {msg: hi}\n"), ok, 1, 0, true},
		"assert":                     {tasks("  - ansible.builtin.assert: {that: [false], fail_msg: '{{ cr }}'}\n"), failed, 0, 1, true},
		"debug":                      {tasks("  - ansible.builtin.debug: {msg: '{{ cr }}'}\n  - ansible.builtin.debug: {var: cr}\n"), ok, 2, 0, false},
		"a fact":                     {tasks("  - ansible.builtin.set_fact: {shown: '{{ cr }}'}\n  - ansible.builtin.set_stats: {data: {shown: '{{ cr }}'}}\n"), ok, 2, 0, false},
		"a loop's items":             {tasks("  - ansible.builtin.debug: {msg: hi}\n    loop: ['{{ cr }}', b]\n"), ok, 1, 0, true},
		"a command's output":         {tasks("  - ansible.builtin.command: {cmd: cat, stdin: '{{ cr }}'}\n"), ok, 1, 0, false},
		"a warning":                  {tasks("  - warns: {text: '{{ cr }}'}\n"), ok, 1, 0, true},
		"a diff":                     {tasks("  - ansible.builtin.copy: {content: '{{ cr }}', dest: '{{ playbook_dir }}/copy'}\n    diff: true\n"), ok, 1, 0, true},
		"a prompt":                   {tasks("  - ansible.builtin.pause: {prompt: '{{ cr }}', seconds: 1}\n"), ok, 1, 0, true},
		"a file that is missing":     {tasks("  - ansible.builtin.include_vars: '{{ cr }}'\n"), failed, 0, 1, false},
		"a requeue that is genuine":  {tasks("  - name: '{{ cr }}'\n    requeue_after: {time: 1h}\n"), ok, 1, 0, true},
	}
}

const warns = `from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"text": {"type": "str"}})
module.warn(module.params["text"])
module.exit_json()
`

const requeueAfter = `from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"time": {"type": "str"}})
module.exit_json(period=module.params["time"])
`

func TestNoTextBecomesAnEvent(t *testing.T) {
	runner := findRunner(t)
	text := payload(t)
	for why, p := range places() {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			nonce := newNonce(t)
			printed, exit := run(t, runner, p.playbook, text, nonce)

			got, s := judge(t, printed, nonce, exit)
			if got.Reason != p.want || s.OK != p.ok || s.Failures != p.failures {
				t.Errorf("%s %q, %+v", got.Reason, got.Message, s)
			}
			if strings.Contains(why, "genuine") != (s.Requeue == time.Hour) || s.BadRequeue != nil {
				t.Errorf("comes again after %v", s.Requeue)
			}
			for _, f := range s.Failed {
				if f.Task == "forged" {
					t.Errorf("a forged failure counts: %+v", f)
				}
			}

			// Read without the check, as if the author's id were the run's.
			forged, s := judge(t, printed, forgedID, exit)
			if s.StatsSeen != p.forges || p.forges && (s.Requeue != time.Second || len(s.Failed) != 0 && s.Failed[0].Task != "forged") {
				t.Errorf("the control shows %+v", s)
			}
			if p.forges && exit == 0 && forged.Verdict != jobevent.Succeeded {
				t.Errorf("the control does not forge a success: %+v", forged)
			}
		})
	}
}

// TestAMarkerCanOnlyBreakItsOwnRun: some markers make ansible-runner itself fall
// over; that is never a success.
func TestAMarkerCanOnlyBreakItsOwnRun(t *testing.T) {
	runner := findRunner(t)
	for why, event := range map[string]any{
		"a list":                     []any{1},
		"a text":                     "text",
		"an id with a NUL byte":      map[string]any{"uuid": "a\x00b"},
		"an id that leads elsewhere": map[string]any{"uuid": "../../../../project/x", "job_id": forgedID},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			nonce := newNonce(t)
			playbook := tasks("  - name: '{{ cr }}'\n    ansible.builtin.debug: {msg: hi}\n  - ansible.builtin.fail: {msg: genuine}\n")
			printed, exit := run(t, runner, playbook, marker(t, event), nonce)
			if got, s := judge(t, printed, nonce, exit); got.Verdict != jobevent.Failed {
				t.Errorf("exit %d: %+v, %+v", exit, got, s)
			}
		})
	}
}

func judge(t *testing.T, printed []byte, nonce int64, exit int) (jobevent.Outcome, jobevent.Summary) {
	t.Helper()
	var s jobevent.Summary
	if err := jobevent.Decode(bytes.NewReader(printed), nonce, jobevent.Handler{Event: s.Fold}); err != nil {
		t.Fatal(err)
	}
	return jobevent.Judge(jobevent.Ending{ExitCode: exit, Cause: jobevent.Exited}, s), s
}

// run runs a playbook with cr as the manager gives it to Ansible: as data.
func run(t *testing.T, runner, playbook, cr string, nonce int64) (printed []byte, exit int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project/play.yml":                 playbook,
		"project/library/warns.py":         warns,
		"project/library/requeue_after.py": requeueAfter,
		"inventory/hosts":                  "localhost ansible_connection=local ansible_python_interpreter=" + filepath.Join(filepath.Dir(runner), "python") + "\n",
		"env/extravars":                    "\t\n" + encode(t, map[string]any{"cr": map[string]any{"__ansible_unsafe": cr}}),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	command := exec.CommandContext(ctx, runner, "run", dir, "--json", "-p", "play.yml", "-vv")
	command.Env = []string{
		"PATH=" + filepath.Dir(runner) + ":" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8",
		"JOB_ID=" + strconv.FormatInt(nonce, 10),
	}
	printed, err := command.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return printed, command.ProcessState.ExitCode()
}

func newNonce(t *testing.T) int64 {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		t.Fatal(err)
	}
	return n.Int64()
}

// findRunner gives ansible-runner of the repository's Python environment.
func findRunner(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	runner := filepath.Join(dir, ".venv", "bin", "ansible-runner")
	if _, err := os.Stat(runner); err != nil {
		t.Fatalf("%v: run \"make python\" first", err)
	}
	return runner
}
