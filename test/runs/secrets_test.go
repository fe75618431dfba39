package runs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
)

// What the checks after every run look for is really there while the run goes
// on; otherwise they would show nothing. Nobody else can read it even then,
// whatever the umask is.
func TestSecretsAreThereOnlyWhileTheRunGoesOn(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	b := newBench(t, map[string]string{"roles/hello/tasks/main.yml": helloRole})
	spec := b.role("hello")
	spec.Kubeconfig = []byte("token")
	private := filepath.Join(b.Runs, spec.UID, "run")
	seen := map[string]string{}
	result := b.Run(t.Context(), spec, func(e jobevent.Event) {
		if e.Kind != jobevent.Stats {
			return
		}
		for _, name := range []string{".", "env/extravars", "kubeconfig"} {
			info, err := os.Lstat(filepath.Join(private, name))
			if err != nil {
				t.Error(err)
				return
			}
			seen[name] = info.Mode().String()
		}
		command, err := os.ReadFile(filepath.Join(private, "output", spec.ID, "command"))
		if err != nil || !bytes.Contains(command, []byte(secret)) {
			t.Errorf("ansible-runner's own record does not hold the environment (error %v)", err)
		}
	})
	wantOutcome(t, result, content.Succeeded, content.ReasonSuccessful)
	want := map[string]string{".": "drwx------", "env/extravars": "-rw-------", "kubeconfig": "-rw-------"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	b.nothingLeft(spec.UID)
}

// What Ansible displays of a task at a high verbosity, its environment for one,
// ignores no_log. A run that ends without stats must not tell it while it
// tells why it ended.
func TestNoLogHoldsWhereARunEndsWithoutStats(t *testing.T) {
	const quiet = `
- name: Log in
  ansible.builtin.command: echo {{ size }}
  environment: {DB_PASSWORD: pa55word}
  no_log: true
- name: Choose
  ansible.builtin.debug: {msg: "{{ item }}"}
  loop: "{{ missing }}"
  when: ('pa55word' | int + {}) is true
  ignore_errors: true
  no_log: true
`
	const killer = `
- name: Kill the run's first process
  ansible.builtin.shell: |
    for p in /proc/[0-9]*; do
      if grep -qz "^JOB_ID=$JOB_ID$" "$p/environ" && tr '\0' ' ' <"$p/cmdline" | grep -q '^[^ ]*python[^ ]* [^ ]*/ensign_run.py '; then
        top="$top ${p#/proc/}"
      fi
    done
    kill -9 $top
  environment: {DB_PASSWORD: pa55word}
  no_log: true
`
	tests := map[string]struct {
		last, want string
		wantReason content.Reason
	}{
		"a handler that does not exist":     {"- ansible.builtin.command: echo hello\n  notify: nobody\n", "The requested handler", jobevent.ReasonContentError},
		"a handler whose name is a secret":  {"- ansible.builtin.command: echo hello\n  notify: '{{ secret }}'\n  vars: {secret: pa55word}\n  no_log: true\n", "The requested handler", jobevent.ReasonContentError},
		"a keyword whose value is a secret": {"- ansible.builtin.command: echo hello\n  throttle: '{{ secret }}'\n  vars: {secret: pa55word}\n  no_log: true\n", "throttle value", jobevent.ReasonContentError},
		"a file that is no YAML":            {"- ansible.builtin.include_tasks: broken.yml\n", "broken.yml", jobevent.ReasonContentError},
		"the end of its first process":      {killer, "was ended by SIGKILL", content.ReasonRunnerCrashed},
	}
	for name, test := range tests {
		for _, verbosity := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s at verbosity %d", name, verbosity), func(t *testing.T) {
				b := newBench(t, map[string]string{
					"roles/content/tasks/main.yml":   quiet + test.last,
					"roles/content/tasks/broken.yml": "- ansible.builtin.debug: {msg: [}\n",
				})
				b.SkipFacts = true
				spec := b.role("content")
				spec.Verbosity = verbosity
				got := b.run(t.Context(), spec)
				wantOutcome(t, got, content.Failed, test.wantReason)
				if !strings.Contains(got.Outcome.Message, test.want) {
					t.Errorf("got message %q, want %q in it", got.Outcome.Message, test.want)
				}
				if kept := b.artifact(spec.UID, "outcome.json") + b.artifact(spec.UID, "events.jsonl"); strings.Contains(got.Outcome.Message+kept, "pa55word") {
					t.Errorf("got message %q and artifacts %s, want no password in them", got.Outcome.Message, kept)
				}
			})
		}
	}
}

// A task without a name is named for its action, which may be a template.
func TestNoLogHoldsInTheNamesOfTasks(t *testing.T) {
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": `
- action: "{{ secret }}"
  no_log: true
  ignore_errors: true
- name: Log in
  action: "{{ secret }}"
  loop: [1]
  no_log: true
  ignore_errors: true
- action: "{{ module }}"
  args: {msg: hello}
- action:
    module: "{{ secret }}"
  no_log: true
`, "roles/content/vars/main.yml": "secret: pa55word\nmodule: ansible.builtin.debug\n"})
	b.SkipFacts = true
	got := b.run(t.Context(), b.role("content"))
	wantOutcome(t, got, content.Failed, content.ReasonFailed)
	const want = "task [content : (an action that was not resolved)]"
	if kept := b.artifact(uid, "events.jsonl"); !strings.Contains(got.Outcome.Message, want) || strings.Contains(got.Outcome.Message+kept, "pa55word") {
		t.Errorf("got message %q and artifact %s", got.Outcome.Message, kept)
	}
	resolved := false
	for _, e := range b.events {
		e.Stdout = "" // Nobody is shown that.
		if strings.Contains(fmt.Sprint(e), "pa55word") {
			t.Errorf("got event %+v", e)
		}
		resolved = resolved || e.Kind == jobevent.HostOK && e.Task == "ansible.builtin.debug"
	}
	if !resolved {
		t.Error("an action that was found is not shown")
	}
}

// Gathered facts hold the environment, which nobody is to be shown.
func TestSanitizedFactsHoldNoEnvironment(t *testing.T) {
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": `
- ansible.builtin.debug: {var: ansible_facts}
- ansible.builtin.debug: {var: ansible_facts.env}
- ansible.builtin.debug: {var: hostvars}
- ansible.builtin.setup: {gather_subset: [env]}
  loop: [1]
`})
	wantOutcome(t, b.run(t.Context(), b.role("content")), content.Succeeded, content.ReasonSuccessful)
	there := 0
	for _, e := range b.events {
		if strings.Contains(fmt.Sprint(e.Result), secret) {
			there++
		}
		if strings.Contains(fmt.Sprint(jobevent.Sanitize(e.Result)), secret) {
			t.Errorf("task %q shows the environment", e.Task)
		}
	}
	switch {
	case harness.InJobs() && there > 0:
		t.Errorf("%d results have left the pod with the environment", there)
	case !harness.InJobs() && there < 5:
		t.Errorf("only %d results hold the environment, which proves little", there)
	}
}

// Temporary files, the state of asynchronous tasks and caches lie in the run
// directory, not in the home directory and not in /tmp.
func TestNothingIsLeftElsewhere(t *testing.T) {
	b := newBench(t, map[string]string{"roles/content/tasks/main.yml": `
- ansible.builtin.command: echo hello
- ansible.builtin.copy: {content: "{{ ansible_facts.hostname }}", dest: "{{ playbook_dir }}/file", mode: "0600"}
- ansible.builtin.command: sleep 0.1
  async: 20
  poll: 1
- ansible.builtin.command: sleep 2
  async: 60
  poll: 0
`})
	home, temp := t.TempDir(), t.TempDir()
	b.Env = append(b.Env, "HOME="+home, "TMPDIR="+temp)
	wantOutcome(t, b.run(t.Context(), b.role("content")), content.Succeeded, content.ReasonSuccessful)
	for _, dir := range []string{home, temp} {
		if left, err := harness.Files(dir); err != nil || len(left) > 0 {
			t.Errorf("%q are left (error %v)", left, err)
		}
	}
}

// ansible-playbook can't put its socket into a directory with a long path.
func TestALongRunDirectoryDoes(t *testing.T) {
	b := newBench(t, map[string]string{"roles/hello/tasks/main.yml": helloRole})
	root, err := rundir.Open(filepath.Join(t.TempDir(), strings.Repeat("long", 30)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	b.Root = root
	wantOutcome(t, b.Run(t.Context(), b.role("hello"), func(jobevent.Event) {}), content.Succeeded, content.ReasonSuccessful)
}

// The same failure must give the same text, run after run: it ends up in a
// condition, which must not flap.
func TestTheSameFailureGivesTheSameMessage(t *testing.T) {
	b := newBench(t, map[string]string{
		"roles/broken/tasks/main.yml":     "- ansible.builtin.debug: {msg: [}\n",
		"roles/nomodule/tasks/main.yml":   "- no.such.module:\n",
		"roles/failing/tasks/main.yml":    "- ansible.builtin.command: /does/not/exist\n",
		"roles/crash/tasks/main.yml":      "- crashing:\n",
		"roles/crash/library/crashing.py": "raise Exception('at import')\n",
	})
	b.SkipFacts = true
	for role, want := range map[string]struct {
		reason  content.Reason
		message string
	}{
		"nowhere": {jobevent.ReasonContentError, "nowhere"}, "broken": {jobevent.ReasonContentError, "main.yml"}, "nomodule": {jobevent.ReasonContentError, "no.such.module"},
		"failing": {content.ReasonFailed, "Error executing command"}, "crash": {content.ReasonFailed, "missing interpreter line"},
	} {
		t.Run(role, func(t *testing.T) {
			first := b.run(t.Context(), b.role(role))
			spec := b.role(role)
			spec.ID = "run-2"
			second := b.run(t.Context(), spec)
			wantOutcome(t, first, content.Failed, want.reason)
			if !strings.Contains(first.Outcome.Message, want.message) {
				t.Errorf("got message %q, want %q in it", first.Outcome.Message, want.message)
			}
			if diff := cmp.Diff(first.Outcome, second.Outcome); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A failure says where its task stands, and a command's why it failed.
func TestAFailureSaysWhereAndWhy(t *testing.T) {
	b := newBench(t, map[string]string{
		"roles/content/tasks/main.yml":   "- name: Take\n  ansible.builtin.include_tasks: \"{{ file }}.yml\"\n",
		"roles/content/tasks/shell.yml":  "- name: Call\n  ansible.builtin.shell: echo useless; echo gone wrong >&2; exit 3\n",
		"roles/content/tasks/hidden.yml": "- name: Call\n  ansible.builtin.shell: echo pa55word >&2; exit 3\n  no_log: true\n",
		"roles/content/tasks/when.yml":   "- name: Call\n  ansible.builtin.command: \"true\"\n  when: file\n",
		"roles/content/tasks/loop.yml":   "- name: Call\n  ansible.builtin.shell: echo gone {{ item }} >&2; exit 3\n  loop: [wrong]\n",
	})
	b.SkipFacts = true
	const cure = "since ansible-core 2.19 a condition must be a boolean: use `| bool` for a text such as \"yes\", `is truthy` for \"not empty\"; " +
		"ANSIBLE_ALLOW_BROKEN_CONDITIONALS=true in the manager's environment helps for the time being (https://github.com/ensign-operator/ensign/blob/main/docs/howto-ansible-core-2.19.md)"
	const hidden = "the output has been hidden due to the fact that 'no_log: true' was specified for this result"
	for file, want := range map[string]string{
		"shell":  "The command exited with a non-zero return code. (rc 3)\ngone wrong",
		"hidden": hidden,
		"when":   "Task failed: A 'when' expression failed: Conditional result (True) was derived from value of type 'str' at 'RUNS/0b2e8f6a-uid/run/env/extravars'. Conditionals must have a boolean result.\n" + cure,
		"loop":   "One or more items failed\n(item=wrong) The command exited with a non-zero return code. (rc 3)\ngone wrong",
	} {
		t.Run(file, func(t *testing.T) {
			spec := b.role("content")
			spec.ExtraVars = fmt.Appendf(nil, "\t\n{\"file\": %q}", file)
			got := b.run(t.Context(), spec)
			want = "play [localhost], task [content : Call] (roles/content/tasks/" + file + ".yml:1), host [localhost]: " + want
			if message := strings.ReplaceAll(got.Outcome.Message, b.Runs, "RUNS"); message != want {
				t.Errorf("got message %q, want %q", message, want)
			}
		})
	}
}

// Ansible checks what an include_role passes in a task of the role's own, which does not inherit no_log.
func TestTheCheckOfARolesArgumentsHasTheNoLogOfItsInclude(t *testing.T) {
	const specs = "argument_specs: {main: {options: {mode: {type: str, choices: [a, b]}, port: {type: int}}}}\n"
	for why, tasks := range map[string]string{
		"the include":            "- ansible.builtin.include_role: {name: checked}\n  vars: {mode: s3cr3t}\n  no_log: true\n",
		"a template":             "- ansible.builtin.include_role: {name: checked}\n  vars: {port: s3cr3t}\n  no_log: \"{{ 1 == 1 }}\"\n",
		"a block around it":      "- no_log: true\n  block:\n    - ansible.builtin.include_role: {name: checked}\n      vars: {mode: s3cr3t}\n",
		"an import":              "- ansible.builtin.import_role: {name: checked}\n  vars: {mode: s3cr3t}\n  no_log: true\n",
		"an outer include":       "- ansible.builtin.include_role: {name: outer}\n  vars: {secret: s3cr3t}\n  no_log: true\n",
		"a loop around it":       "- ansible.builtin.include_role: {name: checked}\n  vars: {mode: \"{{ item }}\"}\n  loop: [s3cr3t]\n  no_log: true\n",
		"a dependency of a role": "- ansible.builtin.include_role: {name: depends}\n  vars: {mode: s3cr3t}\n  no_log: true\n",
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, map[string]string{
				"roles/hello/tasks/main.yml":            tasks,
				"roles/checked/tasks/main.yml":          "- ansible.builtin.debug: {msg: checked}\n",
				"roles/checked/meta/argument_specs.yml": specs,
				"roles/outer/tasks/main.yml":            "- ansible.builtin.include_role: {name: checked}\n  vars: {mode: \"{{ secret }}\"}\n",
				"roles/depends/tasks/main.yml":          "- ansible.builtin.debug: {msg: depends}\n",
				"roles/depends/meta/main.yml":           "dependencies: [checked]\n",
			})
			spec := b.role("hello")
			result := b.run(t.Context(), spec)
			wantOutcome(t, result, content.Failed, content.ReasonFailed)
			shown := fmt.Sprint(result.Outcome, b.artifact(spec.UID, "events.jsonl"))
			for _, e := range b.events { // Their text, which Ansible displays, is never shown.
				shown += fmt.Sprint(e.Task, e.Result)
			}
			if strings.Contains(shown, "s3cr3t") {
				t.Errorf("the value is shown: %s", shown)
			}
		})
	}
}
