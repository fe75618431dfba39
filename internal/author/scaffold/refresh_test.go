package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const clusterDefinition = "config/crd/bases/myapp.myorg.tld_mysqlclusters.yaml"

// again writes the definition of the role's kind again, after its options have become these.
func again(t *testing.T, dir, options string) (notes string) {
	t.Helper()
	scratch.Write(t, dir, map[string]string{"roles/mysqlcluster/meta/argument_specs.yml": "argument_specs:\n  main:\n    options: " + options + "\n"})
	k := cluster()
	k.GenerateRole, k.DefinitionOnly = false, true
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	return strings.Join(plan.Notes, "\n")
}

func generatedProject(t *testing.T) string {
	t.Helper()
	dir := newProject(t)
	plan, err := CreateAPI(dir, cluster())
	written(t, plan, err)
	return dir
}

func edited(t *testing.T, dir, path, from, to string) {
	t.Helper()
	text := read(t, dir, path)
	if !strings.Contains(text, from) {
		t.Fatalf("%s has not %q:\n%s", path, from, text)
	}
	scratch.Write(t, dir, map[string]string{path: strings.Replace(text, from, to, 1)})
}

// TestWhatFollowsFromNewOptions: the sample would be refused, the role would fail in Molecule.
func TestWhatFollowsFromNewOptions(t *testing.T) {
	dir := generatedProject(t)
	edited(t, dir, "config/samples/myapp_v1_mysqlcluster.yaml", "  message: Hello\n", "  # Ours.\n  message: Hi # Why.\n# The end.\n")
	edited(t, dir, "molecule/default/converge.yml", "    - role: mysqlcluster", "    # Ours.\n    - role: mysqlcluster")
	notes := again(t, dir, "{message: {default: Hello, description: The text.}, host_name: {required: true}, size: {type: int, default: 3}, note: {type: str}, words: {type: list, default: [a]}}")
	for path, want := range map[string]string{
		"config/samples/myapp_v1_mysqlcluster.yaml": "spec:\n  # Ours.\n  message: Hi # Why.\n  hostName: change-me\n  size: 3\n  words: [a]\n# The end.\n",
		"roles/mysqlcluster/defaults/main.yml":      "message: Hello # noqa: var-naming[no-role-prefix]\nsize: 3 # noqa: var-naming[no-role-prefix]\nwords: [a] # noqa: var-naming[no-role-prefix]\n",
		"molecule/default/converge.yml":             "      namespace: ensign-molecule\n    host_name: change-me\n  roles:\n    # Ours.\n    - role: mysqlcluster\n",
		clusterDefinition:                           "          required: [spec]\n          properties:\n            apiVersion:\n",
	} {
		if got := read(t, dir, path); !strings.Contains(got, want) {
			t.Errorf("%s: want\n%s\nin\n%s", path, want, got)
		}
	}
	if notes != "" {
		t.Errorf("everything fits, got the notes\n%s", notes)
	}
	before := map[string]string{}
	for _, path := range []string{"config/samples/myapp_v1_mysqlcluster.yaml", "roles/mysqlcluster/defaults/main.yml", "molecule/default/converge.yml", clusterDefinition} {
		before[path] = read(t, dir, path)
	}
	k := cluster()
	k.GenerateRole, k.DefinitionOnly = false, true
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	if len(plan.files) > 0 {
		t.Errorf("nothing has changed since, but %d files are written", len(plan.files))
	}
	for path, text := range before {
		if diff := cmp.Diff(text, read(t, dir, path)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", path, diff)
		}
	}
	again(t, dir, "{message: {default: Hello}}")
	if got := read(t, dir, clusterDefinition); strings.Contains(got, "required: [spec]") {
		t.Errorf("nothing of the spec is required any more:\n%s", got)
	}
}

// TestWhatNoLongerFitsIsNamed: it is a person's, and so not overwritten.
func TestWhatNoLongerFitsIsNamed(t *testing.T) {
	dir := generatedProject(t)
	again(t, dir, "{message: {default: Hello}, mode: {choices: [a, b], default: a}, size: {type: int, default: 3}, users: {type: list, elements: dict, options: {name: {required: true}}}, host: {required: true}}")
	edited(t, dir, "config/samples/myapp_v1_mysqlcluster.yaml", "  mode: a\n", "  mode: a\n  users:\n    - name: x\n    - {old: 1}\n")
	edited(t, dir, "roles/mysqlcluster/defaults/main.yml", "size: 3", "size: 4")
	sample, defaults := read(t, dir, "config/samples/myapp_v1_mysqlcluster.yaml"), read(t, dir, "roles/mysqlcluster/defaults/main.yml")
	notes := again(t, dir, "{mode: {choices: [b, c], default: b}, size: {type: str, default: \"3\"}, users: {type: list, elements: dict, options: {name: {required: true}}}}")
	for _, want := range []string{
		"config/samples/myapp_v1_mysqlcluster.yaml:7: the CRD has no field spec.message",
		`config/samples/myapp_v1_mysqlcluster.yaml:8: spec.mode: Unsupported value: "a": supported values: "b", "c"`,
		"config/samples/myapp_v1_mysqlcluster.yaml:11: the CRD has no field spec.users[1].old",
		"config/samples/myapp_v1_mysqlcluster.yaml:11: spec.users[1].name: Required value",
		"config/samples/myapp_v1_mysqlcluster.yaml:12: spec.size: Invalid value",
		"roles/mysqlcluster/defaults/main.yml:4: message is no longer an option",
		"roles/mysqlcluster/defaults/main.yml:5: the default of mode is a here, and b in the argument specs",
		"roles/mysqlcluster/defaults/main.yml:6: the default of size is 4 here, and \"3\" in the argument specs",
		"the play of host is no longer an option",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("want the note %q in\n%s", want, notes)
		}
	}
	if diff := cmp.Diff(sample+defaults, read(t, dir, "config/samples/myapp_v1_mysqlcluster.yaml")+read(t, dir, "roles/mysqlcluster/defaults/main.yml")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestADefinitionKeepsWhatAPersonAdded: argument specs can't say it.
func TestADefinitionKeepsWhatAPersonAdded(t *testing.T) {
	dir := generatedProject(t)
	edited(t, dir, clusterDefinition, "                message:\n                  type: string\n", "                message:\n                  type: string\n                  maxLength: 20\n")
	edited(t, dir, clusterDefinition, "        - name: Age\n", "        # Ours.\n        - name: Text\n          type: string\n          jsonPath: .spec.message\n        - name: Age\n")
	notes := again(t, dir, "{message: {default: Hi}, size: {type: int}}")
	got := read(t, dir, clusterDefinition)
	for _, want := range []string{"        # Ours.\n        - name: Text\n", "                  maxLength: 20\n", "                  default: Hi\n", "                size:\n                  type: integer\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	if !strings.Contains(notes, "kept, because somebody added it there: spec.message: maxLength") {
		t.Errorf("got the notes\n%s", notes)
	}
	scratch.Write(t, dir, map[string]string{clusterDefinition: "kind: CustomResourceDefinition\nspec: {versions: [{name: v2}]}\n"})
	k := cluster()
	k.GenerateRole, k.DefinitionOnly = false, true
	if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), clusterDefinition+":1: the version v1 has no schema of a spec: restore it") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, clusterDefinition)); err != nil {
		t.Fatal(err)
	}
	plan, err := CreateAPI(dir, k)
	written(t, plan, err)
	if !strings.Contains(read(t, dir, clusterDefinition), "default: Hi") {
		t.Error("a definition that was moved away is not written")
	}
}

// TestADefinitionThatNothingDescribesIsNotLost: --crd-only wrote one that takes anything.
func TestADefinitionThatNothingDescribesIsNotLost(t *testing.T) {
	dir := newProject(t)
	backup := Kind{Group: "myapp", Version: "v1", Kind: "Backup", GeneratePlaybook: true, Namespaced: true}
	plan, err := CreateAPI(dir, backup)
	written(t, plan, err)
	backup.GeneratePlaybook, backup.DefinitionOnly = false, true
	if _, err := CreateAPI(dir, backup); err == nil || !strings.Contains(err.Error(), "a playbook does not describe the spec of Backup: edit the schema in config/crd/bases/myapp.myorg.tld_backups.yaml") {
		t.Errorf("got %v", err)
	}
	plan, err = CreateAPI(dir, cluster())
	written(t, plan, err)
	if err := os.Remove(filepath.Join(dir, "roles/mysqlcluster/meta/argument_specs.yml")); err != nil {
		t.Fatal(err)
	}
	k := cluster()
	k.GenerateRole, k.DefinitionOnly = false, true
	if _, err := CreateAPI(dir, k); err == nil || !strings.Contains(err.Error(), "write roles/mysqlcluster/meta/argument_specs.yml") {
		t.Errorf("got %v", err)
	}
}

// TestADefinitionOfAChartIsWrittenAgain: the chart is the one of watches.yaml.
func TestADefinitionOfAChartIsWrittenAgain(t *testing.T) {
	dir := newProject(t)
	plan, err := CreateAPI(dir, chartKind(web(t, nil)))
	written(t, plan, err)
	scratch.Write(t, dir, map[string]string{"charts/web/values.schema.json": `{"type": "object", "required": ["host"], "additionalProperties": false, "properties": {"host": {"type": "string"}}}`})
	k := chartKind("")
	k.DefinitionOnly = true
	plan, err = CreateAPI(dir, k)
	written(t, plan, err)
	if got := read(t, dir, "config/crd/bases/apps.myorg.tld_webs.yaml"); !strings.Contains(got, "                host:\n                  type: string\n") || strings.Contains(got, "replicas") {
		t.Errorf("got\n%s", got)
	}
	notes := strings.Join(plan.Notes, "\n")
	for _, want := range []string{"apps_v1_web.yaml:8: the CRD has no field spec.replicas", "spec.host: Required value"} {
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in\n%s", want, notes)
		}
	}
}

func TestKeysAreAddedToAMapping(t *testing.T) {
	for text, want := range map[string]string{
		"spec: {}\n":                              "spec:\n  a: 1\n  b: 2\n",
		"spec: {} # None.\nx: 1\n":                "spec: # None.\n  a: 1\n  b: 2\nx: 1\n",
		"spec:\n    c:\n    - d\n# End.\n":        "spec:\n    c:\n    - d\n    a: 1\n    b: 2\n# End.\n",
		"spec:\n  c: |\n    one\n\n    two\nx:\n": "spec:\n  c: |\n    one\n\n    two\n  a: 1\n  b: 2\nx:\n",
		"spec: {c: 1}\n":                          "",
	} {
		dir := t.TempDir()
		scratch.Write(t, dir, map[string]string{"sample.yaml": text})
		f := follower{Kind: &Kind{}, plan: &Plan{dir: dir}}
		one := func(name, kind, value string) option {
			o := option{name: name, key: name, kind: kind, fallback: nil, required: true}
			o.choices = append(o.choices, valueNode(t, value))
			return o
		}
		f.options = []option{one("a", "int", "1"), one("b", "int", "2")}
		f.sample("sample.yaml")
		switch {
		case want == "" && (len(f.plan.files) > 0 || !strings.Contains(strings.Join(f.plan.Notes, ""), "sample.yaml:1: add this by hand")):
			t.Errorf("%s: want a note, got %q", text, f.plan.Notes)
		case want != "" && (len(f.plan.files) != 1 || string(f.plan.files[0].content) != want):
			t.Errorf("%s: want\n%s\ngot %+v, %q", text, want, f.plan.files, f.plan.Notes)
		}
	}
}
