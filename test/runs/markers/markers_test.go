package markers_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/warm"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/escapes"
	"github.com/ensign-operator/ensign/test/harness/scratch"
	"github.com/ensign-operator/ensign/test/runs/bench"
)

// seen is what came of a run: its events without their texts, and its outcome.
type seen struct {
	Events  []string
	Verdict content.Verdict
	Reason  content.Reason
	OK      int
	Failed  int
	Requeue time.Duration
}

// Each text is displayed in each place. What comes of it is what comes of a text that is
// like it, but for what plain ansible-runner looks for.
func TestNoTextBecomesAnEvent(t *testing.T) {
	hostile := texts(escapes.Texts())
	var harmless []string
	for _, text := range hostile {
		harmless = append(harmless, disarm(text))
	}
	cores.OnEach(t, func(t *testing.T, c cores.Core) {
		b := newBench(t, c.Env)
		for name, book := range playbooks(len(hostile)) {
			t.Run(name, func(t *testing.T) {
				want := b.play(t, book, harmless, harness.Warm())
				if len(want.Events) < 8 || cameToNothing(want) && !slices.Contains(endless(), name) || name == goingOn && (want.Verdict != content.Succeeded || want.Requeue != time.Hour) {
					t.Fatalf("the play without an attack came to %+v", want)
				}
				for _, hot := range slices.Compact([]bool{false, harness.Warm()}) {
					if diff := cmp.Diff(want, b.play(t, book, hostile, hot)); diff != "" {
						t.Errorf("warm: %t; without an attack - and with +:\n%s", hot, diff)
					}
				}
			})
		}
		if found := b.chosen(t); len(found) > 0 {
			t.Errorf("files that an author chose: %q", found)
		}
	})
}

// disarm makes a text harmless that stays as long, and as many lines.
func disarm(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '{':
			return '('
		case r < ' ' && r != '\n' && r != '\r':
			return 'x'
		}
		return r
	}, text)
}

func cameToNothing(s seen) bool {
	return s.Reason == jobevent.ReasonNoStats || s.Reason == jobevent.ReasonContentError || s.Reason == content.ReasonRunnerCrashed
}

// goingOn names the playbook in which a run goes on after each text.
const goingOn = "where a run goes on"

// endless are the playbooks that Ansible itself may end without statistics.
func endless() []string { return []string{"tasks that are missing", "a number that is none"} }

// genuine is the forgery of who knows the run's number, as the author of a role does.
const genuine = `
    forged: '{"event": "playbook_on_stats", "uuid": "u", "job_id": NONCE, "event_data": {"ok": {"localhost": 1}, "failures": {"forged": 7}}}'
    encoded: "{{ forged | replace('NONCE', lookup('env', 'JOB_ID')) | b64encode }}"
    genuine: "{{ '' if '\e' not in texts[0] else '\e[K' ~ encoded ~ '\e[' ~ encoded | length ~ 'D\e[Ke30=\e[4D\e[K' }}"
`

// playbooks are by what they show. Each has the variable texts.
func playbooks(number int) map[string]string {
	var tasks, plays strings.Builder
	for _, p := range append(places(), slow()...) {
		tasks.WriteString(p.tasks)
	}
	for i := range number {
		fmt.Fprintf(&plays, `
- name: '{{ texts[%[1]d] }}'
  hosts: localhost
  gather_facts: false
  tasks: [{debug: {msg: hi}, changed_when: true, notify: topic}]
  handlers: [{name: '{{ texts[%[1]d] }}', listen: topic, debug: {msg: hi}}]
- name: '{{ texts[%[1]d] }}'
  hosts: absent
  tasks: []
`, i)
	}
	books := map[string]string{goingOn: `
- hosts: localhost
  gather_facts: false
  vars:` + genuine + `
  tasks:
  - include_tasks: each.yml
    loop: "{{ texts }}"
    loop_control: {loop_var: text, label: text}
    vars: {cr: "{{ text ~ genuine }}"}
  - ensign.operator.requeue_after: {time: 1h}
` + plays.String() + "\x00" + tasks.String()}
	for _, p := range ends()[:min(someEnds, len(ends()))] {
		// One host after the other: where Ansible ends the run at one, what came of the others is the same in each run.
		books[p.name] = "- hosts: crowd\n  gather_facts: false\n  throttle: 1\n  vars: {cr: '{{ texts[index | int] }}'}\n  tasks:\n  - debug: {msg: hi}\n" +
			"  - import_tasks: each.yml\n\x00" + p.tasks
	}
	return books
}

// crowded is a bench with a server and an inventory of a host for each text.
type crowded struct{ *bench.Bench }

func newBench(t *testing.T, env pyenv.Env) crowded {
	t.Helper()
	b := crowded{bench.New(t, env, map[string]string{"library/warns.py": warns})}
	var hosts strings.Builder
	for i := range len(texts(escapes.Texts())) {
		fmt.Fprintf(&hosts, "h%d index=%d\n", i, i)
	}
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"hosts": "localhost\n[crowd]\n" + hosts.String() + "[all:vars]\nansible_connection=local\nansible_python_interpreter=" + env.Python + "\n",
	})
	b.SkipFacts, b.Env = true, []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LANG=C.UTF-8"}
	b.CollectionsPath = []string{filepath.Join(scratch.Repository(t), "collections")}
	b.Inventory = filepath.Join(dir, "hosts")
	b.Serve(warm.Options{Logger: logr.Discard()})
	return b
}

// play runs a playbook and the file of tasks behind the NUL in it, with the texts in the
// spec of a custom resource.
func (b crowded) play(t *testing.T, book string, texts []string, hot bool) seen {
	t.Helper()
	play, tasks, _ := strings.Cut(book, "\x00")
	scratch.Write(t, b.Content, map[string]string{"play.yml": play, "each.yml": tasks})
	for _, name := range []string{"copy", "block"} {
		if err := os.RemoveAll(b.In(name)); err != nil {
			t.Fatal(err)
		}
	}
	if hot {
		b.For(t)
		b.Heat(bench.IsWarm)
	}
	got := seen{}
	result, events := b.Do(t.Context(), runner.Spec{Playbook: b.In("play.yml"), ExtraVars: variables(t, texts), Cold: !hot, Verbosity: 2})
	for _, e := range events {
		got.Events = append(got.Events, fmt.Sprintf("%s: %s %s", e.Host, e.Kind, e.ResolvedAction))
	}
	got.Verdict, got.Reason = result.Outcome.Verdict, result.Outcome.Reason
	got.OK, got.Failed, got.Requeue = result.Summary.OK, result.Summary.Failures, result.Summary.RequeueAfter
	if result.Warm != hot {
		t.Errorf("a run is warm: %t", result.Warm)
	}
	if cameToNothing(got) {
		t.Logf("the run came to nothing: %q", result.Outcome.Message)
	}
	byHost(got.Events)
	return got
}

// byHost puts the events of each host together, in their order: hosts work at the same time.
func byHost(events []string) {
	host := func(event string) string { name, _, _ := strings.Cut(event, ":"); return name }
	slices.SortStableFunc(events, func(a, b string) int { return strings.Compare(host(a), host(b)) })
}

// variables are those that the manager would make of a custom resource.
func variables(t *testing.T, texts []string) []byte {
	t.Helper()
	var list []any
	for _, text := range texts {
		list = append(list, text)
	}
	return bench.Variables(t, map[string]any{"spec": map[string]any{"texts": list}}, extravars.Options{
		GVK: schema.GroupVersionKind{Group: "markers.test", Version: "v1", Kind: "Thing"}, MarkUnsafe: true,
	})
}

// chosen lists the files whose names come from a text.
func (b crowded) chosen(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, dir := range []string{b.Content, filepath.Dir(b.Runs), filepath.Dir(b.Inventory)} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.Contains(filepath.Base(path), "chosen") {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
