package rights

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// bindings give the roles manager, metrics-auth and leader-election to an account.
const bindings = `---
kind: ClusterRoleBinding
roleRef: {kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: manager}]
---
kind: ClusterRoleBinding
roleRef: {kind: ClusterRole, name: metrics-auth}
subjects: [{kind: ServiceAccount, name: manager}]
---
kind: RoleBinding
roleRef: {kind: Role, name: leader-election}
subjects: [{kind: ServiceAccount, name: manager}]
---
kind: ClusterRole
metadata: {name: metrics-auth}
rules:
  - {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
---
kind: Role
metadata: {name: leader-election}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, create, update]
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get, create, patch]
---
kind: ClusterRole
metadata: {name: for-people}
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [delete]
`

func needed(scope Scope, where, group, resource string, verbs ...string) (all []Need) {
	for _, verb := range verbs {
		all = append(all, Need{Right: Right{Group: group, Resource: resource, Verb: verb}, Scope: scope, Where: where})
	}
	return all
}

// base is what the other roles have.
func base() []Need {
	all := needed(Metrics, "the manager: who reads metrics", "authentication.k8s.io", "tokenreviews", "create")
	all = append(all, needed(Lease, "the manager: leader election", "coordination.k8s.io", "leases", "get", "create", "update")...)
	return append(all, needed(Lease, "the manager: a record", "", "configmaps", "get", "create", "patch")...)
}

// updated returns the text of role.yaml after an update, and the roles of the directory.
func updated(t *testing.T, before string, needs []Need, prune, onlyAdd bool) (text string, granted Granted, err error) {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"rest.yaml": bindings, "role.yaml": before})
	for range 2 { // The second one finds nothing to do.
		project, err := ReadProject(dir, "")
		if err != nil {
			return "", granted, err
		}
		notes, err := project.Update(Needs{All: needs}, prune, onlyAdd)
		if err != nil {
			return "", granted, err
		}
		if len(notes) > 0 {
			t.Errorf("got the notes %q", notes)
		}
		files, err := project.Save(dir)
		if err != nil {
			return "", granted, err
		}
		if text != "" && len(files) > 0 {
			t.Errorf("a second update changes %q again", files)
		}
		content, err := os.ReadFile(filepath.Join(dir, "role.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text = string(content)
	}
	granted, err = ReadGranted(dir)
	return text, granted, err
}

const head = "# Ours.\nkind: ClusterRole\nmetadata:\n  name: manager\nrules:\n"

func TestTheRolesOfAProjectAreBroughtUpToDate(t *testing.T) {
	deployments := needed(Manager, "roles/a/tasks/main.yml:7", "apps", "deployments", "get", "create")
	const deploymentRule = "  # get, create: roles/a/tasks/main.yml\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, create]\n"
	for why, test := range map[string]struct {
		before         string // below the head
		needs          []Need
		prune, onlyAdd bool
		want           string
		left           int // lines of the difference afterwards
	}{
		"a rule is added, without the number of a line": {
			before: "  # Mine.\n  - apiGroups: [\"\"]\n    resources: [secrets] # Why.\n    verbs: [get]\n# The end.\n",
			needs:  append(deployments, needed(Manager, "x", "", "secrets", "get")...),
			want:   "  # Mine.\n  - apiGroups: [\"\"]\n    resources: [secrets] # Why.\n    verbs: [get]\n" + deploymentRule + "# The end.\n",
		},
		"to an empty list": {before: "  []\n", needs: deployments, want: deploymentRule},
		"what it wrote goes with its reason": {
			before: "  # get: roles/b/tasks/main.yml\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get]\n", needs: deployments, want: deploymentRule,
		},
		"what it wrote is renewed": {
			before: "  # Look here.\n  # get, delete: roles/a/tasks/old.yml\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, delete]\n", needs: deployments,
			want: "  # Look here.\n" + deploymentRule,
		},
		"a verb that somebody added to what it wrote stays": {
			before: "  # get: roles/a/tasks/main.yml\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, deletecollection]\n", needs: deployments,
			want: "  # get, create: roles/a/tasks/main.yml\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, create, deletecollection]\n", left: 1,
		},
		"two of its rules become one": {before: deploymentRule + deploymentRule, needs: deployments, want: deploymentRule},
		"a verb is added to a rule of a person": {
			before: "  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [list, get] # Why.\n", needs: deployments,
			want: "  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, list, create] # Why.\n", left: 1,
		},
		"a verb is added to a list in lines": {
			before: "  - apiGroups:\n      - apps\n    resources:\n      - deployments\n    verbs:\n      # Read.\n      - get # Why.\n", needs: deployments,
			want: "  - apiGroups:\n      - apps\n    resources:\n      - deployments\n    verbs:\n      # Read.\n      - get # Why.\n      - create\n",
		},
		"a wider rule of a person does": {
			before: "  - apiGroups: [apps]\n    resources: [\"*\"]\n    verbs: [\"*\"]\n", needs: deployments,
			want: "  - apiGroups: [apps]\n    resources: [\"*\"]\n    verbs: [\"*\"]\n", left: 1,
		},
		"pruned, it gets narrow": {
			before: "  # Mine.\n  - apiGroups: [apps]\n    resources: [\"*\"]\n    verbs: [\"*\"]\n", needs: deployments, prune: true, want: deploymentRule,
		},
		"pruned, a rule is split": {
			before: "  # Mine.\n  - apiGroups: [apps, extensions]\n    resources: [deployments, daemonsets]\n    verbs: [get, create, delete]\n", needs: deployments, prune: true,
			want: "  # Mine.\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, create]\n",
		},
		"pruned, a rule gets fewer verbs and others": {
			before: "  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, delete]\n", needs: deployments, prune: true,
			want: "  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get, create]\n",
		},
		"pruned, but it is kept": {
			before: "  # keep: for kubectl\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [delete]\n", needs: deployments, prune: true,
			want: "  # keep: for kubectl\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [delete]\n" + deploymentRule,
		},
		"a role for one namespace does not do": {
			before: "  []\n", needs: needed(Manager, "t:1", "", "configmaps", "get"),
			want: "  # get: t\n  - apiGroups: [\"\"]\n    resources: [configmaps]\n    verbs: [get]\n",
		},
		"an audit log takes nothing away": {
			before: "  # get, delete: roles/a/tasks/old.yml\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, delete]\n", onlyAdd: true,
			needs: []Need{{Right: Right{Resource: "pods", Verb: "list"}, Where: "the audit log, line 3", Anywhere: true}, {Right: Right{Resource: "nodes", Verb: "get"}, Where: "the audit log, line 4", Anywhere: true}},
			want:  "  # get, delete: roles/a/tasks/old.yml\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, list, delete]\n  # get: the audit log\n  - apiGroups: [\"\"]\n    resources: [nodes]\n    verbs: [get]\n",
			left:  2,
		},
		"what an audit log asked for is not the content's to take": {
			before: "  # get: the audit log\n  - apiGroups: [\"\"]\n    resources: [nodes]\n    verbs: [get]\n", needs: deployments,
			want: "  # get: the audit log\n  - apiGroups: [\"\"]\n    resources: [nodes]\n    verbs: [get]\n" + deploymentRule, left: 1,
		},
	} {
		t.Run(why, func(t *testing.T) {
			needs := append(base(), test.needs...)
			got, granted, err := updated(t, head+test.before, needs, test.prune, test.onlyAdd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(head+test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if left := (Needs{All: needs}).Difference(granted); len(left) != test.left {
				t.Errorf("want %d lines of difference, got %q", test.left, left)
			}
		})
	}
}

func TestRolesThatCannotBeBroughtUpToDate(t *testing.T) {
	needs := append(base(), needed(Manager, "x", "apps", "deployments", "get")...)
	got, _, err := updated(t, "kind: ClusterRole\nmetadata: {name: manager}\nrules: [] # None yet.\n", needs, false, false)
	if err != nil || !strings.Contains(got, "\nrules: # None yet.\n  # get: x\n  - apiGroups: [apps]\n") {
		t.Errorf("got %v\n%s", err, got)
	}
	for before, want := range map[string]string{
		"kind: ClusterRole\nmetadata: {name: manager}\n":                                                                         "has no list of rules",
		"kind: ClusterRole\nmetadata: {name: manager}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n":          "write each in lines of its own",
		"kind: ClusterRole\nmetadata: {name: other}\nrules: []\n":                                                                "no role here is bound to a service account",
		"kind: ClusterRole\nmetadata: {name: manager}\nrules: []\n---\nkind: Role\nmetadata: {name: more}\nrules: []\n" + moreOf: "say by --name which one",
		"a: [\n": "invalid YAML",
	} {
		if got, _, err := updated(t, before, needs, false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v\n%s", want, err, got)
		}
	}
}

const moreOf = "---\nkind: RoleBinding\nroleRef: {kind: Role, name: more}\nsubjects: [{kind: ServiceAccount, name: manager}]\n"

// TestTheNameOfARoleThatIsNotThere: a shell empties the file before rbac writes it.
func TestTheNameOfARoleThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"rest.yaml": strings.ReplaceAll(bindings, "name: manager}\nsubjects", "name: manager-role}\nsubjects"), "role.yaml": ""})
	project, err := ReadProject(dir, "")
	if err != nil || project.Name != "manager-role" || len(project.Has) != 2 {
		t.Errorf("got %+v, %v", project, err)
	}
	var out strings.Builder
	if err := (Needs{All: base()}).Write(&out, project.Name, project.Has); err != nil || out.String() != "" {
		t.Errorf("the project has these roles: %v\n%s", err, out.String())
	}
}

// TestTheRolesOfAnotherProgramStay: what controller-gen generates of Go's markers is given, needs no
// task, and is never edited; a second role of the account leaves no doubt which one gets rights.
func TestTheRolesOfAnotherProgramStay(t *testing.T) {
	const generated = `# keep: "make manifests" writes this file
---
kind: ClusterRole
metadata:
  name: manager-go
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch]
---
kind: Role
metadata:
  name: leader-election-go
  namespace: system
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [delete]
---
kind: ClusterRoleBinding
roleRef: {kind: ClusterRole, name: manager-go}
subjects: [{kind: ServiceAccount, name: manager}]
---
kind: RoleBinding
roleRef: {kind: Role, name: leader-election-go}
subjects: [{kind: ServiceAccount, name: manager}]
`
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"a_role.yaml": generated, "rest.yaml": bindings, "role.yaml": head + "  []\n"})
	needs := Needs{All: append(base(), needed(Manager, "the task", "", "pods", "list", "create")...)}
	project, err := ReadProject(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := project.Update(needs, true, false); err != nil {
		t.Fatal(err)
	}
	if files, err := project.Save(dir); err != nil || len(files) != 1 || filepath.Base(files[0]) != "role.yaml" {
		t.Errorf("written: %q, %v", files, err)
	}
	granted, err := ReadGranted(dir)
	if lines := needs.Difference(granted); err != nil || len(lines) > 0 {
		t.Errorf("left: %q, %v", lines, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a_role.yaml")); err != nil || string(got) != generated {
		t.Errorf("the role of another program: %v\n%s", err, got)
	}
}

// The manager needs it in its own namespace, where another role gives it.
func TestWhatIsTooMuchIsWhereItIsGivenEverywhere(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"a.yaml": bindings, "b.yaml": head + "  - apiGroups: [\"\"]\n    resources: [configmaps]\n    verbs: [create]\n"})
	granted, err := ReadGranted(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"- create configmaps  # " + filepath.Join(dir, "b.yaml") + ":6"}, (Needs{All: base()}).Difference(granted)); diff != "" {
		t.Errorf("difference (-want +got)\n%s", diff)
	}
}

// A checkout of somebody else may have links where Save writes.
func TestSaveWritesThroughNoLink(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	scratch.Write(t, outside, map[string]string{"bashrc": "mine", "role.yaml": head + "  []\n"})
	scratch.Write(t, dir, map[string]string{"rest.yaml": bindings, "role.yaml": head + "  []\n"})
	save := func() error {
		project, err := ReadProject(dir, "")
		if err != nil {
			return err
		}
		if _, err := project.Update(Needs{All: append(base(), needed(Manager, "the task", "", "pods", "list")...)}, false, false); err != nil {
			return err
		}
		_, err = project.Save(dir)
		return err
	}
	if err := os.Symlink(filepath.Join(outside, "bashrc"), filepath.Join(dir, ".role.yaml.new")); err != nil {
		t.Fatal(err)
	}
	if err := save(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "role.yaml")), os.Symlink(filepath.Join(outside, "role.yaml"), filepath.Join(dir, "role.yaml"))); err != nil {
		t.Fatal(err)
	}
	if err := save(); err == nil || !strings.Contains(err.Error(), "role.yaml is a symbolic link") {
		t.Errorf("got %v", err)
	}
	for name, want := range map[string]string{"bashrc": "mine", "role.yaml": head + "  []\n"} {
		if got, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", name, got, err)
		}
	}
}

// TestTheRightToActAsAnAccountIsReadAgain: what --write adds for serviceAccountName leaves no difference, and goes
// again with it.
func TestTheRightToActAsAnAccountIsReadAgain(t *testing.T) {
	acts := func(name string) Need {
		return Need{Right: Right{Resource: "serviceaccounts", Verb: "impersonate", Name: name}, Where: "the manager: the watch"}
	}
	const role = "kind: ClusterRole\nmetadata: {name: manager}\nrules:\n  # get: the manager: the watch\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get]\n"
	pods := needed(Manager, "the manager: the watch", "", "pods", "get")
	needs := append(append(base(), pods...), acts("poor"), acts("rich"))
	text, granted, err := updated(t, role, needs, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if lines := (Needs{All: needs}).Difference(granted); len(lines) > 0 || !strings.Contains(text, `resourceNames: ["poor"]`) {
		t.Errorf("got the difference %q after\n%s", lines, text)
	}
	fewer := append(append(base(), pods...), acts("rich"))
	if text, _, err = updated(t, text, fewer, false, false); err != nil || strings.Contains(text, "poor") || !strings.Contains(text, "rich") {
		t.Errorf("got %v and\n%s", err, text)
	}
	both := strings.Replace(text, `["rich"]`, `["rich", "poor"]`, 1)
	if _, granted, err = updated(t, both, needs, false, false); err != nil || len((Needs{All: needs}).Difference(granted)) > 0 {
		t.Errorf("got %v and the difference %q of a rule with two names", err, (Needs{All: needs}).Difference(granted))
	}
}

// The role that may do all needs no other, is not superfluous, and lends its name to none.
func TestAProjectWhoseManagerMayDoAll(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"binding.yaml": strings.Replace(bindings, "ClusterRole, name: manager", "ClusterRole, name: cluster-admin", 1)})
	project, err := ReadProject(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	needs := Needs{All: append(base(), needed(Manager, "the task", "", "pods", "list")...)}
	if lines := needs.Difference(project.Granted); len(lines) > 0 || project.Name != "" {
		t.Errorf("name %q, difference %q", project.Name, lines)
	}
}
