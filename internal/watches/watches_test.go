package watches

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// operator makes an operator's directory with a role, a finalizer's role and a playbook.
func operator(tb testing.TB) Search {
	tb.Helper()
	dir := tb.TempDir()
	for _, path := range []string{"roles/mysql/tasks/main.yml", "roles/mysql_finalizer/tasks/main.yml", "playbooks/site.yml"} {
		write(tb, filepath.Join(dir, path), "[]\n")
	}
	return Search{Dir: dir}
}

func write(tb testing.TB, path, text string) {
	tb.Helper()
	scratch.Write(tb, filepath.Dir(path), map[string]string{filepath.Base(path): text})
}

// load reads the text as the operator's watches.yaml.
func load(tb testing.TB, search Search, text string) ([]Watch, error) {
	tb.Helper()
	write(tb, filepath.Join(search.Dir, "watches.yaml"), text)
	return Load("watches.yaml", search)
}

func mustLoad(tb testing.TB, search Search, text string) []Watch {
	tb.Helper()
	watches, err := load(tb, search, text)
	if err != nil {
		tb.Fatalf("Load: %v", err)
	}
	return watches
}

// one loads a watches.yaml with one entry: a kind, a role and the fields.
func one(t *testing.T, fields string) (Watch, error) {
	t.Helper()
	watches, err := load(t, operator(t), "- version: v1\n  kind: K\n  role: mysql\n"+fields)
	if len(watches) != 1 {
		return Watch{}, err
	}
	return watches[0], err
}

var byText = cmp.Comparer(func(a, b labels.Selector) bool { return a.String() == b.String() })

func TestLoadEveryField(t *testing.T) {
	search := operator(t)
	got := mustLoad(t, search, `---
# A comment does not count.
- group: myapp.example.com
  version: v1alpha1
  kind: MySQLCluster
  role: mysql
  vars: {port: 3306, nested: {list: [a, 1.5, true, null]}}
  finalizer:
    name: myapp.example.com/finalizer
    role: mysql_finalizer
    vars: {gone: true}
  reconcilePeriod: 10m
  ready: content
  manageStatus: false
  watchDependentResources: false
  watchClusterScopedResources: true
  watchAnnotationsChanges: true
  snakeCaseParameters: false
  markUnsafe: false
  selector:
    matchLabels: {tier: db}
    matchExpressions:
    - {key: env, operator: In, values: [prod, test]}
  references:
  - {version: v1, kind: Secret, name: spec.passwordSecret}
  - {group: a.example.com, version: v1beta1, kind: Account, name: "spec.users[*].account", namespace: spec.home, statusFields: [ready, url]}
  confineToNamespace: true
  serviceAccountName: deployer
  serviceAccountNamePath: spec.deploy.account
  blacklist:
  - {version: v1, kind: Pod}
  - {group: apps, kind: ReplicaSet}
  maxRunnerArtifacts: 0
  timeout: 0s
  maxConcurrentReconciles: 4
  verbosity: 0
  warm: false
  executor: job
  job:
    podTemplate: {metadata: {labels: {team: db}}, spec: {containers: [{name: manager, resources: {limits: {memory: 8Gi}}}], nodeSelector: null}}
    labels: {kueue.x-k8s.io/queue-name: nightly}
    annotations: {example.com/ticket: "7"}
- version: v1
  kind: Secret
  playbook: playbooks/site.yml
  statusFrom: {readyReplicas: {from: "Deployment/{name}-web", path: .status.readyReplicas}}
  health: {grace: 1m, ignore: [{kind: PersistentVolumeClaim}, {kind: Job, name: once}]}
`)
	zero := 0
	selector, _ := labels.Parse("tier=db,env in (prod,test)")
	role := func(name string) Content { return Content{Role: name, RolesPath: filepath.Join(search.Dir, "roles")} }
	want := []Watch{{
		GVK:     schema.GroupVersionKind{Group: "myapp.example.com", Version: "v1alpha1", Kind: "MySQLCluster"},
		Line:    3,
		Content: role("mysql"),
		Vars:    map[string]any{"port": int64(3306), "nested": map[string]any{"list": []any{"a", 1.5, true, nil}}},
		Finalizer: &Finalizer{
			Name: "myapp.example.com/finalizer", Content: role("mysql_finalizer"), Vars: map[string]any{"gone": true},
		},
		Ready:                       "content",
		ReconcilePeriod:             10 * time.Minute,
		WatchClusterScopedResources: true,
		Blacklist:                   []schema.GroupKind{{Kind: "Pod"}, {Group: "apps", Kind: "ReplicaSet"}},
		References: []Reference{
			{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Name: Path{"spec", "passwordSecret"}},
			{
				GVK:  schema.GroupVersionKind{Group: "a.example.com", Version: "v1beta1", Kind: "Account"},
				Name: Path{"spec", "users", EachElement, "account"}, Namespace: Path{"spec", "home"},
				StatusFields: []string{"ready", "url"},
			},
		},
		WatchAnnotationsChanges: true,
		ConfineToNamespace:      true,
		ServiceAccount:          ServiceAccount{Name: "deployer", Path: Path{"spec", "deploy", "account"}},
		Selector:                selector,
		MaxConcurrentReconciles: 4,
		Verbosity:               &zero,
		Job: &Job{
			PodTemplate: map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"team": "db"}},
				"spec": map[string]any{
					"containers":   []any{map[string]any{"name": "manager", "resources": map[string]any{"limits": map[string]any{"memory": "8Gi"}}}},
					"nodeSelector": nil,
				},
			},
			Labels:      map[string]string{"kueue.x-k8s.io/queue-name": "nightly"},
			Annotations: map[string]string{"example.com/ticket": "7"},
		},
	}, {
		GVK:                     schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Line:                    43,
		StatusFrom:              map[string]ChildField{"readyReplicas": {Kind: "Deployment", Name: "{name}-web", Path: "{.status.readyReplicas}"}},
		Health:                  &Health{Grace: time.Minute, Ignore: []KindName{{Kind: "PersistentVolumeClaim"}, {Kind: "Job", Name: "once"}}},
		Content:                 Content{Playbook: filepath.Join(search.Dir, "playbooks/site.yml")},
		ManageStatus:            true,
		WatchDependentResources: true,
		SnakeCaseParameters:     true,
		MarkUnsafe:              true,
		Warm:                    true,
		Selector:                labels.Everything(),
		MaxRunnerArtifacts:      20,
		Timeout:                 time.Hour,
	}}
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Error(diff)
	}
}

func TestLoadFinalizerWithTheWatchsContent(t *testing.T) {
	got, err := one(t, "  finalizer: {name: example.com/f, vars: {state: absent}}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := &Finalizer{Name: "example.com/f", Content: got.Content, Vars: map[string]any{"state": "absent"}}
	if diff := cmp.Diff(want, got.Finalizer); diff != "" || got.Content.Role != "mysql" {
		t.Error(diff)
	}
}

func TestLoadSelectors(t *testing.T) {
	for why, test := range map[string]struct{ text, want string }{
		"an empty selector selects everything":     {"{}", ""},
		"labels are all required":                  {"{matchLabels: {a: x, b: y}}", "a=x,b=y"},
		"an expression may need no values":         {"{matchExpressions: [{key: a, operator: Exists}]}", "a"},
		"an expression may exclude":                {"{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", "a notin (x)"},
		"no labels and no expressions is no limit": {"{matchLabels: {}, matchExpressions: []}", ""},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := one(t, "  selector: "+test.text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if got.Selector.String() != test.want {
				t.Errorf("selector %q, want %q", got.Selector, test.want)
			}
		})
	}
}

func TestLoadValuesOfVars(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want any
	}{
		"a template stays a text":                     {`"{{ other | default(1) }}"`, "{{ other | default(1) }}"},
		"a date stays a text, since JSON has none":    {"2024-01-02", "2024-01-02"},
		"a time stays a text":                         {"2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"},
		"a quoted number is a text":                   {`"1"`, "1"},
		"a hexadecimal number is a number":            {"0x1f", int64(31)},
		"the largest integer is exact":                {"9223372036854775807", int64(9223372036854775807)},
		"a float that is whole stays a float":         {"8.0", 8.0},
		"yes is a text where no truth value is asked": {"yes", "yes"},
		"nothing is null":                             {"", nil},
		"a block keeps its lines":                     {"|\n      a\n      b\n", "a\nb\n"},
		"a tag may say what is a text anyway":         {"!!str 1", "1"},
		"an empty mapping is a mapping":               {"{}", map[string]any{}},
		"an empty list is a list":                     {"[]", []any{}},
		"a mapping that is an alias is copied":        {"{a: &x {k: 1}, b: *x}", map[string]any{"a": map[string]any{"k": int64(1)}, "b": map[string]any{"k": int64(1)}}},
		"what a mapping says itself is stronger":      {"{a: &x {k: 1, l: 1}, b: {<<: *x, k: 2}}", map[string]any{"a": map[string]any{"k": int64(1), "l": int64(1)}, "b": map[string]any{"k": int64(2), "l": int64(1)}}},
		"of several merged the first is stronger":     {"{b: {<<: [{k: 1}, {k: 2, l: 2}]}}", map[string]any{"b": map[string]any{"k": int64(1), "l": int64(2)}}},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := one(t, "  vars:\n    v: "+test.text+"\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"v": test.want}, got.Vars); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoadMergesEntries(t *testing.T) {
	got := mustLoad(t, operator(t), `
- &base
  version: v1
  kind: A
  role: mysql
  reconcilePeriod: 1m
- <<: *base
  kind: B
  reconcilePeriod: 2m
`)
	if len(got) != 2 || got[1].GVK.Kind != "B" || got[1].Content.Role != "mysql" || got[1].ReconcilePeriod != 2*time.Minute {
		t.Errorf("watches %+v", got)
	}
}

func TestLoadReplacesVariables(t *testing.T) {
	environment := map[string]string{
		"KIND": "Widget", "PORT": "3306", "YES": "true", "EMPTY": "", "STRUCTURE": "{a: 1}\nrole: other", "MERGE": "<<",
		"lower": "l", "ROLE": "mysql",
	}
	search := operator(t)
	search.LookupEnv = func(name string) (string, bool) { value, ok := environment[name]; return value, ok }
	var unset []string
	search.OnUnset = func(name string, line int) { unset = append(unset, fmt.Sprintf("%s on line %d", name, line)) }
	got := mustLoad(t, search, `
- version: v1
  kind: ${KIND}
  role: ${ROLE}
  manageStatus: ${YES}
  group: ${EMPTY}
  vars:
    number: ${PORT}
    text: "${PORT}"
    tagged: !!str ${PORT}
    within: p-${PORT}-${lower}
    unset: ${UNSET}
    mixed: ${UNSET}-${PORT}
    dollar: $PORT $${PORT} ${} ${1A} $
    structure: ${STRUCTURE}
    merge: ${MERGE}
    ${PORT}: a key stays as it is
    empty: ${EMPTY}
    default: ${UNSET:-3307}
    nothing: ${EMPTY:-it is empty}
    set: "${PORT:-1}"
    none: ${UNSET:-}
`)
	want := map[string]any{
		"number": int64(3306), "text": "3306", "tagged": "3306", "within": "p-3306-l", "unset": "${UNSET}",
		"mixed": "${UNSET}-3306", "dollar": "$PORT $3306 ${} ${1A} $", "structure": "{a: 1}\nrole: other",
		"merge": "<<", "${PORT}": "a key stays as it is", "empty": "",
		"default": int64(3307), "nothing": "it is empty", "set": "3306", "none": "",
	}
	if diff := cmp.Diff(want, got[0].Vars); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"UNSET on line 12", "UNSET on line 13"}, unset); diff != "" {
		t.Error(diff)
	}
	if got[0].GVK != (schema.GroupVersionKind{Version: "v1", Kind: "Widget"}) || got[0].Content.Role != "mysql" {
		t.Errorf("watch %+v", got[0])
	}
}

func TestLoadTruthValues(t *testing.T) {
	for _, text := range []string{"false", "no", "off", "False", "&anchor false"} {
		if got, err := one(t, "  manageStatus: "+text+"\n"); err != nil || got.ManageStatus {
			t.Errorf("manageStatus: %s is %v, %v", text, got.ManageStatus, err)
		}
	}
}

func TestLoadRolesInTheOrderOfTheSearch(t *testing.T) {
	dir := t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	search := Search{
		Dir:             path("op"),
		RolesPath:       []string{path("first"), "second"},
		CollectionsPath: []string{path("none"), path("coll"), path("python", "ansible_collections")},
	}
	for _, role := range []string{
		path("abs", "r"), path("first", "both"), path("first", "roles", "both"), path("first", "roles", "below"),
		path("op", "second", "relative"), path("op", "roles", "own"), path("op", "roles", "both"),
		path("coll", "ansible_collections", "ns", "c", "roles", "r"), path("python", "ansible_collections", "ns", "p", "roles", "r"),
		path("first", "ns.c.r"), path("first", "no.such.collection"),
	} {
		write(t, filepath.Join(role, "tasks", "main.yml"), "[]\n")
	}
	write(t, path("op", "roles", "depends", "meta", "main.yaml"), "{}\n")
	for why, test := range map[string]struct {
		role string
		want Content
	}{
		"an absolute path needs no search":               {path("abs", "r"), Content{Role: "r", RolesPath: path("abs")}},
		"a trailing slash is no part of a name":          {path("abs", "r") + "/", Content{Role: "r", RolesPath: path("abs")}},
		"a role of a collection comes before a path":     {"ns.c.r", Content{Role: "ns.c.r"}},
		"a path may be the collections' directory":       {"ns.p.r", Content{Role: "ns.p.r"}},
		"a dotted name may be a directory's after all":   {"no.such.collection", Content{Role: "no.such.collection", RolesPath: path("first")}},
		"a roles path comes before its roles folder":     {"both", Content{Role: "both", RolesPath: path("first")}},
		"a roles path may hold a roles folder":           {"below", Content{Role: "below", RolesPath: path("first", "roles")}},
		"a relative roles path starts at the operator's": {"relative", Content{Role: "relative", RolesPath: path("op", "second")}},
		"the operator's own roles come last":             {"own", Content{Role: "own", RolesPath: path("op", "roles")}},
		"a role may only depend on others":               {"depends", Content{Role: "depends", RolesPath: path("op", "roles")}},
	} {
		t.Run(why, func(t *testing.T) {
			got := mustLoad(t, search, "- {version: v1, kind: K, role: "+test.role+"}\n")
			if diff := cmp.Diff(test.want, got[0].Content); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoadAnAbsoluteFile(t *testing.T) {
	search := operator(t)
	path := filepath.Join(search.Dir, "other", "my-watches.yaml")
	write(t, path, "- {version: v1, kind: K, playbook: playbooks/site.yml}\n- {version: 1}\n")
	_, err := Load(path, search)
	var faults Faults
	if !errors.As(err, &faults) || faults[0].File != path {
		t.Fatalf("faults %v do not name %s", err, path)
	}
}

func TestKindsOnlyNeedsNoContent(t *testing.T) {
	search := operator(t)
	search.KindsOnly = true
	got := mustLoad(t, search, "- {version: v1, kind: K, role: none.such.role, finalizer: {name: a.example/f, playbook: none.yml}}\n")
	if len(got) != 1 || got[0].GVK.Kind != "K" || got[0].Finalizer == nil || got[0].Finalizer.Name != "a.example/f" {
		t.Errorf("got %+v", got)
	}
}
