// Package check tries internal/author/check on projects with the real Ansible.
package check

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/check"
	"github.com/ensign-operator/ensign/internal/author/report"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

var wanted = regexp.MustCompile(`# want(-next)? ([a-z -]+)$`)

// options are those of a project, with the Python environment of the tests' PATH.
func options(t *testing.T, dir string) config.Options {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := config.NewEnvironment(os.Environ())
	delete(env, "ANSIBLE_ROLES_PATH")
	o := config.Options{WatchesFile: "watches.yaml", Env: env}
	o.Dir = dir
	return o
}

func TestEachPlantedFaultIsFoundAndNothingElse(t *testing.T) {
	o := options(t, "testdata/faults")
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range r.Relative(o.Dir).Findings {
		got[fmt.Sprintf("%s:%d %s", f.File, f.Line, f.ID)] = true
		if f.Message == "" || f.Why == "" || f.Remedy == "" || f.Severity == "" {
			t.Errorf("want message, why and remedy of %+v", f)
		}
	}
	want := planted(t, o.Dir)
	want["roles/db/tasks/two.yml:3 syntax"] = true // No comment can stand where YAML is broken.
	if len(want) < 40 {
		t.Errorf("only %d faults are planted", len(want))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("findings (-planted +found):\n%s", diff)
	}
	if len(r.Silenced) != 1 || r.Silenced[0].Reason != "the field is checked by a webhook" {
		t.Errorf("got the silenced findings %+v", r.Silenced)
	}
}

// planted returns FILE:LINE ID for each comment "# want ID".
func planted(t *testing.T, dir string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		for n, line := range strings.Split(string(text), "\n") {
			match := wanted.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			at := n + 1
			if match[1] != "" {
				at++
			}
			for id := range strings.FieldsSeq(match[2]) {
				all[fmt.Sprintf("%s:%d %s", name, at, id)] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAFaultyWatchStopsNobodyFromCheckingTheRest(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"watches.yaml": `- {group: example.com, version: v1, kind: A, role: none}
- {group: example.com, version: v1, kind: B, role: b, colour: red}
- {group: example.com, version: v1, kind: C, role: b, finalizer: {name: example.com/c, role: none}}
`,
		"roles/b/tasks/main.yml": "- nosuchmodule: {}\n",
	})
	o := options(t, dir)
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range r.Relative(o.Dir).Findings {
		if f.Severity == report.Error {
			got = append(got, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.ID))
		}
	}
	want := []string{"roles/b/tasks/main.yml:1 missing-plugin", "watches.yaml:1 watches", "watches.yaml:2 watches", "watches.yaml:3 watches"}
	if diff := cmp.Diff(want, got); diff != "" || r.Tasks != 2 {
		t.Errorf("%d tasks, errors (-want +got):\n%s", r.Tasks, diff)
	}
}

func TestTheProjectItselfHasNoFaultAndAllItsRights(t *testing.T) {
	o := options(t, "../..")
	r, err := check.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) > 0 || r.Tasks < 20 {
		t.Errorf("got %d tasks and %+v", r.Tasks, r.Findings)
	}
	if r.Fails(report.Info) {
		t.Error("want it clean")
	}
}

// Each name is nearly that of something that is there.
func TestNamesThatMayBeMeant(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{
		"watches.yaml":                   "- {group: a.example.com, version: v1, kind: Thing, role: thing}\n",
		"roles/neighbour/tasks/main.yml": "- ansible.builtin.debug:\n",
		"roles/thing/tasks/main.yml": `
- kubernetes.core.k8_info: {kind: Pod}
- debugg: {msg: "{{ motd | to_jsn }}"}
- k8s_exec: {namespace: a}
- ansible.builtin.debug: {msg: "{{ lookup('fle', 'x') }}", verbosity: "{{ 1 if motd is strng else 2 }}"}
- ansible.builtin.include_role: {name: neighbourr}
- ansible.builtin.debug:
  changed_when: true
  notify: Restart servr
`,
		"roles/thing/handlers/main.yml": "- name: Restart server\n  ansible.builtin.debug:\n",
	})
	r, err := check.Run(t.Context(), options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, f := range r.Findings {
		said = append(said, f.Message+" "+f.Remedy)
	}
	all := strings.Join(said, "\n")
	for name, meant := range map[string]string{
		"module kubernetes.core.k8_info": "kubernetes.core.k8s_info", "module debugg": "debug", "filter to_jsn": "to_json", "module k8s_exec": "kubernetes.core.k8s_exec",
		"lookup fle": "file", "test strng": "string", "role neighbourr": `"neighbour"`, "handler Restart servr": `"Restart server"`,
	} {
		if !regexp.MustCompile(regexp.QuoteMeta(name) + `\b.*did you mean ` + regexp.QuoteMeta(meant)).MatchString(all) {
			t.Errorf("nothing says that %s may be %s:\n%s", name, meant, all)
		}
	}
}
