package warm

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/jobevent"
)

// play is a playbook with what it needs, and what of it is started cold in a warm
// run: nothing, if it does not say so.
type play struct {
	tasks string // of a play for localhost
	book  string // instead of tasks
	files map[string]string
	cold  []string
}

const ownModule = `#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.ours import answer
import os, sys, json
def main():
    module = AnsibleModule(argument_spec=dict(x=dict(type='int', default=1)), supports_check_mode=True)
    module.exit_json(changed=True, answer=answer(module.params['x']), executable=sys.executable, flags=str(sys.flags), cwd=os.getcwd(),
        umask=oct(os.umask(0o22)), path=[p for p in sys.path if 'payload' not in p], argv=len(sys.argv), name=__name__)
if __name__ == '__main__':
    main()
`

func plays() map[string]play {
	return map[string]play{
		"modules that do nothing": {tasks: "[{ping: }, {debug: {msg: hello}}, {set_fact: {a: 1}}, {assert: {that: [a == 1]}}]"},
		"files": {tasks: `
    - file: {path: "{{ place }}/d", state: directory, mode: "0750"}
    - copy: {content: "text\n", dest: "{{ place }}/d/f", mode: "0640"}
    - lineinfile: {path: "{{ place }}/d/f", line: more}
    - stat: {path: "{{ place }}/d/f", get_checksum: true}
    - slurp: {src: "{{ place }}/d/f"}
    - template: {src: t.j2, dest: "{{ place }}/d/t"}
    - file: {src: f, dest: "{{ place }}/d/link", state: link}
    - shell: umask > u
      args: {chdir: "{{ place }}/d"}`, files: map[string]string{"t.j2": "{{ inventory_hostname }} {{ 6 * 7 }}\n"}},
		"commands and what they see": {tasks: `
    - shell: env | grep -v -e '^_=' -e SHLVL -e JOB_ID -e ENSIGN -e KUBECONFIG -e LOCAL_TEMP -e AWX -e CACHE_PLUGIN_CONN -e ^PWD -e OLDPWD | sort
    - command: cat /proc/self/limits
    - shell: "grep -e Sig[BIC] /proc/self/status"
    - shell: "ls /proc/self/fd | wc -l; ulimit -a"
    - command: locale
    - shell: echo to stderr >&2; exit 3
      ignore_errors: true
    - command: [python3, -c, "import sys; print(sys.stdin.read())"]
      args: {stdin: "given"}`},
		"a failure": {tasks: "[{command: /bin/false}, {debug: {msg: never}}]"},
		"a failing module with its exception": {tasks: "[{broken: }]", files: map[string]string{
			"library/broken.py": "from ansible.module_utils.basic import AnsibleModule\nm = AnsibleModule({})\nraise RuntimeError('no luck')\n"}},
		"a module that exits oddly": {tasks: "[{odd: }]", files: map[string]string{
			"library/odd.py": "from ansible.module_utils.basic import AnsibleModule\nimport os\nprint('half')\nos._exit(9)\n"}},
		"rescue, always, handlers and loops": {tasks: `
    - block: [{command: /bin/false}]
      rescue: [{debug: {msg: "{{ ansible_failed_result.rc }}"}}]
      always: [{debug: {msg: always}}]
    - command: "echo {{ item }}"
      loop: [a, b, c]
      notify: told
  handlers:
    - name: told
      debug: {msg: handled}`},
		"a role with plugins of every kind": {book: "- hosts: localhost\n  gather_facts: false\n  roles: [own]\n", files: map[string]string{
			"roles/own/tasks/main.yml": `
- own: {x: 20}
- debug: {msg: "{{ 3 | tripled }} {{ lookup('own', 'x') }} {{ 4 is even }}"}
- acting: {y: 2}
`,
			"roles/own/library/own.py":             ownModule,
			"roles/own/module_utils/ours.py":       "def answer(x):\n    return x + 22\n",
			"roles/own/filter_plugins/own.py":      "class FilterModule:\n    def filters(self): return {'tripled': lambda x: int(x) * 3}\n",
			"roles/own/test_plugins/own.py":        "class TestModule:\n    def tests(self): return {'even': lambda x: x % 2 == 0}\n",
			"roles/own/lookup_plugins/own.py":      "from ansible.plugins.lookup import LookupBase\nclass LookupModule(LookupBase):\n    def run(self, terms, variables=None, **kw): return ['looked ' + t for t in terms]\n",
			"roles/own/action_plugins/acting.py":   "from ansible.plugins.action import ActionBase\nimport sys\nclass ActionModule(ActionBase):\n    def run(self, tmp=None, task_vars=None):\n        super().run(tmp, task_vars)\n        return dict(changed=False, got=self._task.args, flags=str(sys.flags), executable=sys.executable)\n",
			"roles/own/library/acting.py":          "",
			"roles/own/callback_plugins/unused.py": "from ansible.plugins.callback import CallbackBase\nclass CallbackModule(CallbackBase):\n    CALLBACK_VERSION = 2.0\n    CALLBACK_TYPE = 'aggregate'\n    CALLBACK_NAME = 'unused'\n    def v2_playbook_on_stats(self, stats): self._display.display('called back')\n",
			"roles/own/meta/main.yml":              "dependencies: []\n",
		}},
		"module_utils in the place of Ansible's": {tasks: "[{plain: }]", files: map[string]string{
			"library/plain.py":     "from ansible.module_utils.basic import AnsibleModule\nfrom ansible.module_utils.common.text.converters import to_text\nfrom ansible.module_utils import urls\nm = AnsibleModule({})\nm.exit_json(urls=getattr(urls, 'MARK', 'theirs'))\n",
			"module_utils/urls.py": "MARK = 'ours'\n",
		}},
		"modules in other languages": {tasks: "[{shelly: {a: b}}, {plainly: {a: b}}]", files: map[string]string{
			"library/shelly":  "#!/bin/sh\necho '{\"changed\": false, \"said\": \"sh\"}'\n",
			"library/plainly": "#!/usr/bin/env python3\nimport sys, json\nprint(json.dumps({'changed': False, 'argc': len(sys.argv), 'main': __name__}))\n",
		}},
		"another interpreter": {tasks: `
    - ping:
      vars: {ansible_python_interpreter: /usr/bin/python3}
    - setup: {gather_subset: ["!all", "!min", "python"]}
      vars: {ansible_python_interpreter: /usr/bin/python3}`},
		"facts": {tasks: `
    - setup: {gather_subset: ["!all", "!min", "python", "env", "user", "lsb", "platform"], filter: ["ansible_python*", "ansible_user*", "ansible_system", "ansible_distribution"]}`},
		"asynchronous tasks": {tasks: `
    - command: echo late
      async: 60
      poll: 1
    - shell: echo later; touch {{ place }}/done
      async: 60
      poll: 0
      register: job
    - wait_for: {path: "{{ place }}/done"}
    - wait_for: {path: "{{ job.results_file }}", search_regex: later}
    - async_status: {jid: "{{ job.ansible_job_id }}"}
      register: done
      until: done.finished
      retries: 60
      delay: 1
    - debug: {msg: "{{ done.stdout }}"}`},
		"an environment of a task": {tasks: `
    - shell: echo $OURS $KUBECONFIG
      environment: {OURS: "with blanks and 'quotes'", KUBECONFIG: /elsewhere}
    - own:
      environment: {PYTHONUNBUFFERED: "1", OURS: plain}`, cold: []string{"python: variable"},
			files: map[string]string{"library/own.py": ownModule, "module_utils/ours.py": "def answer(x):\n    return x\n"}},
		"Kubernetes' client": {tasks: `
    - k8s_info: {kind: Pod, api_version: v1, host: "http://127.0.0.1:1"}
      ignore_errors: true
    - located:`, files: map[string]string{
			"library/located.py": "from ansible.module_utils.basic import AnsibleModule\nimport os, kubernetes.config as c\nm = AnsibleModule({})\nm.exit_json(same=c.KUBE_CONFIG_DEFAULT_LOCATION == os.environ['KUBECONFIG'], kubernetes=c.__file__)\n"}},
		"check and diff mode":  {book: "- hosts: localhost\n  gather_facts: false\n  check_mode: true\n  diff: true\n  tasks:\n  - copy: {content: new, dest: \"{{ place }}/never\"}\n  - command: echo never\n"},
		"a prompt and a pause": {book: "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - pause: {seconds: 1}\n  - shell: test -t 0; echo $?; tty; ps -o tty= -p $$ | tr -d ' '\n"},
		"pipelining": {book: "- hosts: localhost\n  gather_facts: false\n  vars: {ansible_pipelining: true}\n  tasks:\n  - ping:\n  - own: {x: 1}\n  - command: echo x\n",
			files: map[string]string{"library/own.py": ownModule, "module_utils/ours.py": "def answer(x):\n    return x\n"}},
		"delegation and hosts added": {tasks: `
    - add_host: {name: other, ansible_connection: local, ansible_python_interpreter: "{{ ansible_python_interpreter }}"}
    - ping:
      delegate_to: other
    - command: echo {{ inventory_hostname }}
      delegate_to: other
      run_once: true
- hosts: other
  gather_facts: false
  tasks: [{ping: }]`},
		"a syntax error":    {book: "- hosts: localhost\n  tasks:\n  - nothing: {a\n"},
		"an unknown module": {tasks: "[{there_is_none: }]"},
		"no hosts":          {book: "- hosts: nowhere\n  tasks: [{ping: }]\n"},
		"templates and lookups": {tasks: `
    - debug: {msg: "{{ lookup('env', 'HOME') }} {{ lookup('pipe', 'echo piped') }} {{ lookup('file', 'f.txt') }} {{ playbook_dir | basename }}"}
    - debug: {msg: "{{ [1, 2] | map('multiply') | list }}"}
      ignore_errors: true
    - debug: {msg: "{{ lookup('config', 'DEFAULT_ROLES_PATH') }} {{ lookup('config', 'DEFAULT_FORKS') }}"}`, files: map[string]string{"f.txt": "content"}},
		"secrets": {tasks: `
    - command: echo hidden
      no_log: true
    - include_vars: v.yml`, files: map[string]string{"v.yml": "a: 1\n"}},
		"a module that imports what hides another": {tasks: "[{hiding: }]", files: map[string]string{
			"library/hiding.py": "from ansible.module_utils.basic import AnsibleModule\nimport os, sys, tempfile\nd = tempfile.mkdtemp()\nopen(d + '/yaml.py', 'w').write('MARK = 1')\nsys.path.insert(0, d)\nimport yaml\nm = AnsibleModule({})\nm.exit_json(mark=getattr(yaml, 'MARK', None))\n"}},
	}
}

func TestAPlayIsTheSameWarm(t *testing.T) {
	b := newBench(t, nil)
	b.heat()
	for name, p := range plays() {
		t.Run(name, func(t *testing.T) {
			b.t = t
			dir := strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return r
				}
				return '-'
			}, strings.ToLower(name))
			book := p.book
			if book == "" {
				book = "- hosts: localhost\n  gather_facts: false\n  tasks: " + strings.TrimPrefix(p.tasks, " ") + "\n"
			}
			files := map[string]string{dir + "/play.yml": book}
			for file, content := range p.files {
				files[dir+"/"+file] = content
			}
			write(t, b.content, files)
			cold := b.seen(dir+"/play.yml", true)
			b.refusals()
			warm := b.seen(dir+"/play.yml", false)
			if diff := cmp.Diff(cold, warm); diff != "" {
				t.Errorf("cold - and warm +:\n%s", diff)
			}
			if diff := cmp.Diff(p.cold, b.refusals()); diff != "" {
				t.Errorf("started cold, wanted - and got +:\n%s", diff)
			}
			if len(cold.Events) == 0 && cold.Message == "" {
				t.Error("the play has shown nothing")
			}
		})
	}
}

// sight is what is seen of a run, without what differs each time.
type sight struct {
	Verdict jobevent.Verdict
	Reason  jobevent.Reason
	Message string
	Counts  [7]int
	Events  []string
	Files   map[string]string
}

func (b *bench) seen(book string, cold bool) sight {
	b.t.Helper()
	out := filepath.Join(b.content, "out")
	if err := os.RemoveAll(out); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		b.t.Fatal(err)
	}
	result, events := b.play(book, cold)
	s := result.Summary
	got := sight{
		Verdict: result.Outcome.Verdict, Reason: result.Outcome.Reason, Message: steady(result.Outcome.Message),
		Counts: [7]int{s.OK, s.Changed, s.Skipped, s.Failures, s.Unreachable, s.Rescued, s.Ignored},
		Files:  b.files(out),
	}
	for _, e := range events {
		delete(e.Result, "start")
		delete(e.Result, "end")
		delete(e.Result, "delta")
		content, err := json.Marshal([]any{e.Kind, e.Play, e.Task, e.Role, e.Host, e.Action, e.Resolved, e.IgnoreErrors, e.Result, e.HostStats, e.Stdout})
		if err != nil {
			b.t.Fatal(err)
		}
		got.Events = append(got.Events, steady(string(content)))
	}
	return got
}

// files are what a run has made, with modes and content.
func (b *bench) files(dir string) map[string]string {
	b.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		found[strings.TrimPrefix(path, dir)] = info.Mode().String() + " " + string(bytes.TrimSpace(content))
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// changing is what differs from run to run, however it is started, and what stands in
// its place.
var changing = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`ansible-tmp-[\d.-]+`), "TMP"},
	{regexp.MustCompile(`ansible-local-\w+`), "LOCAL"},
	{regexp.MustCompile(`_payload_\w{8}`), "_payload_X"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UUID"},
	{regexp.MustCompile(`\brun-\d+\b`), "RUN"},
	{regexp.MustCompile(`\bj?\d{6,}\.\d+\b`), "JOB"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?`), "TIME"},
	{regexp.MustCompile(`\d+:\d\d:\d\d\.\d+`), "DELTA"},
	{regexp.MustCompile(`"(atime|ctime|mtime|inode|dev|start|end|delta|version|uptime_seconds)\\?": ?"?[\d.]+"?`), "STAT"},
	{regexp.MustCompile(`/tmp/tmp\w{8}`), "TEMP"},
	{regexp.MustCompile(`\b\d{9,}\b`), "NUMBER"},
	{regexp.MustCompile(`0x[0-9a-f]{8,}`), "ADDRESS"},
	{regexp.MustCompile(`Paused for [\d.]+ `), "Paused for some "},
}

func steady(text string) string {
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.instead)
	}
	return text
}
