package check

import (
	"strings"
	"testing"

	"github.com/ensign-operator/ensign/internal/ansible/reader"
)

func TestObjectsThatNoAPIServerTakes(t *testing.T) {
	object := func(text string) string { return "- kubernetes.core.k8s:\n    definition: " + text + "\n" }
	const good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}"
	for name, test := range map[string]struct{ task, want string }{ // want is a part of the message behind the severity
		"one that it takes":                   {object(good), ""},
		"one whose name it makes up":          {object("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a, namespace: b}}"), ""},
		"or the task makes up":                {object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: b}}") + "    generate_name: a-\n", ""},
		"one without a name":                  {object("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: b}}"), "error has no name"},
		"a question, which has none":          {object("{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, spec: {}}"), ""},
		"a list":                              {object("{apiVersion: v1, kind: List, items: []}"), ""},
		"whose name the task has":             {object("{apiVersion: v1, kind: ConfigMap}") + "    name: a\n    namespace: b\n", ""},
		"one without a namespace":             {object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), "error has no namespace"},
		"a kind that has none":                {object("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), ""},
		"a kind of the project":               {object("{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}"), "error the Thing has no namespace"},
		"a kind of others":                    {object("{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}}"), ""},
		"one that is changed":                 {object("{apiVersion: v1, kind: ConfigMap}") + "    state: patched\n", ""},
		"metadata of a variable":              {object("{apiVersion: v1, kind: ConfigMap, metadata: '{{ m }}'}"), ""},
		"metadata of an anchor":               {object("{apiVersion: v1, kind: ConfigMap, metadata: {<<: {name: a, namespace: b}}}"), ""},
		"defaults of the module":              {object("{apiVersion: v1, kind: ConfigMap}") + "  module_defaults: {kubernetes.core.k8s: {name: a, namespace: b}}\n", ""},
		"defaults of the module for a block":  {"- module_defaults: {group/kubernetes.core.k8s: {namespace: b}}\n  block:\n  - k8s: {definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}\n", ""},
		"a kind with a slip":                  {object(strings.Replace(good, "ConfigMap", "Configmap", 1)), "error did you mean ConfigMap?"},
		"a kind of another group":             {object(strings.ReplaceAll(good, "v1, kind: ConfigMap", "batch/v1, kind: Deployment")), "error apps/v1"},
		"a kind that the client finds itself": {"- kubernetes.core.k8s_info: {api_version: v1, kind: Deployment}\n", ""},
		"a resource's name":                   {"- kubernetes.core.k8s_info: {kind: configmaps}\n", ""},
		"a version that is gone":              {object(strings.ReplaceAll(good, "v1, kind: ConfigMap", "policy/v1beta1, kind: PodDisruptionBudget")), "warning 1.25"},
		"a kind that may be new":              {object(strings.ReplaceAll(good, "v1, kind: ConfigMap", "apps/v1, kind: Thermostat")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := project(t, thing(), map[string]string{"roles/r/tasks/main.yml": test.task, "config/crd.yaml": definition + closed})
			for _, text := range p.Units[0].Texts {
				text.Analysis = reader.Analysis{Whole: true, Outputs: []reader.Output{{Flows: []reader.Flow{{Name: "m"}}}}}
			}
			p.objects(p.Units[0])
			severity, part, _ := strings.Cut(test.want, " ")
			if test.want == "" {
				want(t, p)
				return
			}
			want(t, p, "roles/r/tasks/main.yml:1 "+severity+" object")
			if len(p.findings) == 1 && !strings.Contains(p.findings[0].Message, part) {
				t.Errorf("want %q, got %q", part, p.findings[0].Message)
			}
		})
	}
}
