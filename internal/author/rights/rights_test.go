package rights

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const auditLog = `{"verb":"get","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"secrets","apiVersion":"v1"}}
{"verb":"patch","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"databases","subresource":"status","apiGroup":"demo.example.com"}}
{"verb":"get","user":{"username":"system:serviceaccount:ns:op"}}

{"verb":"update","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"}}
{"verb":"delete","user":{"username":"system:serviceaccount:ns:other"},"objectRef":{"resource":"pods"}}
{"verb":"delete","user":{"username":"system:serviceaccount:kube-system:gc"},"objectRef":{"resource":"pods"}}
{"verb":"delete","user":{"username":"admin"},"objectRef":{"resource":"pods"}}
`

func TestRightsOfAnAuditLog(t *testing.T) {
	for user, want := range map[string]map[Right]bool{
		"system:serviceaccount:ns:op": {
			{"", "secrets", "get"}: true, {"demo.example.com", "databases/status", "patch"}: true, {"coordination.k8s.io", "leases", "update"}: true,
		},
		"": {
			{"", "secrets", "get"}: true, {"demo.example.com", "databases/status", "patch"}: true, {"coordination.k8s.io", "leases", "update"}: true, {"", "pods", "delete"}: true,
		},
		"system:serviceaccount:ns:nobody": {},
	} {
		needs, err := FromAudit(strings.NewReader(auditLog), user)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, needs.Rights()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", user, diff)
		}
	}
	if _, err := FromAudit(strings.NewReader("{}\nno event\n"), ""); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("want an error that names the line, got %v", err)
	}
}

func TestTheRolesThatAreWritten(t *testing.T) {
	needs, err := FromAudit(strings.NewReader(auditLog), "system:serviceaccount:ns:op")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := needs.Write(&out, "mine", nil); err != nil {
		t.Fatal(err)
	}
	const want = `---
# What the manager does itself, and what its content does through it.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: mine
rules:
  # get: the audit log, line 1
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get]
  # patch: the audit log, line 2
  - apiGroups: [demo.example.com]
    resources: [databases/status]
    verbs: [patch]
---
# In the manager's own namespace only: give it one.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: leader-election
rules:
  # update: the audit log, line 5
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [update]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsGrantedAndNotNeeded(t *testing.T) {
	granted := Granted{Rights: map[Right]bool{{"", "secrets", "get"}: true, {"demo.example.com", "*", "*"}: true, {"", "pods", "list"}: true}}
	needs, err := FromAudit(strings.NewReader(auditLog), "system:serviceaccount:ns:op")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"+ update leases.coordination.k8s.io  # the audit log, line 5",
		"- * *.demo.example.com",
		"- list pods",
	}
	if diff := cmp.Diff(want, needs.Difference(granted)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
