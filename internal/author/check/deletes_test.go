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
		"with a UID alone":              {"- k8s: {state: absent, kind: Pod, name: x, delete_options: {preconditions: {uid: '{{ found.metadata.uid }}'}}}\n", warned},
		"where the owner is compared":   {"- k8s: {state: absent, kind: Pod, name: x}\n  when: uid in found.metadata.ownerReferences | map(attribute='uid')\n", nil},
		"in a loop over owned objects":  {"- k8s: {state: absent, kind: Pod, name: x}\n  loop: \"{{ all | selectattr('metadata.ownerReferences.0.uid', 'equalto', uid) }}\"\n", nil},
		"in a block that compares":      {"- when: [a, \"uid in found.metadata.ownerReferences | map(attribute='uid')\"]\n  block:\n  - k8s: {state: absent, kind: Pod, name: x}\n", nil},
		"by args":                       {"- k8s: {kind: Pod, name: x}\n  args: {state: absent}\n", warned},
		"by defaults of the module":     {"- k8s: {kind: Pod, name: x}\n  module_defaults: {kubernetes.core.k8s: {state: absent}}\n", warned},
		"by defaults of a block":        {"- module_defaults: {group/k8s: {state: absent}}\n  block:\n  - kubernetes.core.k8s: {kind: Pod, name: x}\n", []string{file + ":3 warning unowned-delete"}},
		"in a state of each item":       {"- k8s: {state: \"{{ item.state | default('present') }}\", kind: Pod, name: x}\n  loop: \"{{ all }}\"\n", warned},
		"in a state that a test gives":  {"- k8s: {state: \"{% if a %}present{% else %}absent{% endif %}\", kind: Pod, name: x}\n", warned},
		"in a state of two others":      {"- k8s: {state: \"{{ 'present' if b else 'patched' }}\", kind: Pod, name: x}\n", nil},
		"by the module that asks":       {"- ensign.operator.k8s_delete_owned: {kind: Pod, name: x, owner: {}}\n", nil},
		"by kubectl":                    {"- command: kubectl delete pvc/x --namespace a\n", warned},
		"by kubectl in a shell":         {"- shell: set -e; kubectl -n a delete pvc -l app=x || true\n", warned},
		"by kubectl in three lines":     {"- shell: |\n    kubectl \\\n      -n a \\\n      delete pvc x\n", warned},
		"by a program in a variable":    {"- shell: \"{{ openshift_oc_bin }} delete project x\"\n", warned},
		"by a program of the shell":     {"- shell: $KUBECTL delete project x\n", warned},
		"a question":                    {"- shell: kubectl auth can-i delete pods\n", nil},
		"a comment and a text":          {"- shell: |\n    # kubectl delete pod a\n    echo kubectl delete pod a\n", nil},
		"a dry run":                     {"- shell: kubectl delete pod a --dry-run=server\n", nil},
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
