package check

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/author/source"
	"github.com/ensign-operator/ensign/internal/watches"
)

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
		"by helm":                       {"- command: {cmd: helm uninstall web -n a}\n", warned},
		"by helm 2":                     {"- shell: |\n    cd /charts\n    helm del --purge web\n", warned},
		"by helm in a variable":         {"- shell: \"{{ helm_bin }} uninstall web\"\n", warned},
		"a release":                     {"- kubernetes.core.helm: {name: web, release_namespace: a, release_state: absent}\n", warned},
		"a release by its other names":  {"- community.kubernetes.helm: {release_name: web, namespace: a, state: absent}\n", warned},
		"a release of a known owner":    {"- kubernetes.core.helm: {name: web, release_namespace: a, state: absent}\n  when: uid in found.metadata.ownerReferences | map(attribute='uid')\n", nil},
		"a release that is kept":        {"- kubernetes.core.helm: {name: web, release_namespace: a, chart_ref: web}\n", nil},
		"what only looks like helm":     {"- shell: helm uninstall web --dry-run; helm plugin uninstall diff; helm list\n", nil},
		"by a request":                  {"- uri: {url: \"https://{{ host }}/apis/apps/v1/namespaces/a/deployments/x\", method: DELETE}\n", warned},
		"by a request to the core":      {"- ansible.builtin.uri: {url: \"{{ host }}/api/v1/namespaces/a/pods?labelSelector=app=x\", method: delete}\n", warned},
		"by a request to a known host":  {"- uri: {url: \"https://kubernetes.default.svc/{{ path }}\", method: DELETE}\n", warned},
		"a request to another server":   {"- uri: {url: https://grafana.a.svc/api/v1/dashboards/x, method: DELETE}\n", nil},
		"a request that reads":          {"- uri: {url: https://kubernetes.default.svc/api/v1/namespaces/a/pods/x}\n", nil},
		"by raw":                        {"- raw: oc -n a delete pvc x\n", warned},
		"in a pod":                      {"- kubernetes.core.k8s_exec: {namespace: a, pod: x, command: kubectl delete pod y}\n", warned},
		"in a script":                   {"- script: ends.sh a\n", warned},
		"in a script by its argument":   {"- ansible.builtin.script: {cmd: ends.sh}\n", warned},
		"in a script that asks":         {"- script: asks.sh\n", nil},
		"what is no object":             {"- file: {state: absent, path: /tmp/x}\n", nil},
		"what is kept":                  {"- k8s: {kind: Pod, name: x}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{
				file: test.task, "roles/r/files/asks.sh": "kubectl auth can-i delete pods\nkubectl get pods\n",
				"roles/r/files/ends.sh": "kubectl auth can-i delete pods\nkubectl -n $1 delete pods -l app=x\n",
			})
			p.deletes(p.Units[0])
			want(t, p, test.want...)
		})
	}
}

func TestDefaultsOfThePlay(t *testing.T) {
	const play = "- hosts: all\n  module_defaults: {kubernetes.core.k8s: {state: absent}}\n  tasks:\n  - k8s: {kind: Pod, name: x}\n"
	p := project(t, thing(), map[string]string{"p.yml": play})
	watch := thing()
	watch.Content = watches.Content{Playbook: filepath.Join(p.options.Dir, "p.yml")}
	unit := source.Walk([]watches.Watch{watch}, source.Search{Dir: p.options.Dir})[0]
	u := newUnit(unit, p.CRDs)
	u.Index = unit.Index()
	p.deletes(u)
	want(t, p, "p.yml:4 warning unowned-delete")
}

func TestEmptyOwnerReferences(t *testing.T) {
	const file, template = "roles/r/tasks/main.yml", "- k8s: {template: x.yml}\n"
	secret := func(metadata string) string {
		return "- k8s: {definition: {apiVersion: v1, kind: Secret, metadata: {name: x, namespace: '{{ n }}', " + metadata + "}}}\n"
	}
	warned := []string{file + ":1 warning owner-reference"}
	for name, test := range map[string]struct {
		task, template string
		want           []string
	}{
		"null":                          {secret("ownerReferences: null"), "", warned},
		"an empty list":                 {secret("ownerReferences: []"), "", warned},
		"with the annotation":           {secret("ownerReferences: null, annotations: {helm.sh/resource-policy: keep}"), "", nil},
		"one of another":                {secret("ownerReferences: [{uid: x}]"), "", nil},
		"a variable":                    {secret("ownerReferences: '{{ owners }}'"), "", nil},
		"none":                          {secret("labels: {}"), "", nil},
		"where it is deleted":           {"- k8s: {state: absent, definition: {apiVersion: v1, kind: Secret, metadata: {ownerReferences: []}}}\n", "", nil},
		"in another namespace":          {strings.Replace(secret("ownerReferences: []"), "'{{ n }}'", "a", 1), "", nil},
		"in a template":                 {template, "  ownerReferences: []  # None.\n", []string{"roles/r/templates/x.yml:2 warning owner-reference"}},
		"in a template that keeps it":   {template, "  annotations:\n    helm.sh/resource-policy: keep\n  ownerReferences: null\n", nil},
		"in a template with references": {template, "  ownerReferences:\n  - uid: x\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{file: test.task, "roles/r/templates/x.yml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\n" + test.template})
			p.objects(p.Units[0])
			want(t, p, test.want...)
		})
	}
}
