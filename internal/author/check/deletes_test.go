package check

import "testing"

func TestDeletesThatDoNotAskWhose(t *testing.T) {
	const file = "roles/r/tasks/main.yml"
	warned := []string{file + ":1 warning unowned-delete"}
	for name, test := range map[string]struct {
		task string
		want []string
	}{
		"by label":                      {"- kubernetes.core.k8s: {state: absent, kind: Pod, label_selectors: [app=shop]}\n", warned},
		"by name":                       {"- k8s: {state: absent, kind: Pod, name: x}\n", warned},
		"all of a kind":                 {"- k8s: {state: absent, kind: Pod, namespace: x, delete_all: true}\n", warned},
		"in one of two cases":           {"- k8s: {state: \"{{ 'present' if b else 'absent' }}\", kind: Pod, name: x}\n", warned},
		"by definition":                 {"- k8s:\n    state: absent\n    definition: {kind: Pod, metadata: {name: x}}\n", warned},
		"with a resource version alone": {"- k8s: {state: absent, kind: Pod, name: x, delete_options: {preconditions: {resourceVersion: '1'}}}\n", warned},
		"what was looked at before":     {"- k8s: {state: absent, kind: Pod, name: x, delete_options: {preconditions: {uid: '{{ found.metadata.uid }}'}}}\n", nil},
		"by the module that asks":       {"- ensign.operator.k8s_delete_owned: {kind: Pod, name: x, owner: {}}\n", nil},
		"by kubectl":                    {"- command: kubectl delete pvc/x --namespace a\n", warned},
		"by kubectl in a shell":         {"- shell: set -e; kubectl -n a delete pvc -l app=x || true\n", warned},
		"by oc with a list of words":    {"- ansible.builtin.command: {argv: [oc, delete, pvc, x]}\n", warned},
		"what another command deletes":  {"- shell: kubectl get pods | xargs delete x\n", nil},
		"what kubectl reads":            {"- command: kubectl get pods\n", nil},
		"what is no object":             {"- file: {state: absent, path: /tmp/x}\n", nil},
		"what is kept":                  {"- k8s: {kind: Pod, name: x}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{file: test.task})
			p.deletes(p.Units[0])
			want(t, p, test.want...)
		})
	}
}
