package ensigncmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/test/harness/scratch"
)

// rbac runs the command in a directory.
func rbac(t *testing.T, args ...string) (out, notes string, err error) {
	t.Helper()
	cmd := newRBACCommand()
	var stdout, stderr bytes.Buffer
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

func TestFlagsOfRBACThatExcludeEachOther(t *testing.T) {
	for args, want := range map[string]string{
		"--prune":                             "--prune is for --write",
		"--write --diff config/rbac":          "give one of them",
		"--write --prune --from-audit a.json": "an audit log does not show which rights are not needed",
		"a b --diff":                          "needs an argument: --diff",
	} {
		if _, _, err := rbac(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want an error with %q, got %v", args, want, err)
		}
	}
}

// TestRBACOfAnAuditLogIsWritten needs no Ansible: the log tells the rights.
func TestRBACOfAnAuditLogIsWritten(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	scratch.Write(t, dir, map[string]string{
		"audit.log": `{"verb":"list","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"pods"}}` + "\n",
	})
	if _, _, err := rbac(t, "--from-audit=audit.log", "--write"); err == nil || !strings.Contains(err.Error(), "the project has no directory config/rbac") {
		t.Errorf("got %v", err)
	}
	scratch.Write(t, dir, map[string]string{"config/rbac/role.yaml": "kind: ClusterRole\nmetadata: {name: mine}\nrules:\n  - apiGroups: [apps]\n    resources: [deployments]\n    verbs: [get]\n"})
	out, notes, err := rbac(t, "--from-audit=audit.log", "--write")
	if err != nil || out != "+ list pods  # the audit log, line 1\n" || notes != "edit   config/rbac/role.yaml\n" {
		t.Errorf("got %v, %q, %q", err, out, notes)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config", "rbac", "role.yaml"))
	if err != nil || !strings.HasSuffix(string(text), "    verbs: [get]\n  # list: the audit log\n  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [list]\n") {
		t.Errorf("got %v\n%s", err, text)
	}
	out, notes, err = rbac(t, "--from-audit=audit.log", "--write")
	if err != nil || out != "" || notes != "config/rbac is up to date\n" {
		t.Errorf("again: got %v, %q, %q", err, out, notes)
	}
	for _, args := range [][]string{{"--diff"}, {dir, "--diff"}} { // With config/rbac.
		if out, _, err := rbac(t, append([]string{"--from-audit=audit.log"}, args...)...); err == nil || strings.Contains(out, "pods") || !strings.Contains(out, "get deployments.apps") {
			t.Errorf("%q: got %v, %q", args, err, out)
		}
	}
	if out, _, err = rbac(t, "--from-audit=audit.log"); err != nil || !strings.Contains(out, "kind: ClusterRole\nmetadata:\n  name: mine\n") {
		t.Errorf("want the name that config/rbac has, got %v\n%s", err, out)
	}
}

// A role for leader election that config/rbac has is not printed again. If it lacks rights, a note says which.
func TestRBACSaysWhatARoleThatIsNotPrintedLacks(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	scratch.Write(t, dir, map[string]string{
		"audit.log":                             `{"verb":"delete","user":{"username":"op"},"objectRef":{"apiGroup":"coordination.k8s.io","resource":"leases"}}` + "\n",
		"config/rbac/leader_election_role.yaml": "kind: Role\nmetadata: {name: leader-election}\nrules:\n  - apiGroups: [coordination.k8s.io]\n    resources: [leases]\n    verbs: [get]\n",
	})
	_, notes, err := rbac(t, "--from-audit=audit.log", "--user=op")
	want := "not printed: the role for leader election, which config/rbac/leader_election_role.yaml defines already\n" +
		"it lacks a right, which rbac --write adds: delete leases.coordination.k8s.io  # the audit log, line 1\n"
	if err != nil || notes != want {
		t.Errorf("got %v, %q, want %q", err, notes, want)
	}
}
