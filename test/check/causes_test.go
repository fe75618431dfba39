package check

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// cause is content, and what check says of it.
type cause struct {
	files map[string]string
	spec  string // the properties of the spec; without them a CRD is missing, which the test passes over
	want  []string
}

const tasks = "roles/thing/tasks/main.yml"

// said are the findings but no-crd, as "FILE:LINE SEVERITY ID: MESSAGE".
func (c cause) said(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"watches.yaml": "- {group: example.com, version: v1, kind: Thing, role: thing}\n"}
	maps.Copy(files, c.files)
	if c.spec != "" {
		files["config/crd/things.yaml"] = strings.Replace(definition([]string{"Thing", "Namespaced"}), "properties: {}}", "properties: {"+c.spec+"}}", 1)
	}
	scratch.Write(t, dir, files)
	o := options(t, dir)
	o.Env = config.NewEnvironment(o.Env.List())
	o.Executable = filepath.Join(scratch.Repository(t), "bin", "ensign")
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range r.Relative(dir).Findings {
		if f.ID != "no-crd" {
			all = append(all, fmt.Sprintf("%s:%d %s %s: %s", f.File, f.Line, f.Severity, f.ID, f.Message))
		}
	}
	return all
}

// try compares the findings with the wanted ones: "PLACE SEVERITY ID", and words of the message behind "|".
func (c cause) try(t *testing.T) {
	t.Helper()
	said := c.said(t)
	missing := len(said) != len(c.want)
	for n, want := range c.want {
		place, words, _ := strings.Cut(want, "|")
		missing = missing || n < len(said) && (!strings.HasPrefix(said[n], place+":") || !strings.Contains(said[n], words))
	}
	if missing {
		t.Errorf("want:\n%s\ngot:\n%s", strings.Join(c.want, "\n"), strings.Join(said, "\n"))
	}
}

// TestContentThatWorks has what other tools, and this one once, took for faults.
func TestContentThatWorks(t *testing.T) {
	for name, c := range map[string]cause{
		"definitions in files/ of the role": {files: map[string]string{
			tasks: "- kubernetes.core.k8s: {src: all.yml}\n", "roles/thing/files/all.yml": "{apiVersion: v1, kind: ConfigMap}\n",
		}},
		"a template with delimiters of its own": {files: map[string]string{
			tasks: `
- kubernetes.core.k8s:
    template:
      - {path: one.j2, variable_start_string: "[[", variable_end_string: "]]"}
- ansible.builtin.template: {src: two.j2, dest: /tmp/x, block_start_string: "<%", block_end_string: "%>"}
- ansible.builtin.debug: {msg: "{{ lookup('template', 'three.j2', variable_start_string='[[', variable_end_string=']]') }}"}
`,
			"roles/thing/templates/one.j2":   "{{ if }}\n[[ 1 + 1 ]]\n",
			"roles/thing/templates/two.j2":   "{% if }}\n<% if true %>a<% endif %>\n",
			"roles/thing/templates/three.j2": "{{ range .Items }}[[ 1 ]]{{ end }}\n",
		}},
		"files that only the cluster's password opens": {
			files: map[string]string{
				tasks:                       "- ansible.builtin.debug: {msg: \"{{ password }} {{ other }}\"}\n- ansible.builtin.include_vars: more.yml\n",
				"roles/thing/vars/main.yml": "$ANSIBLE_VAULT;1.1;AES256\n3133\n", "roles/thing/vars/more.yml": "$ANSIBLE_VAULT;1.1;AES256\n3133\n",
			},
			spec: "size: {type: string}",
			want: []string{"roles/thing/vars/main.yml:1 info include|encrypted", "roles/thing/vars/more.yml:1 info include|encrypted"},
		},
		"plugins that ansible.cfg names by their place in the image": {files: map[string]string{
			tasks:                     "- ansible.builtin.debug: {msg: \"{{ 'a' | twice }} {{ lookup('mine', 'x') }}\"}\n- own: {}\n",
			"ansible.cfg":             "[defaults]\nfilter_plugins = /opt/ansible/plugins/filters\nlookup_plugins=/opt/ansible/plugins/lookups\nlibrary = /opt/ansible/library\n",
			"library/own.py":          "\"\"\"A module.\"\"\"\n",
			"plugins/filters/f.py":    "class FilterModule:\n    def filters(self):\n        return {\"twice\": lambda text: text * 2}\n",
			"plugins/lookups/mine.py": "from ansible.plugins.lookup import LookupBase\n\n\nclass LookupModule(LookupBase):\n    def run(self, terms, variables=None, **kwargs):\n        return terms\n",
		}},
	} {
		t.Run(name, c.try)
	}
}

// TestTasksForSomeClusters: the condition of a task asks what the API server serves.
func TestTasksForSomeClusters(t *testing.T) {
	role := "kind: ClusterRole\nrules:\n  - {apiGroups: [example.com], resources: [things, things/status], verbs: [get, list, watch, patch]}\n  - {apiGroups: [\"\", events.k8s.io], resources: [events], verbs: [create, patch]}\n"
	const read = "    kubernetes.core.k8s_info: {kind: Route, api_version: route.openshift.io/v1, name: x, namespace: y}\n"
	for name, c := range map[string]struct{ task, severity string }{
		"no condition":       {"- name: A\n" + read, "error"},
		"another condition":  {"- name: A\n" + read + "  when: size == 'a'\n", "error"},
		"by a lookup":        {"- name: A\n" + read + "  when: \"'route.openshift.io' in lookup('kubernetes.core.k8s', cluster_info='api_groups')\"\n", "info"},
		"by a variable":      {"- name: A\n" + read + "  when: [\"'route.openshift.io' in groups_there\"]\n  vars: {groups_there: \"{{ lookup('kubernetes.core.k8s', cluster_info='api_groups') }}\"}\n", "info"},
		"of a block":         {"- when: \"'route.openshift.io' in api_groups\"\n  block:\n    -\n" + strings.ReplaceAll(read, "    k", "          k"), "info"},
		"by a task's result": {"- kubernetes.core.k8s_cluster_info:\n  register: cluster\n- name: A\n" + read + "  when: \"'route.openshift.io/v1' in cluster.apis\"\n", "info"},
	} {
		t.Run(name, func(t *testing.T) {
			said := cause{files: map[string]string{"config/rbac/role.yaml": role, tasks: strings.ReplaceAll(c.task, "\n    kubernetes", "\n  kubernetes")}}.said(t)
			if len(said) != 1 || !strings.Contains(said[0], c.severity+" missing-right") {
				t.Errorf("want %s missing-right, got %q", c.severity, said)
			}
		})
	}
}

// TestCausesOfFailures has what stops content on ansible-core 2.19 and later, or makes a run do something else
// than its author means.
func TestCausesOfFailures(t *testing.T) {
	const field = "size: {type: string}, count: {type: integer}, settings: {type: object, additionalProperties: {type: string}}"
	for name, c := range map[string]cause{
		"a template file that may render nothing": {
			files: map[string]string{
				tasks: `
- ansible.builtin.debug: {msg: "{{ lookup('template', 'labels.j2') | indent(4) }}"}
- ansible.builtin.debug: {msg: "{{ lookup('template', 'labels.j2') | default('', true) | indent(4) }}"}
- ansible.builtin.debug: {msg: "{{ lookup('template', 'labels.j2') | from_yaml }}"}
- ansible.builtin.debug: {msg: "{{ 'a' ~ labels }}"}
  vars: {labels: "{{ lookup('template', 'labels.j2') }}"}
- ansible.builtin.debug: {msg: "{{ lookup('template', 'full.j2') | indent(4) }}"}
- ansible.builtin.template: {src: object.j2, dest: /tmp/x}
`,
				"roles/thing/templates/labels.j2": "{% for l in [] %}\n{{ l }}\n{% endfor %}\n",
				"roles/thing/templates/full.j2":   "a: b\n{% if size == 'a' %}\nc: d\n{% endif %}\n",
				"roles/thing/templates/object.j2": "a: b\n{{ lookup('template', 'labels.j2') | indent(4) }}\n",
			},
			spec: field,
			want: []string{
				tasks + ":2 warning empty-template|labels.j2 may render nothing", tasks + ":5 warning empty-template|labels",
				"roles/thing/templates/object.j2:2 warning empty-template|indent",
			},
		},
		"a number and a text": {
			files: map[string]string{tasks: `
- ansible.builtin.debug: {msg: "{{ 'port-' + count }}"}
- ansible.builtin.debug: {msg: "{{ 'port-' ~ count }}{{ count + 1 }}{{ 'a' + size }}{{ 'a' + (count | string) }}"}
- ansible.builtin.debug: {msg: "{{ 'port-' + five }}"}
  vars: {five: "{{ 2 + 3 }}"}
`},
			spec: field,
			want: []string{tasks + ":2 error native-type|+ joins a text and a number", tasks + ":4 warning native-type"},
		},
		"a filter and a lookup without their libraries": {
			files: map[string]string{
				tasks: "- ansible.builtin.debug: {msg: \"{{ 'a' | queried }} {{ lookup('resolved', 'a') }}\"}\n",
				"roles/thing/filter_plugins/queried.py": "DOCUMENTATION = r\"\"\"\nname: queried\nshort_description: x\ndescription: [x]\nrequirements:\n  - nosuchpath\n\"\"\"\ntry:\n    import nosuchpath\nexcept ImportError:\n    nosuchpath = None\n\n\n" +
					"class FilterModule:\n    def filters(self):\n        return {\"queried\": lambda text: nosuchpath.search(text)}\n",
				"roles/thing/lookup_plugins/resolved.py": "DOCUMENTATION = r\"\"\"\nname: resolved\nrequirements: [nosuchdns]\n\"\"\"\nfrom ansible.plugins.lookup import LookupBase\ntry:\n    import nosuchdns\nexcept ImportError:\n    nosuchdns = None\n\n\n" +
					"class LookupModule(LookupBase):\n    def run(self, terms, variables=None, **kwargs):\n        return nosuchdns.query(terms)\n",
			},
			want: []string{tasks + ":1 warning missing-library|nosuchdns is not installed, which is needed by the lookup resolved", tasks + ":1 warning missing-library|nosuchpath is not installed, which is needed by the filter queried"},
		},
		"the short name of a module with an action plugin": {
			files: map[string]string{
				tasks: `
- k8s: {template: cm.yml.j2, namespace: a}
- name: A file of the role
  k8s: {src: cm.yml, namespace: a}
- kubernetes.core.k8s: {template: cm.yml.j2, namespace: a}
- kubernetes.core.k8s: {src: cm.yml, namespace: a}
- k8s: {src: "{{ role_path }}/files/cm.yml", namespace: a}
- k8s: {src: /tmp/cm.yml, namespace: a}
- k8s: {definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "{{ ansible_operator_meta.namespace }}"}}}
`,
				"roles/thing/files/cm.yml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
				"roles/thing/templates/cm.yml.j2": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
			},
			want: []string{tasks + ":2 error short-name|does not render template", tasks + ":4 error short-name|does not find src"},
		},
		"extensions of Jinja": {
			files: map[string]string{
				"ansible.cfg": "[defaults]\njinja2_extensions = jinja2.ext.loopcontrols\n",
				tasks:         "- ansible.builtin.debug: {msg: \"{% for i in [1, 2] %}{% break %}{% endfor %}\"}\n- ansible.builtin.debug: {msg: \"{% do a %}x\"}\n",
			},
			want: []string{tasks + ":1 warning empty-template", tasks + ":2 error jinja|unknown tag 'do'"},
		},
		"parts of objects as conditions": {
			files: map[string]string{tasks: `
- kubernetes.core.k8s_info: {kind: Pod}
  register: pods
- ansible.builtin.debug:
  when: pods['resources'][0]['metadata']['labels']
- ansible.builtin.debug:
  when:
    - pods.resources[0].metadata.name
    - pods.resources | first
    - pods.resources[0].metadata.annotations.x
- ansible.builtin.assert:
    that: pods.resources[0].status.phase
- ansible.builtin.debug:
  when: pods.resources[0].status.ready or pods.resources[0].spec.paused or pods.resources[0:1]
`},
			want: []string{
				tasks + ":5 warning non-boolean-condition|a mapping", tasks + ":8 warning non-boolean-condition|a text", tasks + ":9 warning non-boolean-condition|a mapping",
				tasks + ":10 warning non-boolean-condition|a text", tasks + ":12 warning non-boolean-condition|a text",
			},
		},
		"queries that give lists": {
			files: map[string]string{
				tasks: `
- kubernetes.core.k8s_info: {kind: Pod}
  register: pods
- ansible.builtin.debug:
  when: pods | json_query('resources[].status.phase')
- ansible.builtin.debug:
  when: pods | json_query("resources[?kind=='Pod'].metadata.name")
- ansible.builtin.debug:
  when: pods | json_query('length(resources[])') or pods | json_query('resources[].kind | [0]') or pods | json_query('resources[0].spec.paused')
`,
				"roles/thing/filter_plugins/query.py": "class FilterModule:\n    def filters(self):\n        return {\"json_query\": lambda data, query: data}\n",
			},
			want: []string{tasks + ":5 error non-boolean-condition|a list", tasks + ":7 error non-boolean-condition|a list"},
		},
		"a task that asks": {
			files: map[string]string{tasks: "- ansible.builtin.pause: {prompt: Sure}\n- pause:\n- pause: {prompt: Wait, seconds: 1}\n"},
			want:  []string{tasks + ":1 warning prompt|pause waits for input", tasks + ":2 warning prompt"},
		},
		"import_playbook among tasks": {
			files: map[string]string{tasks: "- ansible.builtin.import_playbook: more.yml\n"},
			want:  []string{tasks + ":1 error syntax|import_playbook is a task"},
		},
		"a job in the background": {
			files: map[string]string{tasks: `
- name: Forgotten
  ansible.builtin.command: sleep 60
  async: 60
  poll: 0
- ansible.builtin.command: sleep 60
  async: 60
  poll: 0
  register: awaited
- ansible.builtin.command: "sleep {{ item }}"
  async: 60
  poll: 0
  loop: [1, 2]
  register: several
- {ansible.builtin.async_status: {jid: "{{ awaited.ansible_job_id }}"}, register: done, until: done.finished == 1}
- ansible.builtin.async_status: {jid: "{{ item.ansible_job_id }}"}
  loop: "{{ several.results }}"
- ansible.builtin.command: sleep 1
  async: 60
  poll: 5
`},
			want: []string{tasks + ":3 warning async|the task Forgotten"},
		},
		"the kind from the inventory's path": {
			files: map[string]string{tasks: `
- ansible.builtin.set_fact: {thing_kind: "{{ hostvars['localhost']['inventory_file'].split('/')[6] }}"}
- ansible.builtin.debug: {msg: "{{ inventory_file }}"}
`},
			want: []string{tasks + ":2 info inventory-path"},
		},
		"a map with any keys": {
			files: map[string]string{tasks: `
- ansible.builtin.debug: {msg: "{{ settings.max_conns }} {{ settings | length }}"}
  when: settings | length > 0
- ansible.builtin.copy: {content: "{{ settings | to_json }}", dest: /tmp/x}
- ansible.builtin.debug: {msg: "{{ _example_com_thing_spec.settings }}"}
`},
			spec: field,
			want: []string{tasks + ":4 warning converted-keys|spec.settings of Thing (config/crd/things.yaml:"},
		},
		"names that ansible-lint refuses": {
			files: map[string]string{tasks: "- ansible.builtin.debug: {msg: \"{{ port }} {{ lambda }}\"}\n", "roles/thing/defaults/main.yml": "port: 80\nlambda: 1\nthing_port: 2\n", "roles/thing/meta/argument_specs.yml": "argument_specs:\n  main:\n    options:\n      tags: {type: str}\n"},
			want:  []string{"roles/thing/defaults/main.yml:1 warning reserved-name|port", "roles/thing/defaults/main.yml:2 warning reserved-name|lambda", "roles/thing/meta/argument_specs.yml:4 warning reserved-name|tags"},
		},
		"a variable that each run reads and nothing defines": {
			files: map[string]string{tasks: `
- ansible.builtin.debug: {msg: "{{ nowhere_at_all }}"}
- ansible.builtin.debug: {msg: "{{ sometimes_read }}"}
  when: size == 'a'
- ansible.builtin.debug: {msg: "{{ in_a_branch if size == 'a' else 'b' }}"}
- block:
    - ansible.builtin.debug: {msg: "{{ rescued_there }}"}
  rescue:
    - ansible.builtin.debug: {msg: "{{ in_the_rescue }}"}
- ansible.builtin.debug:
  when: [unknown_condition == 'a', size == 'b']
`},
			spec: field,
			want: []string{
				tasks + ":2 error undefined-variable|nowhere_at_all", tasks + ":3 warning undefined-variable", tasks + ":5 warning undefined-variable",
				tasks + ":7 warning undefined-variable", tasks + ":9 warning undefined-variable", tasks + ":11 error undefined-variable",
			},
		},
	} {
		t.Run(name, c.try)
	}
}

// TestRolesAreFoundAsARunFindsThem: the search path goes before the directory of the project.
func TestRolesAreFoundAsARunFindsThem(t *testing.T) {
	cause{
		files: map[string]string{
			"watches.yaml":            "- {group: example.com, version: v1, kind: Thing, playbook: play.yml}\n",
			"play.yml":                "- {hosts: localhost, gather_facts: false, roles: [x]}\n",
			"ansible.cfg":             "[defaults]\nroles_path = vendor\n",
			"vendor/x/tasks/main.yml": "- ansible.builtin.import_playbook: a.yml\n", "x/tasks/main.yml": "- ansible.builtin.debug:\n",
		},
		want: []string{"vendor/x/tasks/main.yml:1 error syntax"},
	}.try(t)
}

// TestValuesThatAChartDoesNotHave: the schema of its kind is open, and Helm drops nothing.
func TestValuesThatAChartDoesNotHave(t *testing.T) {
	cause{
		files: map[string]string{
			"watches.yaml":                       "- {group: example.com, version: v1, kind: Thing, chart: charts/thing}\n",
			"charts/thing/Chart.yaml":            "apiVersion: v2\nname: thing\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, repository: ''}]\n",
			"charts/thing/values.yaml":           "replicaCount: 1\nimage: {tag: a}\nfree: {}\n",
			"charts/thing/templates/cm.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"{{ .Values.mentioned }}\"}\n",
			"charts/thing/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/thing/charts/sub/values.yaml": "deep: 1\n",
			"config/samples/thing.yml": `apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
spec:
  replicaCout: 3
  image: {tga: b}
  free: {any: thing}
  mentioned: x
  global: {x: y}
  sub: {deep: 2, deeep: 3}
`,
		},
		want: []string{
			"config/samples/thing.yml:5 warning chart-values|replicaCout; did you mean replicaCount?", "config/samples/thing.yml:6 warning chart-values|image.tga",
			"config/samples/thing.yml:10 warning chart-values|sub.deeep",
		},
	}.try(t)
}

// TestFixes has each kind of fault that --fix rewrites: Ansible itself fails with it before, and does not after.
func TestFixes(t *testing.T) {
	const before = `# Each line of this file stays as it is, but for what is rewritten.
- name: A number
  ansible.builtin.set_fact: {seen: 1}
  when: names | length   # not empty
- name: In a list
  ansible.builtin.debug: {msg: "{{ seen }}"}
  when:
    - names
    - "'{{ first }}' == 'a'"
- name: A template outside of quotes
  ansible.builtin.assert:
    that: "{{ first }} == 'a'"
- name: A template
  ansible.builtin.debug: {msg: "{{ seen }}"}
  until: "{{ names }}"
- name: Renamed
  include: more.yml
- name: A ConfigMap
  kubernetes.core.k8s:
    definition:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: a, namespace: b, labels: {n: "{{ 1 + 1 }}"}}
      data: {port: 80, on: true, n: "{{ names | length }}"}
  when: false
- name: Refused
  ansible.builtin.debug:
  when: >-
    names
    | length
`
	after := strings.NewReplacer(
		"names | length   #", "(names | length) is truthy   #", "- names\n", "- names is truthy\n", `"'{{ first }}' == 'a'"`, `"(first | string) == 'a'"`,
		`"{{ first }} == 'a'"`, `"first == 'a'"`, `until: "{{ names }}"`, `until: "names is truthy"`, "  include:", "  ansible.builtin.include_tasks:",
		"{{ 1 + 1 }}", "{{ (1 + 1) | string }}", "port: 80", `port: "80"`, "on: true", `on: "true"`, `n: "{{ names | length }}"`, `n: "{{ (names | length) | string }}"`,
	).Replace(before)
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"watches.yaml":               "- {group: example.com, version: v1, kind: Thing, role: thing}\n",
		tasks:                        before,
		"roles/thing/tasks/more.yml": "- ansible.builtin.debug:\n",
		"roles/thing/vars/main.yml":  "names: [a]\nfirst: a\n",
		"play.yml":                   "- {hosts: localhost, gather_facts: false, roles: [thing]}\n",
	})
	play := func() error {
		command := exec.CommandContext(t.Context(), "ansible-playbook", "play.yml")
		command.Dir = dir
		out, err := command.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	if play() == nil {
		t.Error("Ansible takes the content before it is rewritten")
	}
	o := options(t, dir)
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	changes, refused := check.Fixes(r, dir)
	if len(changes) != 1 || changes[0].Edits != 10 || changes[0].After != after {
		t.Fatalf("got %s", changes[0].Diff("main.yml"))
	}
	if len(refused) != 1 || refused[0].Node.Line != 28 || !strings.Contains(refused[0].Why, "several lines") {
		t.Errorf("got the refusals %+v", refused)
	}
	if err := changes[0].Write(dir); err != nil {
		t.Fatal(err)
	}
	if r, err = check.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Severity == "error" && f.Line != 28 {
			t.Errorf("it is still there: %+v", f)
		}
	}
	scratch.Write(t, dir, map[string]string{tasks: strings.Replace(after, "    | length\n", "    | length > 0\n", 1)})
	if err := play(); err != nil {
		t.Error("Ansible does not take the content after it is rewritten:", err)
	}
}
