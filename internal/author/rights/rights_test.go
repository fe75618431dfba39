package rights

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/chart/describe"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

const auditLog = `{"verb":"get","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"secrets","apiVersion":"v1"}}
{"verb":"patch","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"databases","subresource":"status","apiGroup":"demo.example.com"}}
{"verb":"get","user":{"username":"system:serviceaccount:ns:op"}}

{"verb":"update","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"}}
{"verb":"delete","user":{"username":"system:serviceaccount:ns:other"},"objectRef":{"resource":"pods"}}
{"verb":"delete","user":{"username":"system:serviceaccount:kube-system:gc"},"objectRef":{"resource":"pods"}}
{"verb":"delete","user":{"username":"admin"},"objectRef":{"resource":"pods"}}
{"verb":"create","user":{"username":"system:serviceaccount:ns:op"},"objectRef":{"resource":"selfsubjectaccessreviews","apiGroup":"authorization.k8s.io"}}
`

func TestRightsOfAnAuditLog(t *testing.T) {
	for user, want := range map[string]map[Right]bool{
		"system:serviceaccount:ns:op": {
			{"", "secrets", "get", ""}: true, {"demo.example.com", "databases/status", "patch", ""}: true, {"coordination.k8s.io", "leases", "update", ""}: true,
		},
		"": {
			{"", "secrets", "get", ""}: true, {"demo.example.com", "databases/status", "patch", ""}: true, {"coordination.k8s.io", "leases", "update", ""}: true, {"", "pods", "delete", ""}: true,
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

func TestRightsUsedInTheNameOfAnother(t *testing.T) {
	const log = `{"verb":"list","user":{"username":"system:serviceaccount:ns:op"},"impersonatedUser":{"username":"system:serviceaccount:ns:tenant"},"objectRef":{"resource":"secrets"}}
{"verb":"get","user":{"username":"admin"},"impersonatedUser":{"username":"system:serviceaccount:ns:tenant"},"objectRef":{"resource":"pods"}}
{"verb":"get","user":{"username":"system:serviceaccount:ns:op"},"impersonatedUser":{"username":"somebody"},"objectRef":{"resource":"nodes"}}
`
	acts, list, get := Right{"", "serviceaccounts", "impersonate", ""}, Right{"", "secrets", "list", ""}, Right{"", "pods", "get", ""}
	for user, want := range map[string]map[Right]bool{
		"system:serviceaccount:ns:op":     {acts: true},
		"system:serviceaccount:ns:tenant": {list: true, get: true},
		"":                                {acts: true, list: true, get: true},
	} {
		needs, err := FromAudit(strings.NewReader(log), user)
		if diff := cmp.Diff(want, needs.Rights()); diff != "" || err != nil {
			t.Errorf("%q (-want +got): %v\n%s", user, err, diff)
		}
	}
}

func TestRightsOfRunsWithAnAccountAreTheAccounts(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"play.yml": "- hosts: localhost\n  tasks:\n  - kubernetes.core.k8s: {definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}\n"})
	watch := watches.Watch{
		GVK: schema.GroupVersionKind{Group: "demo.example.com", Version: "v1", Kind: "Thing"}, Content: watches.Content{Playbook: filepath.Join(dir, "play.yml")},
		ServiceAccount: watches.ServiceAccount{Name: "deployer"}, WatchDependentResources: true,
	}
	c := Collector{}
	for _, u := range source.Walk([]watches.Watch{watch}, source.Search{Dir: dir}) {
		c.Unit(u, u.Index())
	}
	c.Chart(source.Position{Line: 1}, "the chart", &describe.Chart{}, []describe.Object{{APIVersion: "v1", Kind: "Service", Name: "s"}})
	accounts, manager := Needs{All: c.Accounts}.Rights(), c.Rights()
	for _, right := range []Right{{"", "configmaps", "create", ""}, {"", "configmaps", "get", ""}, {"", "services", "patch", ""}, {"", "secrets", "delete", ""}} {
		if !accounts[right] || manager[right] {
			t.Errorf("%s: want it for the account alone", right)
		}
	}
	for _, right := range []Right{{"", "serviceaccounts", "impersonate", "deployer"}, {"", "configmaps", "watch", ""}, {"", "services", "list", ""}} {
		if !manager[right] {
			t.Errorf("%s: want it for the manager", right)
		}
	}
	if each := (Right{"", "serviceaccounts", "impersonate", ""}); manager[each] {
		t.Errorf("%s: want it for the one account", each)
	}
	if got := actsAs(watches.ServiceAccount{Name: "deployer", Path: watches.Path{"spec", "account"}}); got.Name != "" {
		t.Errorf("%s: want it for each account that a resource may name", got)
	}
	var out strings.Builder
	if err := c.Write(&out, "mine", nil); err != nil || !strings.Contains(out.String(), "name: mine-account\n") || !strings.Contains(out.String(), "resourceNames: [\"deployer\"]") {
		t.Errorf("want a role for accounts: %v\n%s", err, out.String())
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
	granted := Granted{Rights: map[Right]bool{{"", "secrets", "get", ""}: true, {"demo.example.com", "*", "*", ""}: true, {"", "pods", "list", ""}: true}}
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

// TestWhatTheRolesOfAChartNeed: the API server takes a role or a binding only from an account that has
// what it gives, or may give what it has not.
func TestWhatValuesFromNeeds(t *testing.T) {
	c := Collector{}
	c.ValuesFrom(source.Position{Line: 3}, "the chart", []string{"ConfigMap", "Secret"})
	if diff := cmp.Diff(map[Right]bool{{"", "configmaps", "get", ""}: true, {"", "secrets", "get", ""}: true}, c.Rights()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWaitingNeeds(t *testing.T) {
	pods, sets := Right{"", "pods", "list", ""}, Right{"apps", "replicasets", "list", ""}
	for kind, want := range map[string]map[Right]bool{"Deployment": {pods: true, sets: true}, "StatefulSet": {pods: true}, "DaemonSet": {}} {
		c := Collector{}
		c.Waits(source.Position{Line: 1}, "the chart", []describe.Object{{APIVersion: "apps/v1", Kind: kind}, {APIVersion: "x.org/v1", Kind: "Deployment"}})
		if diff := cmp.Diff(want, c.Rights()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", kind, diff)
		}
	}
}

func TestWhatTheRolesOfAChartNeed(t *testing.T) {
	role := describe.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "sample", Rules: []rbac.PolicyRule{
		{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"get", "use"}, ResourceNames: []string{"sample"}},
		{NonResourceURLs: []string{"/metrics", "*"}, Verbs: []string{"get"}},
	}}
	aggregated := describe.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "sum", Aggregates: true}
	binding := func(kind, name string) describe.Object {
		return describe.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding", Name: name, RoleRef: rbac.RoleRef{Kind: kind, Name: name}}
	}
	chart := &describe.Chart{Lookups: []describe.Lookup{{APIVersion: "v1", Kind: "Node"}}, CRDs: []describe.CRD{{Group: "x.org", Kind: "Data", Plural: "datas"}}, LooksUpMore: true}
	for why, test := range map[string]struct {
		objects    []describe.Object
		want, none []Right
	}{
		"a role and its binding": {
			[]describe.Object{role, binding("ClusterRole", "sample")},
			[]Right{{"", "pods", "get", ""}, {"apps", "pods", "use", ""}, {"", "/metrics", "get", ""}, {"", "/*", "get", ""}, {"", "nodes", "list", ""}},
			[]Right{{rbacGroup, "clusterroles", "bind", ""}, {rbacGroup, "clusterroles", "escalate", ""}, {"", "nodes", "create", ""}},
		},
		"a binding of a role of Kubernetes": {[]describe.Object{binding("ClusterRole", "view")}, []Right{{rbacGroup, "clusterroles", "bind", "view"}}, []Right{{rbacGroup, "clusterroles", "bind", ""}}},
		"a role that aggregates":            {[]describe.Object{aggregated, binding("ClusterRole", "sum")}, []Right{{rbacGroup, "clusterroles", "escalate", ""}, {rbacGroup, "clusterroles", "bind", ""}}, nil},
		"an object of the chart's own kind": {[]describe.Object{{APIVersion: "x.org/v1", Kind: "Data"}}, []Right{{"x.org", "datas", "create", ""}}, []Right{{"x.org", "data", "create", ""}}},
	} {
		t.Run(why, func(t *testing.T) {
			c := Collector{}
			c.Chart(source.Position{Line: 3}, "the chart", chart, test.objects)
			got := c.Rights()
			for _, right := range test.want {
				if !got[right] {
					t.Errorf("%s is not among %v", right, got)
				}
			}
			for _, right := range test.none {
				if got[right] {
					t.Errorf("%s is not needed", right)
				}
			}
			if len(c.Needs.Unknown) != 2 {
				t.Errorf("want a note on what is looked up, got %v", c.Needs.Unknown)
			}
			// What is written gives what is needed, and is known again.
			dir := t.TempDir()
			text := "kind: ClusterRole\nmetadata: {name: manager}\nrules:\n"
			for _, item := range c.Items() {
				lines := strings.Split(item, "\n")
				first := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "#") })
				lines[first] = "- " + lines[first]
				for i := first + 1; i < len(lines); i++ {
					lines[i] = "  " + lines[i]
				}
				text += "  " + strings.Join(lines, "\n  ") + "\n"
			}
			scratch.Write(t, dir, map[string]string{"role.yaml": text})
			granted, err := ReadGranted(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := c.Difference(granted); len(diff) > 0 {
				t.Errorf("%q in\n%s", diff, text)
			}
			project, err := ReadProject(dir, "")
			if err == nil {
				_, err = project.Update(Needs{}, false, false)
			}
			if err == nil {
				_, err = project.Save(dir)
			}
			if granted, readErr := ReadGranted(dir); err != nil || readErr != nil || len(granted.Rights) > 0 {
				t.Errorf("the rules are not taken away again: %v, %v, %v", granted.Rights, err, readErr)
			}
		})
	}
}

// The Jobs of runs are in the manager's own namespace, and so are the rights for them.
func TestRunsInJobsNeedRightsInTheManagersNamespace(t *testing.T) {
	for watch, job := range map[*watches.Watch]*watches.Job{{}: nil, {}: {}, {Chart: &watches.Chart{}}: nil, {Chart: &watches.Chart{}}: {}} {
		var c Collector
		watch.Job = job
		c.Unit(&source.Unit{Watch: *watch}, nil)
		has := map[Right]Scope{}
		for _, need := range c.All {
			has[need.Right] = need.Scope
		}
		for right, want := range map[Right]Scope{
			{"batch", "jobs", "create", ""}: Lease, {"batch", "jobs", "delete", ""}: Lease, {"", "pods", "watch", ""}: Lease, {"", "pods", "delete", ""}: Lease, {"", "events", "list", ""}: Lease,
			{"", "secrets", "create", ""}: Lease, {"authentication.k8s.io", "tokenreviews", "create", ""}: Metrics,
		} {
			if scope, is := has[right]; is != (job != nil) || is && scope != want {
				t.Errorf("with %+v: %s is there: %v, in %v", job, right, is, scope)
			}
		}
	}
}

// A project of init has an overlay whose roles give the rights for Jobs: config/rbac needs none of them,
// and they are not superfluous there either.
func TestRightsForJobsThatAnOverlayGives(t *testing.T) {
	dir := t.TempDir()
	scratch.Write(t, dir, map[string]string{"role.yaml": "kind: Role\nmetadata: {name: jobs}\nrules:\n" +
		"  - apiGroups: [batch]\n    resources: [jobs]\n    verbs: [get, list, watch, create, patch, delete]\n" +
		"  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, list, watch, delete]\n" +
		"  - apiGroups: [\"\"]\n    resources: [events]\n    verbs: [list]\n" +
		"  - apiGroups: [\"\"]\n    resources: [secrets]\n    verbs: [get, create]\n"})
	overlay, err := ReadGranted(dir)
	if err != nil {
		t.Fatal(err)
	}
	var c Collector
	c.jobs(source.Position{})
	if lines := c.Difference(Granted{}); len(lines) != 14 {
		t.Errorf("without the overlay config/rbac lacks all rights, got %q", lines)
	}
	c.InOverlay(overlay)
	if lines := c.Difference(Granted{}); len(lines) != 1 || !strings.Contains(lines[0], "tokenreviews") {
		t.Errorf("want only the right that no role of the overlay gives, got %q", lines)
	}
	if lines := c.Difference(overlay); len(lines) != 1 {
		t.Errorf("none is superfluous, got %q", lines)
	}
}

// Two roles give the variables of a third one their own kind and version.
func TestKindsAndVersionsOfTheSameFileBelongTogether(t *testing.T) {
	values := func(of ...string) (all []source.Value) {
		for _, one := range of {
			file, text, _ := strings.Cut(one, ": ")
			all = append(all, source.Value{File: file, Node: &yaml.Node{Kind: yaml.ScalarNode, Value: text}})
		}
		return all
	}
	for name, test := range map[string]struct{ kinds, versions, want []string }{
		"each file has both":        {[]string{"a: Mini", "b: Nano", "c: Mini"}, []string{"a: m/v1", "b: n/v1", "c: m/v1"}, []string{"m/v1 Mini", "n/v1 Nano"}},
		"a file has the kind alone": {[]string{"a: Mini", "b: Nano"}, []string{"a: m/v1", "c: n/v1"}, []string{"m/v1 Mini", "n/v1 Mini", "m/v1 Nano", "n/v1 Nano"}},
		"the task has the version":  {[]string{"a: Mini", "b: Nano"}, []string{": m/v1"}, []string{"m/v1 Mini", "m/v1 Nano"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range combine(values(test.kinds...), values(test.versions...), source.Position{}) {
				got = append(got, o.APIVersion+" "+o.Kind)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}
