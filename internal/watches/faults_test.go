package watches

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// wantFaults compares the faults with want, one by one: "LINE" and fragments of the
// message, separated by " … ".
func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error %v is no Faults, want %q", err, want)
	}
	if len(faults) != len(want) {
		t.Errorf("%d faults, want %d:\n%v", len(faults), len(want), err)
	}
	for i := range min(len(faults), len(want)) {
		line, fragments, _ := strings.Cut(want[i], " ")
		if fmt.Sprint(faults[i].Line) != line {
			t.Errorf("fault %q is not on line %s", faults[i], line)
		}
		for fragment := range strings.SplitSeq(fragments, " … ") {
			if !strings.Contains(faults[i].Message, fragment) {
				t.Errorf("fault %q does not say %q", faults[i], fragment)
			}
		}
	}
}

func TestLoadFaultsOfTheFile(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"an empty file watches nothing":             {"", []string{`1 the file holds no watches … version`}},
		"comments alone watch nothing":              {"---\n# nothing yet\n", []string{`1 the file holds no watches`}},
		"a mapping is not a list":                   {"\nversion: v1\n", []string{`2 the file holds a mapping … a list of watches`}},
		"a text is not a list":                      {"watches\n", []string{`1 the file holds "watches"`}},
		"a second document would be forgotten":      {"- {version: v1, kind: K, role: mysql}\n---\n- {version: v1, kind: L, role: mysql}\n", []string{`3 second document … one list`}},
		"a tab does not indent":                     {"- version: v1\n\tkind: K\n", []string{`2 invalid YAML … tabs`}},
		"a bracket is not closed":                   {"- version: v1\n  kind: [K\n  role: r\n", []string{`2 invalid YAML`}},
		"an entry is indented too little":           {"- version: v1\n  kind: K\n role: x\n", []string{`3 invalid YAML`}},
		"a value holds a second colon":              {"- version: v1\n  kind: K: L\n", []string{`2 invalid YAML`}},
		"a quote is not closed":                     {"- version: v1\n  kind: 'K\n", []string{`2 invalid YAML`}},
		"an anchor is not defined":                  {"- version: v1\n  role: *nowhere\n", []string{`2 nowhere`}},
		"an entry is not a mapping":                 {"- mysql\n-\n- [a]\n", []string{`1 found "mysql"`, `2 found nothing`, `3 found a list`}},
		"an anchor must not contain itself":         {"- &a\n  version: v1\n  vars: {x: *a}\n", []string{`1 "a" contains itself`}},
		"a merge must not contain itself":           {"- &a\n  <<: *a\n", []string{`1 "a" contains itself`}},
		"only a mapping can be merged":              {"- <<: text\n  version: v1\n  kind: K\n  role: mysql\n", []string{`1 << merges "text"`}},
		"bytes that are no UTF-8 change on the way": {"- version: v1\n  kind: \"\xff\"\n", []string{`2 UTF-8`}},
		"no file needs a mebibyte":                  {strings.Repeat("# much\n", 200_000), []string{`0 larger than`}},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := load(t, operator(t), test.text)
			wantFaults(t, err, test.want...)
		})
	}
}

func TestAFaultLeavesTheOtherWatches(t *testing.T) {
	list, err := load(t, operator(t), `- {version: v1, kind: A, role: none}
- {version: v1, kind: B, role: mysql, colour: red}
- {version: v1, kind: c c, role: mysql}
- text
- {version: v1, kind: D, playbook: playbooks/site.yml, finalizer: {name: a.b/c, role: none}}
`)
	wantFaults(t, err, "1 was not found", "2 not a field", "3 kind", "4 a watch is a mapping", "5 was not found")
	var got []string
	for _, watch := range list {
		got = append(got, watch.GVK.Kind+" "+watch.Content.Role+filepath.Base(watch.Content.Playbook))
	}
	if diff := cmp.Diff([]string{"A .", "B mysql.", "D site.yml"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLoadWithoutAFile(t *testing.T) {
	search := operator(t)
	_, err := Load("./absent.yaml", search)
	wantFaults(t, err, "0 no such file at … "+filepath.Join(search.Dir, "absent.yaml"))
	if !errors.Is(err, ErrNoFile) {
		t.Error("it is not said that the file is not there")
	}
	if !strings.HasPrefix(err.Error(), "./absent.yaml: ") {
		t.Errorf("error %q does not start with the path as given", err)
	}
	_, err = Load("roles", search)
	wantFaults(t, err, "0 cannot be read")
	if errors.Is(err, ErrNoFile) || errors.Is(err, fs.ErrNotExist) || len(err.Error()) == 0 {
		t.Errorf("error %v", err)
	}
}

func TestLoadFaultsOfFields(t *testing.T) {
	for why, test := range map[string]struct {
		fields string // follow version, kind and role on lines 1 to 3
		want   []string
	}{
		"a field is misspelt":                          {"  reconcilePeriode: 1m\n", []string{`4 "reconcilePeriode" … "reconcilePeriod"`}},
		"a field is spelt as in Go":                    {"  ReconcilePeriod: 1m\n", []string{`4 "ReconcilePeriod" … "reconcilePeriod"`}},
		"a field is unknown":                           {"  colour: red\n", []string{`4 "colour" is not a field … blacklist, chart, confineToNamespace`}},
		"a field stands twice":                         {"  timeout: 1m\n  timeout: 2m\n", []string{`5 "timeout" … line 4`}},
		"a field's name is a number":                   {"  1: x\n", []string{`4 "1" … quotes`}},
		"health of what is not watched":                {"  watchDependentResources: false\n  health: true\n", []string{`5 health … watchDependentResources: false … remove one`}},
		"health that nobody writes":                    {"  manageStatus: false\n  health: true\n", []string{`5 health … manageStatus: false … remove one`}},
		"statusFrom of what is not watched":            {"  watchDependentResources: false\n  statusFrom: {a: {from: Pod/a, path: .a}}\n", []string{`5 statusFrom … watchDependentResources: false … remove one`}},
		"statusFrom that is no mapping":                {"  statusFrom: Pod/a\n", []string{`4 statusFrom … a mapping such as`}},
		"statusFrom without a name":                    {"  statusFrom: {a: {from: Pod, path: .a}}\n", []string{`4 statusFrom.a: from is "Pod" … Deployment/web`}},
		"statusFrom of any field":                      {"  statusFrom: {a: {from: Pod/a, path: .status.*}}\n", []string{`4 statusFrom.a: path is ".status.*" … .status.readyReplicas`}},
		"statusFrom with a group":                      {"  statusFrom: {a: {from: apps/Deployment/a, path: .a}}\n", []string{`4 statusFrom.a: from is "apps/Deployment/a" … Deployment/web`}},
		"statusFrom of a Secret":                       {"  statusFrom: {a: {from: Secret/a, path: .data.password}}\n", []string{`4 statusFrom.a … must not show fields of a Secret`}},
		"statusFrom without a path":                    {"  statusFrom: {a: {from: Pod/a, path: \".a[\"}}\n", []string{`4 statusFrom.a: path is ".a[" … .status.readyReplicas`}},
		"statusFrom for a field of the manager":        {"  statusFrom: {conditions: {from: Pod/a, path: .a}}\n", []string{`4 statusFrom.conditions … another name`}},
		"health with another grace":                    {"  health: {grace: soon}\n", []string{`4 grace … soon … a duration`}},
		"health that ignores no kind":                  {"  health: {ignore: [{name: a}]}\n", []string{`4 kind … PersistentVolumeClaim`}},
		"nobody writes Ready":                          {"  ready: nobody\n", []string{`4 ready … "nobody" … manager, content`}},
		"a truth value is quoted":                      {"  manageStatus: \"false\"\n", []string{`4 manageStatus … "false" … true or false`}},
		"a truth value is a number":                    {"  markUnsafe: 0\n", []string{`4 markUnsafe … "0" … true or false`}},
		"a truth value is absent":                      {"  snakeCaseParameters:\n", []string{`4 snakeCaseParameters … nothing … true or false`}},
		"a truth value is a list":                      {"  watchAnnotationsChanges: [true]\n", []string{`4 watchAnnotationsChanges … a list … true or false`}},
		"a duration has no unit":                       {"  reconcilePeriod: 10\n", []string{`4 reconcilePeriod … "10" … "10m"`}},
		"a duration is malformed":                      {"  timeout: 1 hour\n", []string{`4 timeout … "1 hour" … "8h"`}},
		"a duration is negative":                       {"  timeout: -1m\n", []string{`4 timeout … "-1m" … 0s or more`}},
		"a verbosity is too high":                      {"  verbosity: 8\n", []string{`4 verbosity … "8" … 0 to 7`}},
		"a verbosity is negative":                      {"  verbosity: -1\n", []string{`4 verbosity … "-1" … 0 to 7`}},
		"a number is a float":                          {"  maxRunnerArtifacts: 1.5\n", []string{`4 maxRunnerArtifacts … "1.5" … whole number`}},
		"a number is negative":                         {"  maxRunnerArtifacts: -1\n", []string{`4 maxRunnerArtifacts … "-1" … 0 or more`}},
		"a number is beyond reason":                    {"  maxRunnerArtifacts: 99999999999\n", []string{`4 maxRunnerArtifacts`}},
		"no reconcile at all is no concurrency":        {"  maxConcurrentReconciles: 0\n", []string{`4 maxConcurrentReconciles … "0" … 1 or more`}},
		"vars are a list":                              {"  vars: [a]\n", []string{`4 vars … a list … a mapping`}},
		"a key of vars is a number":                    {"  vars:\n    a: {1: x}\n", []string{`5 "1" … quotes`}},
		"a key of vars is a mapping":                   {"  vars:\n    ? {a: b}\n    : c\n", []string{`5 a mapping … quotes`}},
		"a key of vars stands twice":                   {"  vars:\n    a: 1\n    a: 2\n", []string{`6 "a" … line 5`}},
		"a number is infinite":                         {"  vars:\n    a: .inf\n    b: [.nan]\n", []string{`5 vars.a … finite`, `6 vars.b[0] … finite`}},
		"an integer is larger than JSON readers take":  {"  vars:\n    a: 18446744073709551615\n", []string{`5 vars.a … 64 bits`}},
		"a tag has no meaning here":                    {"  vars:\n    a: !vault x\n    b: !unsafe {c: d}\n    c: !!binary aGk=\n", []string{`5 vars.a … !vault`, `6 vars.b … !unsafe`, `7 vars.c … !!binary`}},
		"a tag does not fit its value":                 {"  vars:\n    a: !!int x\n", []string{`5 vars.a … integer`}},
		"vars nest too deep":                           {"  vars: {a: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}\n", []string{`4 deeper than 64`}},
		"a selector has a wrong operator":              {"  selector:\n    matchExpressions:\n    - {key: a, operator: in, values: [x]}\n", []string{`6 "in" … NotIn`}},
		"a selector lacks values":                      {"  selector:\n    matchExpressions:\n    - {key: a, operator: In}\n", []string{`6 matchExpressions`}},
		"a selector's label is malformed":              {"  selector:\n    matchLabels:\n      ok: fine\n      \"a b\": x\n", []string{`7 a b`}},
		"a selector's value is a number":               {"  selector:\n    matchLabels: {tier: 1}\n", []string{`5 matchLabels.tier … "1" … quotes`}},
		"a selector has an unknown field":              {"  selector: {matchLabel: {a: b}}\n", []string{`4 "matchLabel" … "matchLabels"`}},
		"a selector is a text":                         {"  selector: a=b\n", []string{`4 selector … "a=b" … matchExpressions, matchLabels`}},
		"a finalizer has no name":                      {"  finalizer: {vars: {a: b}}\n", []string{`4 finalizer's name is missing`}},
		"a finalizer's name is malformed":              {"  finalizer: {name: a b/c}\n", []string{`4 "a b/c" … example.com/finalizer`}},
		"a finalizer's name is Kubernetes' own":        {"  finalizer: {name: foregroundDeletion}\n", []string{`4 "foregroundDeletion" … own`}},
		"a finalizer's role is absent":                 {"  finalizer:\n    name: a/b\n    role: gone\n", []string{`6 "gone" was not found`}},
		"a finalizer has role and playbook":            {"  finalizer:\n    name: a/b\n    role: mysql\n    playbook: playbooks/site.yml\n", []string{`7 the finalizer has a role (line 6) and a playbook`}},
		"a finalizer is a text":                        {"  finalizer: a/b\n", []string{`4 finalizer … "a/b" … name, playbook, role, vars`}},
		"a finalizer has an unknown field":             {"  finalizer: {name: a/b, rol: mysql}\n", []string{`4 "rol" is not a field of a finalizer … "role"`}},
		"a kind of the blacklist has an unknown field": {"  blacklist: [{kindd: Pod}]\n", []string{`4 "kindd" is not a field of a kind … "kind"`, "4 kind is missing"}},
		"the blacklist names a group with its version": {"  blacklist: [{group: apps/v1, kind: Deployment}]\n", []string{`4 group: "apps/v1"`}},
		"a reference says nothing":                     {"  references: [{}]\n", []string{"4 version is missing", "4 name is missing … spec.passwordSecret", "4 kind is missing"}},
		"a reference has an unknown field":             {"  references:\n  - {version: v1, kind: Secret, name: spec.secret, nam: x}\n", []string{`5 "nam" is not a field of a reference … "name"`}},
		"a reference's name is not a path":             {"  references:\n  - {version: v1, kind: Secret, name: \"{{ spec.secret }}\"}\n", []string{`5 name: "{{ spec.secret }}" is not a path`}},
		"a reference's path has an empty field":        {"  references:\n  - {version: v1, kind: Secret, name: spec..secret}\n", []string{`5 name: "spec..secret" is not a path`}},
		"a reference's namespace is not a path":        {"  references:\n  - {version: v1, kind: Secret, name: a, namespace: \"b[0]\"}\n", []string{`5 namespace: "b[0]" is not a path`}},
		"status fields are not a list":                 {"  references:\n  - {version: v1, kind: Secret, name: a, statusFields: ready}\n", []string{`5 statusFields: found "ready"; write a list`}},
		"a status field is a path":                     {"  references:\n  - version: v1\n    kind: Secret\n    name: a\n    statusFields: [ready, a.b, \"c[*]\", \"\", 3]\n", []string{`8 statusFields: "a.b" is not a field … ready`, `8 statusFields: "c[*]" is not a field`, `8 statusFields: "" is not a field`, `8 statusFields: found "3"; write a text`}},
		"a reference is a text":                        {"  references: [spec.secret]\n", []string{`4 references … "spec.secret" … a mapping`}},
		"a list is a mapping":                          {"  blacklist: {a: b}\n", []string{`4 blacklist … a mapping … a list`}},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := one(t, test.fields)
			wantFaults(t, err, test.want...)
		})
	}
}

func TestLoadFaultsOfEntries(t *testing.T) {
	for why, test := range map[string]struct {
		text string
		want []string
	}{
		"an entry says nothing": {"- {}\n", []string{"1 version is missing … v1", "1 kind is missing", "1 no role and no playbook"}},
		"an entry's texts are of other types": {"- version: 1\n  kind: [K]\n  role: 5\n", []string{
			`1 version … "1" … quotes`, "2 kind … a list", `3 role … "5"`}},
		"an entry's texts are empty": {"- version: \"\"\n  kind: \"\"\n  playbook: \"\"\n", []string{
			"1 version is empty", "2 kind is empty", "3 playbook is empty"}},
		"group and version stand in one field": {"- version: a.example.com/v1\n  kind: K\n  role: mysql\n", []string{`1 version: "a.example.com/v1" … without the group`}},
		"a group is written with its kind":     {"- group: A.example.com\n  version: v1\n  kind: my kind\n  role: mysql\n", []string{`1 group: "A.example.com"`, `3 kind: "my kind"`}},
		"a watch has role and playbook": {"- {version: v1, kind: K}\n- version: v1\n  kind: L\n  role: mysql\n  playbook: playbooks/site.yml\n", []string{
			"1 no role and no playbook", "5 the watch has a role (line 4) and a playbook … keep one"}},
		"of role and playbook both are wrong": {"- version: v1\n  kind: L\n  role: a\n  playbook: b.yml\n", []string{
			`3 "a" was not found`, "4 a role (line 3) and a playbook", `4 "b.yml" was not found`}},
		"a playbook is a directory":        {"- {version: v1, kind: K, playbook: playbooks}\n", []string{"1 playbooks is not a file"}},
		"a role is an empty directory":     {"- {version: v1, kind: K, role: empty}\n", []string{"1 roles/empty holds no role … tasks/main.yml"}},
		"one kind is watched twice":        {"- {version: v1, kind: K, role: mysql}\n- {version: v1, kind: K, role: mysql}\n", []string{"2 kind K … line 1"}},
		"two versions share their objects": {"- {group: g.io, version: v1, kind: K, role: mysql}\n- {group: g.io, version: v2, kind: K, role: mysql}\n", []string{`2 K.g.io … line 1 … "v1" … every version`}},
	} {
		t.Run(why, func(t *testing.T) {
			search := operator(t)
			if err := os.MkdirAll(filepath.Join(search.Dir, "roles", "empty"), 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := load(t, search, test.text)
			wantFaults(t, err, test.want...)
		})
	}
}

func TestLoadSaysWhereItLooked(t *testing.T) {
	search := operator(t)
	search.RolesPath, search.CollectionsPath = []string{"/opt/roles"}, []string{"/usr/share/ansible/collections"}
	_, err := load(t, search, "- {version: v1, kind: K, role: ns.coll.gone}\n- {version: v1, kind: L, playbook: gone.yml}\n")
	wantFaults(t, err,
		"1 /usr/share/ansible/collections/ansible_collections/ns/coll/roles/gone … /opt/roles/ns.coll.gone … /opt/roles/roles/ns.coll.gone … "+
			filepath.Join(search.Dir, "roles/ns.coll.gone")+" … ANSIBLE_ROLES_PATH",
		"2 "+filepath.Join(search.Dir, "gone.yml"))
}

// What is looked for has nearly the name of something that is there.
func TestLoadSaysWhatMayBeMeant(t *testing.T) {
	search := operator(t)
	search.CollectionsPath = []string{"collections"}
	scratch.Write(t, search.Dir, map[string]string{
		"roles/mysqlcluster/tasks/main.yml": "", "playbooks/backup.yml": "", "charts/memcached/Chart.yaml": "",
		"collections/ansible_collections/my/own/roles/server/tasks/main.yml": "",
	})
	for entry, want := range map[string]string{
		"role: mysqlclustr":             `; did you mean "mysqlcluster"?`,
		"role: my.own.servr":            `; did you mean "my.own.server"?`,
		"playbook: playbooks/bakup.yml": `; did you mean "playbooks/backup.yml"?`,
		"chart: charts/memcache":        `; did you mean "charts/memcached"?`,
		"role: quite-another":           "set ANSIBLE_ROLES_PATH",
	} {
		_, err := load(t, search, "- {version: v1, kind: K, "+entry+"}\n")
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s at its end", entry, err, want)
		}
	}
}

func TestLoadNamesEachPlaceOnce(t *testing.T) {
	search := operator(t)
	search.RolesPath = []string{"roles", filepath.Join(search.Dir, "roles")}
	_, err := load(t, search, "- {version: v1, kind: K, role: nowhere}\n")
	place := filepath.Join(search.Dir, "roles", "nowhere")
	if err == nil || strings.Count(err.Error(), place+",")+strings.Count(err.Error(), place+";") != 1 {
		t.Errorf("want %s named once, got %v", place, err)
	}
}

func TestLoadReportsAllFaultsAtOnceInOrder(t *testing.T) {
	_, err := load(t, operator(t), `- version: v1
  kind: K
  rolle: mysql
  vars: {a: .nan}
- version: v1
  kind: L
  role: mysql
  timeout: soon
  timeout: later
- kind: L
  role: mysql
`)
	wantFaults(t, err, "1 no role and no playbook", `3 "rolle"`, "4 vars.a", "8 timeout", "9 timeout", "10 version is missing")
	for i, line := range strings.Split(err.Error(), "\n") {
		if want := fmt.Sprintf("watches.yaml:%d: ", []int{1, 3, 4, 8, 9, 10}[i]); !strings.HasPrefix(line, want) {
			t.Errorf("line %q does not start with %q", line, want)
		}
	}
}

func TestLoadBoundsAliases(t *testing.T) {
	var text strings.Builder
	text.WriteString("- version: v1\n  kind: K\n  role: mysql\n  vars:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&text, "    a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	_, err := load(t, operator(t), text.String())
	wantFaults(t, err, "5 100000 values … aliases")
}

func TestLoadDoesNotRepeatTheEnvironment(t *testing.T) {
	search := operator(t)
	search.LookupEnv = func(string) (string, bool) { return "hunter2 or what", true }
	_, err := load(t, search, "- version: v1\n  kind: K\n  role: mysql\n  timeout: ${PASSWORD}\n  manageStatus: ${PASSWORD}\n  verbosity: ${PASSWORD}\n")
	wantFaults(t, err, `4 "${PASSWORD}"`, `5 "${PASSWORD}"`, `6 "${PASSWORD}"`)
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows a value of the environment: %v", err)
	}
}
