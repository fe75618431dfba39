package markers_test

import (
	"bytes"
	"crypto/rand"
	"errors"
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
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

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
		"a handler's name":           {tasks("  - ansible.builtin.debug: {msg: hi}\n    changed_when: true\n    notify: topic\n  handlers:\n  - name: '{{ cr }}'\n    listen: topic\n    ansible.builtin.debug: {msg: hi}\n"), ok, 2, 0, true},
		"a loop's label":             {tasks("  - ansible.builtin.debug: {msg: hi}\n    loop: [a]\n    loop_control: {label: '{{ cr }}'}\n"), ok, 1, 0, true},
		"a template's diff":          {tasks("  - ansible.builtin.blockinfile: {path: '{{ playbook_dir }}/block', block: '{{ cr }}', create: true}\n    diff: true\n"), ok, 1, 0, true},
		"a deprecation":              {tasks("  - warns: {text: '{{ cr }}', deprecated: true}\n"), ok, 1, 0, true},
		"a requeue that is genuine":  {tasks("  - name: '{{ cr }}'\n    ensign.operator.requeue_after: {time: 1h}\n"), ok, 1, 0, true},
		"a genuine one's older name": {tasks("  - name: '{{ cr }}'\n    operator_sdk.util.requeue_after: {time: 1h}\n"), ok, 1, 0, true},
		"a genuine one's bare name":  {tasks("  - name: '{{ cr }}'\n    collections: [operator_sdk.util]\n    requeue_after: {time: 1h}\n"), ok, 1, 0, true},
	}
}

const warns = `from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule(argument_spec={"text": {"type": "str"}, "deprecated": {"type": "bool"}})
if module.params["deprecated"]:
    module.deprecate(module.params["text"], version="9.9", collection_name="a.b")
else:
    module.warn(module.params["text"])
module.exit_json()
`

func TestNoTextBecomesAnEvent(t *testing.T) {
	onEachCore(t, func(t *testing.T, runner string) {
		vars := variables(t, func(field string) string { return payload(t, field) })
		for why, p := range places() {
			t.Run(why, func(t *testing.T) {
				t.Parallel()
				nonce := newNonce(t)
				printed, exit := run(t, runner, p.playbook, vars, nonce)

				got, s := judge(t, printed, nonce, exit)
				if got.Reason != p.want || s.OK != p.ok || s.Failures != p.failures {
					t.Errorf("%s %q, %+v", got.Reason, got.Message, s)
				}
				if strings.Contains(why, "genuine") != (s.Requeue == time.Hour) || s.BadRequeue != nil {
					t.Errorf("comes again after %v", s.Requeue)
				}
				if claims := forgeries(t, printed, nonce); len(claims) > 0 {
					t.Errorf("forged events count: %v", claims)
				}
				p.control(t, printed, exit)
			})
		}
	})
}

// control reads what was printed without the check, as if the author's id were
// the run's: every field forges events.
func (p place) control(t *testing.T, printed []byte, exit int) {
	t.Helper()
	got, s := judge(t, printed, forgedID, exit)
	if s.StatsSeen != p.forges || p.forges && s.Requeue != time.Second {
		t.Errorf("the control shows %+v", s)
	}
	if p.forges && exit == 0 && got.Verdict != jobevent.Succeeded {
		t.Errorf("the control does not forge a success: %+v", got)
	}
	claims := forgeries(t, printed, forgedID)
	for field := range fields() {
		if p.forges && (!claims[string(jobevent.HostFailed)+" "+field] || !claims[string(jobevent.HostOK)+" "+field]) {
			t.Errorf("the control shows no forged events of the field %s, only %v", field, claims)
		}
	}
}

// forgeries are the kinds of the events that tell of forged tasks, each with the
// field in which they were written.
func forgeries(t *testing.T, printed []byte, nonce int64) map[string]bool {
	t.Helper()
	claims := map[string]bool{}
	read := func(e jobevent.Event) {
		if field, ok := strings.CutPrefix(e.TaskName(), forged); ok {
			claims[string(e.Kind)+" "+field] = true
		}
	}
	if err := jobevent.Decode(bytes.NewReader(printed), nonce, jobevent.Handler{Event: read}); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestAMarkerCanOnlyBreakItsOwnRun: some markers make ansible-runner itself fall
// over; that is never a success.
func TestAMarkerCanOnlyBreakItsOwnRun(t *testing.T) {
	onEachCore(t, func(t *testing.T, runner string) {
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
				printed, exit := run(t, runner, playbook, variables(t, func(string) string { return marker(t, event) }), nonce)
				if got, s := judge(t, printed, nonce, exit); got.Verdict != jobevent.Failed {
					t.Errorf("exit %d: %+v, %+v", exit, got, s)
				}
			})
		}
	})
}

func judge(t *testing.T, printed []byte, nonce int64, exit int) (jobevent.Outcome, jobevent.Summary) {
	t.Helper()
	var s jobevent.Summary
	if err := jobevent.Decode(bytes.NewReader(printed), nonce, jobevent.Handler{Event: s.Fold}); err != nil {
		t.Fatal(err)
	}
	return jobevent.Judge(jobevent.Ending{ExitCode: exit, Cause: jobevent.Exited}, s), s
}

// run runs a playbook with the variables as the manager gives them to Ansible.
func run(t *testing.T, runner, playbook string, vars []byte, nonce int64) (printed []byte, exit int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"project/play.yml":         playbook,
		"project/library/warns.py": warns,
		"inventory/hosts":          "localhost ansible_connection=local ansible_python_interpreter=" + filepath.Join(filepath.Dir(runner), "python") + "\n",
		"env/extravars":            string(vars),
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
		"JOB_ID=" + strconv.FormatInt(nonce, 10), "ANSIBLE_COLLECTIONS_PATH=" + filepath.Join(scratch.Repository(t), "collections"),
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

// onEachCore runs a test with ansible-runner of every environment at hand.
func onEachCore(t *testing.T, test func(t *testing.T, runner string)) {
	t.Helper()
	for version, dir := range environments() {
		t.Run("ansible-core "+version, func(t *testing.T) {
			runner := filepath.Join(scratch.Repository(t), dir, "bin", "ansible-runner")
			about, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(runner), "ansible-playbook"), "--version").Output()
			if err != nil || !strings.HasPrefix(string(about), "ansible-playbook [core "+version+".") {
				t.Fatalf("%s holds %.40q, want ansible-core %s (error %v); run `make python-matrix`", dir, about, version, err)
			}
			test(t, runner)
		})
	}
}
