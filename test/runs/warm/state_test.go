package warm

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/cores"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// The servers are after each of these runs what they were before.
func TestRunsAreApart(t *testing.T) {
	b := newBench(t, nil)
	b.heat()
	for what, show := range map[string]func(*testing.T, *counted){
		"nothing passes from run to run":               nothingPasses,
		"forks of a server draw different numbers":     forksDraw,
		"runs of several resources, and their servers": resourcesShare,
		"modules are forks":                            modulesAreForks,
		"a run that is canceled leaves nothing":        canceledLeavesNothing,
		"what a run leaves behind is ended":            whatIsLeftIsEnded,
	} {
		t.Run(what, func(t *testing.T) {
			b.For(t)
			show(t, b)
		})
	}
}

// A manager may have any environment: each run after the first warm one is warm, with its modules.
func TestRunsAreWarmInAnyEnvironment(t *testing.T) {
	for what, env := range map[string][]string{
		"no locale, no HOME":     nil,
		"LC_ALL=C":               {"LC_ALL=C", "HOME=/"},
		"a locale there is not":  {"LANG=xx_XX.UTF-8", "HOME=/nonexistent"},
		"a time zone":            {"TZ=Pacific/Chatham", "HOME=/tmp"},
		"proxies":                {"http_proxy=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "HOME=/tmp"},
		"what Python would read": {"PYTHONUNBUFFERED=1", "PYTHONOPTIMIZE=1", "PYTHONWARNINGS=ignore", "HOME=/tmp"},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBenchOf(t, cores.Find(t, ".venv", env...), nil)
			b.Env = b.environ
			b.heat()
			for range 3 {
				b.warmly("heat.yml")
			}
		})
	}
}

// values returns what a task's results on localhost have under a name, in order.
func values(events []jobevent.Event, task, name string) []any {
	var found []any
	for _, e := range events {
		if e.Task == task && e.Kind == jobevent.HostOK {
			found = append(found, e.Result[name])
		}
	}
	return found
}

// warmly runs a playbook, which must succeed and be warm with all modules but the cold ones.
func (b *counted) warmly(name string, cold ...string) []jobevent.Event {
	b.t.Helper()
	b.refusals()
	result, events := b.play(name)
	if got := b.refusals(); !slices.Equal(got, cold) || result.Outcome.Verdict != content.Succeeded {
		b.t.Fatalf("%s: got %+v, started cold: %q", name, result.Outcome, got)
	}
	return events
}

// Templates that the content has when a server starts are compiled there, and others by runs. The
// filter tells which ones were compiled after it was loaded.
func TestTemplatesOfTheContentAreCompiledAhead(t *testing.T) {
	play := func(word string) string {
		return "- hosts: localhost\n  gather_facts: false\n  vars: {other: '{{ 1 + 1 }}" + word + "'}\n  tasks:\n" +
			"  - name: tell\n    debug: {msg: \"{{ (other ~ '" + word + "') | compiled }}\"}\n"
	}
	b := newBench(t, map[string]string{"known.yml": play("known"), "filter_plugins/compiled.py": `import jinja2
parse, found = jinja2.Environment._parse, []
def parsed(self, source, *args):
    found.append(str(source))
    return parse(self, source, *args)
jinja2.Environment._parse = parsed
class FilterModule:
    def filters(self):
        return {"compiled": lambda text: [text, *found]}
`})
	b.heat()
	scratch.Write(t, b.Content, map[string]string{"new.yml": play("new")})
	for word, want := range map[string][]any{
		"known": {"2knownknown"},
		"new":   {"2newnew", "{{ 1 + 1 }}new"},
	} {
		events := b.warmly(word + ".yml")
		if got := values(events, "tell", "msg"); !cmp.Equal(got, []any{want}) {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

const spoiling = `from ansible.module_utils.basic import AnsibleModule
import ansible.module_utils.basic, builtins, json, locale, os, random, resource, signal, sys, tempfile, time, warnings, yaml, kubernetes
m = AnsibleModule({})
builtins.len = lambda x: -1
json.dumps_ = json.dumps
json.SPOILT = os.SPOILT = yaml.SPOILT = kubernetes.SPOILT = sys.SPOILT = ansible.module_utils.basic.SPOILT = True
os.environ['SPOILT'] = 'yes'
os.chdir('/')
os.umask(0o77)
os.nice(3)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
sys.path.insert(0, '/spoilt')
sys.setrecursionlimit(500)
random.seed(1)
tempfile.tempdir = '/spoilt'
warnings.simplefilter('error')
locale.setlocale(locale.LC_ALL, 'C')
os.environ['TZ'] = 'Pacific/Chatham'
time.tzset()
sys.stdout.write(json.dumps({'changed': False}))
sys.stdout.flush()
os._exit(0)
`

const looking = `from ansible.module_utils.basic import AnsibleModule
import ansible.module_utils.basic, builtins, json, locale, os, resource, signal, sys, tempfile, time, warnings, yaml, kubernetes
m = AnsibleModule({})
m.exit_json(spoilt=[n.__name__ for n in (json, os, yaml, kubernetes, sys, ansible.module_utils.basic) if hasattr(n, 'SPOILT')],
    environ=os.environ.get('SPOILT'), length=len('abc'), cwd=os.path.basename(os.getcwd()), umask=oct(os.umask(0)), nice=os.nice(0),
    files=resource.getrlimit(resource.RLIMIT_NOFILE), usr1=str(signal.getsignal(signal.SIGUSR1)), pipe=str(signal.getsignal(signal.SIGPIPE)),
    blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), path='/spoilt' in sys.path, recursion=sys.getrecursionlimit(),
    temp=tempfile.gettempdir(), filters=[str(f[0]) for f in warnings.filters], locale=locale.setlocale(locale.LC_ALL), zone=time.tzname)
`

// The lookup does to ansible-playbook, and to what it forks, what the module does to
// itself.
const spoilingLookup = `from ansible.plugins.lookup import LookupBase
from ansible import constants
from ansible.module_utils import basic
import ansible.utils.display, ansible.playbook.task, builtins, json, os, resource, signal, sys
class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kw):
        found = [constants.DEFAULT_FORKS, hasattr(ansible.playbook.task.Task, 'SPOILT'), hasattr(json, 'SPOILT'), os.environ.get('SPOILT'), os.getcwd() == '/', '/spoilt' in sys.path,
            resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 40, str(signal.getsignal(signal.SIGUSR1)), os.umask(0o22), sys.getrecursionlimit()]
        constants.DEFAULT_FORKS = 1
        ansible.playbook.task.Task.SPOILT = json.SPOILT = True
        os.environ['SPOILT'] = 'yes'
        os.chdir('/')
        sys.path.insert(0, '/spoilt')
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        os.umask(0o77)
        sys.setrecursionlimit(900)
        return [str(found)]
`

// A run that spoils whatever it can of its processes, and files in what Ansible keeps
// for itself, is not seen by the next.
func nothingPasses(t *testing.T, b *counted) {
	t.Helper()
	task := func(name string) string {
		return "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - " + name + "\n"
	}
	scratch.Write(t, b.Content, map[string]string{
		"look.yml":  task("{name: look, our.own.looking: }") + "  - {name: at the playbook, debug: {msg: \"{{ lookup('spoiling') }}\"}}\n",
		"spoil.yml": task("{name: spoil, our.own.spoiling: }") + "  - debug: {msg: \"{{ lookup('spoiling') }}\"}\n  - set_fact: {spoilt: 1, cacheable: true}\n",
		"collections/ansible_collections/our/own/plugins/modules/spoiling.py": spoiling,
		"collections/ansible_collections/our/own/plugins/modules/looking.py":  looking,
		"lookup_plugins/spoiling.py":                                          spoilingLookup,
	})
	seen := func() []any {
		events := b.warmly("look.yml")
		var found []any
		for _, e := range events {
			if e.Kind == jobevent.HostOK {
				found = append(found, e.Result)
			}
		}
		if len(found) != 2 {
			t.Fatalf("got results %v", found)
		}
		return found
	}
	before := seen()
	b.warmly("spoil.yml")
	if diff := cmp.Diff(before, seen()); diff != "" {
		t.Errorf("before - and after + a run that spoils things:\n%s", diff)
	}
}

const drawing = `from ansible.module_utils.basic import AnsibleModule
import os, random, secrets, tempfile, uuid
m = AnsibleModule({})
m.exit_json(drawn=[str(random.random()), secrets.token_hex(8), str(uuid.uuid4()), os.path.basename(tempfile.mktemp()), next(tempfile._RandomNameSequence()), os.urandom(8).hex()])
`

const drawingLookup = `from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import get_unique_id
import os, random, secrets, tempfile, uuid
class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kw):
        return [[str(random.random()), secrets.token_hex(8), str(uuid.uuid4()), os.path.basename(tempfile.mktemp()), get_unique_id()]]
`

// What is random must be so in forks of one server too, which have the same memory.
// (Tasks of one ansible-playbook may draw the same, warm or cold: they are its forks.)
func forksDraw(t *testing.T, b *counted) {
	t.Helper()
	scratch.Write(t, b.Content, map[string]string{
		"draw.yml": `- hosts: localhost
  gather_facts: false
  tasks:
  - {name: draw, our.own.drawing: }
  - {name: draw, our.own.drawing: }
  - {name: template, debug: {msg: "{{ lookup('drawing') + [100000000000000 | random | string, lookup('password', '/dev/null')] }}"}}
`,
		"collections/ansible_collections/our/own/plugins/modules/drawing.py": drawing,
		"lookup_plugins/drawing.py": drawingLookup,
	})
	drawn := map[string]int{}
	for range 3 {
		events := b.warmly("draw.yml")
		for _, list := range append(values(events, "draw", "drawn"), values(events, "template", "msg")...) {
			numbers, _ := list.([]any)
			for _, number := range numbers {
				drawn[fmt.Sprint(number)]++
			}
		}
	}
	for number, times := range drawn {
		if times > 1 {
			t.Errorf("%q was drawn %d times", number, times)
		}
	}
	if want := 3 * (2*6 + 7); len(drawn) != want {
		t.Errorf("%d were drawn, want %d: %v", len(drawn), want, drawn)
	}
}

// Two custom resources of a watch, and of another watch with other roles, have another
// kubeconfig, directory and roles path, and share servers.
func resourcesShare(t *testing.T, b *counted) {
	t.Helper()
	before := servers(t, b)
	for _, watch := range []string{"one", "two"} {
		scratch.Write(t, b.Content, map[string]string{
			filepath.Join(watch, "roles/same/tasks/main.yml"):         "- {name: tell, telling: }\n- {name: what is looked up, debug: {msg: \"{{ lookup('file', lookup('env', 'KUBECONFIG')) }} {{ 1 | told }}\"}}\n",
			filepath.Join(watch, "roles/same/library/telling.py"):     "from ansible.module_utils.basic import AnsibleModule\nimport os\nAnsibleModule({}).exit_json(watch='" + watch + "', config=open(os.environ['KUBECONFIG']).read())\n",
			filepath.Join(watch, "roles/same/filter_plugins/tell.py"): "class FilterModule:\n    def filters(self):\n        return {'told': lambda x: '" + watch + "'}\n",
		})
		for _, uid := range []string{"uid-a", "uid-b"} {
			b.refusals()
			var events []jobevent.Event
			result := b.Run(t.Context(), runner.Spec{
				UID: uid, ID: "run-" + watch + "-" + uid, Role: "same", RolesPath: b.In(watch, "roles"), Timeout: waitTimeout,
				ExtraVars: []byte("\t\n{}"), Kubeconfig: []byte(uid + watch),
			}, func(e jobevent.Event) { events = append(events, e) })
			if cold := b.refusals(); !slices.Equal(cold, []string{"python: place"}) || result.Outcome.Verdict != content.Succeeded {
				t.Fatalf("%s %s: got %+v, started cold: %q", watch, uid, result.Outcome, cold)
			}
			got := slices.Concat(values(events, "tell", "watch"), values(events, "tell", "config"), values(events, "what is looked up", "msg"))
			if diff := cmp.Diff([]any{watch, uid + watch, uid + watch + " " + watch}, got); diff != "" {
				t.Errorf("%s %s:\n%s", watch, uid, diff)
			}
		}
	}
	if after := servers(t, b); !slices.Equal(before, after) || len(after) != 1 {
		t.Errorf("the servers were %v and are %v", before, after)
	}
}
