package check

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/author/report"
)

func TestTheRightsOfTasksThatNameNoGroup(t *testing.T) {
	const read = "- k8s_info: {kind: Deployment, name: x}\n"
	for name, test := range map[string]struct {
		task string
		want []string
	}{
		"without an api_version":         {read, []string{"get deployments.apps"}},
		"with a version alone":           {"- k8s_info: {api_version: v1, kind: Ingress, name: x}\n", []string{"get ingresses.networking.k8s.io"}},
		"a kind of the project":          {"- k8s_info: {api_version: v1, kind: Thing}\n", []string{"list things.example.com"}},
		"what the core has":              {"- k8s_info: {kind: Secret, name: x}\n", []string{"get secrets"}},
		"what is scaled":                 {"- k8s_scale: {api_version: v1, kind: StatefulSet, name: x, replicas: 1}\n", []string{"get statefulsets.apps", "patch statefulsets.apps/scale"}},
		"a job has no scale":             {"- k8s_scale: {kind: job, name: x, replicas: 1}\n", []string{"get jobs.batch", "patch jobs.batch"}},
		"what is patched":                {"- k8s_json_patch: {kind: sts, name: x, patch: []}\n", []string{"get statefulsets.apps", "patch statefulsets.apps"}},
		"what is deleted":                {"- k8s: {state: absent, kind: Route, name: x}\n", []string{"delete routes.route.openshift.io", "get routes.route.openshift.io"}},
		"a part of an object":            {"- k8s: {state: patched, api_version: apps/v1, name: x, definition: {kind: Deployment}}\n", []string{"get deployments.apps", "patch deployments.apps"}},
		"the objects of a list":          {"- k8s: {state: patched, definition: {kind: List, items: [{kind: Secret, metadata: {name: x}}]}}\n", []string{"get secrets", "patch secrets"}},
		"what only a cluster can tell":   {"- k8s_info: {kind: Gadget, name: x}\n", nil},
		"a module that asks no other":    {"- operator_sdk.util.k8s_status: {api_version: v1, kind: Service, name: x}\n", []string{"get services", "patch services/status"}},
		"what is deleted by its owner":   {"- ensign.operator.k8s_delete_owned: {api_version: apps/v1, kind: Deployment, name: ['{{ x }}'], owner: {}}\n", []string{"delete deployments.apps", "get deployments.apps"}},
		"and by label":                   {"- ensign.operator.k8s_delete_owned: {kind: Pod, label_selectors: [a=b], owner: {}}\n", []string{"delete pods", "list pods"}},
		"what has to be the owner's":     {"- ensign.operator.k8s_require_owned: {owner: {}, definition: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]}\n", []string{"get secrets"}},
		"and both at once":               {"- ensign.operator.k8s_require_owned: {owner: {}, kind: Pod, name: x, definition: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]}\n", []string{"get pods", "get secrets"}},
		"and is named":                   {"- ensign.operator.k8s_require_owned: {owner: {}, kind: Secret, name: [x, y]}\n", []string{"get secrets"}},
		"not what it would not find":     {"- operator_sdk.util.k8s_status: {api_version: v1, kind: Deployment, name: x}\n", []string{"get deployments", "patch deployments/status"}},
		"a state of two":                 {"- k8s: {state: \"{{ 'present' if b else 'absent' }}\", kind: Secret, name: x}\n", []string{"create secrets", "delete secrets", "get secrets", "patch secrets"}},
		"a state that nobody knows":      {"- k8s: {state: '{{ wanted }}', kind: Secret, name: x}\n", []string{"create secrets", "delete secrets", "get secrets", "patch secrets"}},
		"the group that a task does say": {"- k8s_info: {api_version: example.com/v1, kind: Deployment, name: x}\n", []string{"get deployments.example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": test.task, "config/crd.yaml": definition + closed})
			got := map[string]bool{}
			for _, need := range p.Needs().All {
				if need.At.File != "" {
					got[need.Right.String()] = true
				}
			}
			if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRightsOfRolesThatTheClusterHas(t *testing.T) {
	binding := func(name string) string {
		return "kind: ClusterRoleBinding\nmetadata: {name: b}\nroleRef: {kind: ClusterRole, name: " + name + "}\nsubjects: [{kind: ServiceAccount, name: manager}]\n"
	}
	const lacking = "roles/r/tasks/main.yml:1 "
	for name, test := range map[string]struct {
		bindings string
		want     []string
	}{
		"the one that may do all":     {binding("cluster-admin"), nil},
		"one whose rules none knows":  {binding("edit"), []string{lacking + "warning missing-right", "watches.yaml:0 warning missing-right", "watches.yaml:1 warning missing-right"}},
		"one that asks for clients":   {binding("system:auth-delegator"), []string{lacking + "error missing-right", "watches.yaml:0 warning missing-right", "watches.yaml:1 error missing-right"}},
		"all of them":                 {binding("edit") + "---\n" + binding("cluster-admin"), nil},
		"one that may do all to pods": {binding("m") + "---\nkind: ClusterRole\nmetadata: {name: m}\nrules: [{apiGroups: [''], resources: [pods], verbs: ['*']}]\n", []string{lacking + "error missing-right", "watches.yaml:0 warning missing-right", "watches.yaml:1 error missing-right"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{
				"roles/r/tasks/main.yml": "- k8s_info: {kind: ConfigMap, name: a}\n", "config/crd.yaml": definition + closed, "config/rbac/b.yaml": test.bindings,
			})
			p.grants()
			want(t, p, test.want...)
			for _, f := range p.findings {
				if unread := strings.Contains(f.Why, "the ClusterRole edit, which config/rbac/b.yaml:1 binds,"); f.Line == 1 && unread != (f.Severity == report.Warning) {
					t.Errorf("got the reason %q", f.Why)
				}
			}
		})
	}
}

func TestRightsOfAPluralThatIsGuessed(t *testing.T) {
	for name, test := range map[string]struct {
		resource string
		want     []string
	}{
		"the roles have it":               {"gadgetparts", nil},
		"the roles have it with a hyphen": {"gadget-parts", []string{"roles/r/tasks/main.yml:1 warning missing-right"}},
		"the roles have another":          {"gadget", []string{"roles/r/tasks/main.yml:1 error missing-right"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{
				"roles/r/tasks/main.yml": "- k8s_info: {api_version: gadgets.org/v1, kind: GadgetPart, name: a}\n", "config/crd.yaml": definition + closed,
				"config/rbac/role.yaml": "kind: ClusterRole\nmetadata: {name: m}\nrules:\n- {apiGroups: [example.com, events.k8s.io], resources: ['*'], verbs: ['*']}\n" +
					"- {apiGroups: [gadgets.org], resources: [" + test.resource + "], verbs: [get]}\n",
			})
			p.grants()
			want(t, p, test.want...)
		})
	}
}
