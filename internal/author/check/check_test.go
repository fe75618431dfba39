package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/author/schema"
	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// definition has a schema for the spec, which is closed unless it says otherwise.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          properties:
            status: {default: {observedGeneration: -1}, x-kubernetes-preserve-unknown-fields: true}
            spec:
`

const closed = `              properties:
                secretName: {type: string}
                count: {type: integer}
                users: {type: array, items: {properties: {secret: {type: string}}}}
`

func thing() watches.Watch {
	return watches.Watch{
		GVK: kinds.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, Content: watches.Content{Role: "r"}, Line: 1,
		SnakeCaseParameters: true, MarkUnsafe: true, ManageStatus: true,
	}
}

// project is one with a watch, as it is before Python is asked.
func project(t *testing.T, watch watches.Watch, files map[string]string) *Project {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, files)
	o := config.Options{}
	o.Dir = dir
	p := &Project{
		options: o, watchesFile: filepath.Join(dir, "watches.yaml"), CRDs: schema.Load(filepath.Join(dir, "config")),
		links: newLinks(dir), absentCollections: absences{}, absentLibraries: absences{},
	}
	p.samplesRead = p.sampleFiles()
	for _, unit := range source.Walk([]watches.Watch{watch}, source.Search{Dir: dir}) {
		p.Units = append(p.Units, newUnit(unit, p.CRDs))
		p.Units[len(p.Units)-1].Index = unit.Index()
	}
	return p
}

// found are the findings, as "FILE:LINE severity id".
func (p *Project) found() []string {
	var all []string
	for _, f := range p.findings {
		all = append(all, fmt.Sprintf("%s:%d %s %s", filepath.ToSlash(p.relative(f.File)), f.Line, f.Severity, f.ID))
	}
	slices.Sort(all)
	return all
}

func want(t *testing.T, p *Project, wanted ...string) {
	t.Helper()
	if diff := cmp.Diff(wanted, p.found()); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestALinkedDirectoryOfRolesDoublesNoFinding(t *testing.T) {
	for name, target := range map[string]string{"within the project": "", "elsewhere": "shared"} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"watches.yaml": ""})
			roles := filepath.Join(p.options.Dir, "roles")
			if target != "" {
				shared := t.TempDir()
				scratch.Write(t, shared, map[string]string{"r/tasks/main.yml": "- include_tasks: none.yml\n"})
				link(t, shared, roles)
			} else {
				scratch.Write(t, roles, map[string]string{"r/tasks/main.yml": "- include_tasks: none.yml\n"})
			}
			scratch.Write(t, p.options.Dir, map[string]string{"playbooks/play.yml": "- hosts: all\n  roles: [r]\n"})
			link(t, "../roles", filepath.Join(p.options.Dir, "playbooks", "roles"))
			role, play := thing(), thing()
			play.Content = watches.Content{Playbook: filepath.Join(p.options.Dir, "playbooks", "play.yml")}
			for _, unit := range source.Walk([]watches.Watch{role, play}, source.Search{Dir: p.options.Dir}) {
				p.faults(&Unit{Unit: unit, Index: unit.Index()})
			}
			want(t, p, "roles/r/tasks/main.yml:1 warning missing-file", "roles/r/tasks/main.yml:1 warning missing-file")
			if r := report.New(p.findings); len(r.Findings) != 1 {
				t.Errorf("want one finding, got %+v", r.Findings)
			}
		})
	}
}

func link(t *testing.T, target, at string) {
	t.Helper()
	if err := os.Symlink(target, at); err != nil {
		t.Fatal(err)
	}
}

func TestHandlers(t *testing.T) {
	const tasks = "roles/r/tasks/main.yml"
	for name, test := range map[string]struct {
		task     string
		handlers string
		want     []string
	}{
		"one that is there":             {"- debug:\n  notify: restart\n", "- {name: restart, debug: }\n", nil},
		"one that listens":              {"- debug:\n  notify: topic\n", "- {name: restart, debug: , listen: [other, topic]}\n", nil},
		"with the role's name":          {"- debug:\n  notify: 'r : restart'\n", "- {name: restart, debug: }\n", nil},
		"each of a list has its line":   {"- debug:\n  notify:\n    - restart\n    - reload\n", "- {name: restart, debug: }\n", []string{tasks + ":4 warning missing-handler"}},
		"a name that a variable has":    {"- debug:\n  notify: '{{ x }}'\n", "", nil},
		"handlers that are variables":   {"- debug:\n  notify: reload\n", "- {name: 're{{ x }}', debug: }\n", nil},
		"what an unknown file may have": {"- debug:\n  notify: reload\n- include_tasks: '{{ x }}'\n", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{tasks: test.task, "roles/r/handlers/main.yml": test.handlers})
			p.handlers(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestVariablesThatAResourceTakesOver(t *testing.T) {
	const tasks = "roles/r/tasks/main.yml"
	open := "              x-kubernetes-preserve-unknown-fields: true\n"
	for name, test := range map[string]struct {
		schema, task string
		vars         map[string]any
		want         []string
	}{
		"a result":                           {closed, "- debug:\n  register: secret_name\n", nil, []string{tasks + ":2 error shadowed-variable"}},
		"a fact":                             {closed, "- set_fact:\n    count: 1\n    other: 1\n", nil, []string{tasks + ":2 error shadowed-variable"}},
		"a default":                          {closed, "- set_fact:\n    count: 1\n  when: count is not defined\n", nil, nil},
		"a default under several conditions": {closed, "- set_fact: {count: 1}\n  when: [x, not count is defined]\n- block:\n  - set_fact: {count: 1}\n  when: x and count is undefined\n", nil, nil},
		"a default that may be another":      {closed, "- set_fact:\n    count: 1\n  when: x or count is not defined\n- set_fact:\n    count: 1\n  when: discount is not defined\n", nil, []string{tasks + ":2 error shadowed-variable", tasks + ":5 error shadowed-variable"}},
		"a default in the value":             {closed, "- set_fact:\n    count: \"{{ count | default(1) }}\"\n", nil, []string{tasks + ":2 warning shadowed-variable"}},
		"the loop's variable":                {closed, "- debug:\n  loop: [1]\n  loop_control:\n    loop_var: users\n", nil, []string{tasks + ":4 error shadowed-variable"}},
		"a task's variable":                  {closed, "- debug:\n  vars: {count: 1}\n", nil, []string{tasks + ":2 warning shadowed-variable"}},
		"what the watch sets":                {closed, "- set_fact: {count: 1}\n", map[string]any{"count": 1}, nil},
		"another name":                       {closed, "- set_fact: {secretName: 1}\n", nil, nil},
		"an open schema, once for all names": {open, "- debug:\n  register: out\n- debug:\n  register: out\n- set_fact: {a: 1, b: 2}\n", nil, []string{"config/crd.yaml:15 warning shadowed-variable"}},
		"what Ansible itself sets":           {open, "- set_fact: {ansible_x: 1}\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Vars = test.vars
			p := project(t, watch, map[string]string{tasks: test.task, "config/crd.yaml": definition + test.schema})
			p.variables(p.Units[0])
			p.openSchemas()
			want(t, p, test.want...)
		})
	}
}

func TestPathsOfReferences(t *testing.T) {
	const file = "- group: example.com\n  kind: Other\n  references: [{name: spec.nothing}]\n- group: example.com\n  kind: Thing\n  references:\n    - name: spec.nothing\n"
	for name, test := range map[string]struct {
		path   watches.Path
		schema string
		want   []string
	}{
		"a field":                        {watches.Path{"spec", "secretName"}, closed, nil},
		"a field of elements":            {watches.Path{"spec", "users", watches.EachElement, "secret"}, closed, nil},
		"the resource's own name":        {watches.Path{"metadata", "name"}, closed, nil},
		"a slip, on the watch's line":    {watches.Path{"spec", "nothing"}, closed, []string{"watches.yaml:7 error reference-path"}},
		"a slip that is written so":      {watches.Path{"spec", "nome"}, closed, []string{"watches.yaml:4 error reference-path"}},
		"a list without its elements":    {watches.Path{"spec", "users", "secret"}, closed, []string{"watches.yaml:4 error reference-path"}},
		"a number":                       {watches.Path{"spec", "count"}, closed, []string{"watches.yaml:4 error reference-path"}},
		"a field that may be there":      {watches.Path{"spec", "any"}, "              x-kubernetes-preserve-unknown-fields: true\n", []string{"watches.yaml:4 warning reference-path"}},
		"nothing, which is no namespace": {nil, closed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Line, watch.References = 4, []watches.Reference{{Name: test.path}}
			p := project(t, watch, map[string]string{"watches.yaml": file, "config/crd.yaml": definition + test.schema})
			p.kinds(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestThePathOfAServiceAccount(t *testing.T) {
	for name, test := range map[string]struct {
		path watches.Path
		want []string
	}{
		"a field": {watches.Path{"spec", "secretName"}, nil},
		"a slip":  {watches.Path{"spec", "account"}, []string{"watches.yaml:4 error account-path"}},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Line, watch.ServiceAccount.Path = 4, test.path
			p := project(t, watch, map[string]string{"watches.yaml": "- group: example.com\n  kind: Thing\n", "config/crd.yaml": definition + closed})
			p.kinds(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestPlacesOfReleases(t *testing.T) {
	path := func(path ...string) watches.ReleaseText { return watches.ReleaseText{Path: path} }
	cluster := strings.Replace(definition+closed, "spec:\n", "spec:\n  scope: Cluster\n", 1)
	for name, test := range map[string]struct {
		chart      watches.Chart
		definition string
		want       []string
	}{
		"a kind with a namespace":      {watches.Chart{}, definition + closed, nil},
		"a kind without one":           {watches.Chart{}, cluster, []string{"watches.yaml:1 error chart-release"}},
		"which says a namespace":       {watches.Chart{ReleaseNamespace: watches.ReleaseText{Fixed: "a"}}, cluster, nil},
		"or a field":                   {watches.Chart{ReleaseNamespace: path("spec", "secretName")}, cluster, nil},
		"a slip":                       {watches.Chart{ReleaseName: path("spec", "nome")}, definition + closed, []string{"watches.yaml:1 error chart-release"}},
		"a number":                     {watches.Chart{ReleaseNamespace: path("spec", "count")}, definition + closed, []string{"watches.yaml:1 error chart-release"}},
		"the resource's own namespace": {watches.Chart{ReleaseName: path("metadata", "namespace")}, definition + closed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			watch.Content, watch.Chart = watches.Content{}, &test.chart
			p := project(t, watch, map[string]string{"watches.yaml": "", "config/crd.yaml": test.definition})
			p.kinds(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestAHookWithoutANameIsNamed(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"chart/templates/hook.yaml:3 error chart": {"chart/Chart.yaml": "name: chart\n", "chart/templates/hook.yaml": "kind: Job\nmetadata:\n  generateName: x-\n"},
		"watches.yaml:1 error chart":              {}, // Its text comes from elsewhere.
	} {
		watch := thing()
		files["watches.yaml"] = ""
		p := project(t, watch, files)
		w := &chartBackend{chart: &watches.Chart{Path: filepath.Join(p.options.Dir, "chart")}, loaded: &describe.Chart{}}
		for file, text := range files {
			w.loaded.Files = append(w.loaded.Files, describe.File{Name: strings.TrimPrefix(file, "chart/"), Data: []byte(text)})
		}
		w.hooks(p, []describe.Object{{Kind: "Job", Nameless: true, File: "templates/hook.yaml"}, {Kind: "Job"}}, source.Position{File: p.watchesFile, Line: 1, Column: 1})
		want(t, p, name)
	}
}

func TestDefinitionsOfKinds(t *testing.T) {
	replace := func(from, to string) string { return strings.Replace(definition+closed, from, to, 1) }
	for name, test := range map[string]struct {
		definition string
		watch      func(w *watches.Watch)
		want       []string
	}{
		"whose fields are of sops":         {replace("count:", "sopsAgeKey:"), func(*watches.Watch) {}, []string{"config/crd.yaml:17 error refused-name"}},
		"none":                             {"", func(*watches.Watch) {}, []string{"watches.yaml:1 info no-crd"}},
		"of another version":               {definition + closed, func(w *watches.Watch) { w.GVK.Version = "v2" }, []string{"watches.yaml:1 error crd"}},
		"not served":                       {replace("served: true", "served: false"), func(*watches.Watch) {}, []string{"watches.yaml:1 error crd"}},
		"without a status":                 {replace("subresources: {status: {}}", "storage: true"), func(*watches.Watch) {}, []string{"config/crd.yaml:7 warning crd"}},
		"whose status nobody writes":       {replace("subresources: {status: {}}", "storage: true"), func(w *watches.Watch) { w.ManageStatus = false }, nil},
		"without a default":                {replace("default: {observedGeneration: -1}, ", ""), func(*watches.Watch) {}, []string{"config/crd.yaml:7 info crd"}},
		"without conditions":               {replace("x-kubernetes-preserve-unknown-fields: true", "properties: {a: {type: string}}"), func(*watches.Watch) {}, []string{"config/crd.yaml:7 warning crd"}},
		"with conditions that say little":  {replace("x-kubernetes-preserve-unknown-fields: true", "properties: {conditions: {items: {properties: {type: {}, status: {}, reason: {}}}}}"), func(*watches.Watch) {}, []string{"config/crd.yaml:7 warning crd"}},
		"with conditions that may say all": {replace("x-kubernetes-preserve-unknown-fields: true", "properties: {conditions: {items: {x-kubernetes-preserve-unknown-fields: true, properties: {type: {}}}}}"), func(*watches.Watch) {}, nil},
		"with a field of Ansible's":        {replace("count:", "ansibleHost:"), func(*watches.Watch) {}, []string{"config/crd.yaml:17 error refused-name"}},
		"with a name that is taken":        {replace("count:", "hostvars:"), func(*watches.Watch) {}, []string{"config/crd.yaml:17 warning refused-name"}},
		"with two fields of a name":        {replace("count:", "secret_name:"), func(*watches.Watch) {}, []string{"config/crd.yaml:17 error refused-name"}},
		"twins further down":               {replace("count: {type: integer}", "db: {properties: {maxConn: {type: integer}, max_conn: {type: integer}}}"), func(*watches.Watch) {}, []string{"config/crd.yaml:17 error refused-name"}},
		"not like those of Ansible":        {replace("count:", "inventoryItems:"), func(*watches.Watch) {}, nil},
		"by an alias":                      {replace("count: {type: integer}", "count: &number {type: integer}\n                ansibleHost: *number"), func(*watches.Watch) {}, []string{"config/crd.yaml:18 error refused-name"}},
		"two fields, as they stand":        {replace("count:", "secret_name:"), func(w *watches.Watch) { w.SnakeCaseParameters = false }, nil},
		"whose text is no data":            {definition + closed, func(w *watches.Watch) { w.MarkUnsafe = false }, []string{"watches.yaml:1 warning mark-unsafe"}},
	} {
		t.Run(name, func(t *testing.T) {
			watch := thing()
			test.watch(&watch)
			p := project(t, watch, map[string]string{"watches.yaml": "[]\n", "config/crd.yaml": test.definition, "trees/community/sops/x": ""})
			p.trees = []string{filepath.Join(p.options.Dir, "trees")}
			p.kinds(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestRightsThatNoRoleGives(t *testing.T) {
	const tasks = "roles/r/tasks/main.yml"
	role := func(rules string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: m}\nrules:\n" +
			"- {apiGroups: [example.com], resources: [things, things/status], verbs: ['*']}\n" + rules
	}
	const events, maps = "- {apiGroups: [events.k8s.io], resources: [events], verbs: ['*']}\n", "- {apiGroups: [''], resources: [configmaps], verbs: ['*']}\n"
	object := "- kubernetes.core.k8s:\n    definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
	for name, test := range map[string]struct {
		rules, tasks string
		want         []string
	}{
		"all":                               {events + maps, object, nil},
		"for Events, which runs do without": {maps, object, []string{"watches.yaml:0 warning missing-right"}},
		"for an object":                     {events, object, []string{tasks + ":1 error missing-right"}},
		"for three objects of a kind, which is one rule": {events, object + object + object, []string{tasks + ":1 error missing-right"}},
		"for an Event that a task makes":                 {maps, "- kubernetes.core.k8s:\n    definition: {apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: a}}\n", []string{tasks + ":1 error missing-right", "watches.yaml:0 warning missing-right"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{tasks: test.tasks, "config/rbac/role.yaml": role(test.rules), "config/crd.yaml": definition + closed})
			p.grants()
			want(t, p, test.want...)
			for _, f := range p.findings {
				if strings.HasPrefix(test.tasks, object+object) && !strings.HasSuffix(f.Message, "; so do "+tasks+":3, "+tasks+":5") {
					t.Errorf("want the other places, got %q", f.Message)
				}
			}
		})
	}
}

func TestRightsForJobsAreNeededToo(t *testing.T) {
	watch := thing()
	watch.Job, watch.Line = &watches.Job{}, 3
	files := map[string]string{
		"config/crd.yaml": definition + closed, "config/rbac/kustomization.yaml": "resources:\n- role.yaml\n- more\n",
		"config/rbac/role.yaml":      "kind: ClusterRole\nmetadata: {name: m}\nrules:\n- {apiGroups: [example.com, events.k8s.io], resources: ['*'], verbs: ['*']}\n",
		"config/rbac/more/role.yaml": "kind: ClusterRole\nmetadata: {name: n}\nrules: []\n",
		"config/rbac/lost.yaml":      "kind: Role\nmetadata: {name: jobs}\nrules:\n- {apiGroups: [batch], resources: [jobs], verbs: ['*']}\n",
	}
	p := project(t, watch, files)
	p.grants()
	want(t, p, "config/rbac/lost.yaml:1 warning rbac", "watches.yaml:3 error missing-right")
	for _, f := range p.findings {
		if text := "create secrets, create tokenreviews.authentication.k8s.io, delete pods, get pods, get secrets, list events, list pods, watch pods"; f.ID == "missing-right" && !strings.Contains(f.Message, text) {
			t.Errorf("want %s, got %s", text, f.Message)
		}
	}
}

// TestAClusterIsAskedOnce: what several tasks need is one finding, and the manager's own rights are asked for in its namespace.
func TestAClusterIsAskedOnce(t *testing.T) {
	object := "- kubernetes.core.k8s:\n    definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
	watch := thing()
	watch.Job = &watches.Job{}
	p := project(t, watch, map[string]string{"roles/r/tasks/main.yml": object + object, "config/crd.yaml": definition + closed})
	account := fake.NewClientset()
	asked := map[string]bool{}
	account.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		a := review.Spec.ResourceAttributes
		asked[a.Verb+" "+a.Resource+" in "+a.Namespace] = true
		review.Status.Allowed = a.Resource != "configmaps"
		return true, review, nil
	})
	if err := p.mayDo(t.Context(), account, Cluster{Namespace: "own", Namespaces: []string{"shop"}}); err != nil {
		t.Fatal(err)
	}
	want(t, p, "roles/r/tasks/main.yml:1 error no-right")
	if message := p.findings[0].Message; !strings.HasSuffix(message, "; it is needed also at roles/r/tasks/main.yml:3") || !asked["create jobs in own"] || asked["create jobs in shop"] {
		t.Errorf("got %s, asked %v", message, asked)
	}
}

func TestWhatTheManagerWarnsOf(t *testing.T) {
	templates := thing()
	templates.Content, templates.Chart = watches.Content{}, &watches.Chart{AllTemplates: true}
	p := project(t, templates, map[string]string{"watches.yaml": "", "config/crd.yaml": definition + closed})
	p.kinds(p.Units[0])
	want(t, p, "watches.yaml:1 warning mark-unsafe")

	p = project(t, thing(), map[string]string{"watches.yaml": "- {group: a.b, version: v1, kind: C, role: r, vars: {x: \"${UNSET}\", y: \"${Z:-a}\"}}\n", "roles/r/tasks/main.yml": "[]\n"})
	p.loadWatches()
	want(t, p, "watches.yaml:1 info watches")
	if err := p.WatchFaults(); err != nil {
		t.Errorf("it is no fault: %v", err)
	}
}
