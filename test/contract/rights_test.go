package contract

import (
	"context"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ensign-operator/ensign/test/harness"
)

const lackingPlay = `
- hosts: localhost
  gather_facts: false
  tasks:
  - name: Write
    kubernetes.core.k8s:
      definition: {apiVersion: v1, kind: ConfigMap, metadata: {name: words, namespace: "{{ ansible_operator_meta.namespace }}"}}
    no_log: true
    when: how == "module"
  - name: Write by kubectl
    ansible.builtin.command: {argv: ["@KUBECTL@", create, configmap, words, -n, "{{ ansible_operator_meta.namespace }}"]}
    when: how == "kubectl"
`

var _ = Describe("a run whose account lacks a right", func() {
	row("§5 missing right", "the condition and the log name the right and ensign rbac, under no_log too, and whichever client asked", func(ctx context.Context) {
		kubectl, err := filepath.Abs("../../bin/controlplane/kubectl")
		Expect(err).NotTo(HaveOccurred())
		kind := kindOf("lacking", "Lacking")
		ground.Define(ctx, harness.Definition(kind))
		s := ground.Site(ctx, map[string]string{"watches.yaml": "- {group: lacking.example.com, version: v1, kind: Lacking, playbook: play.yml}\n", "play.yml": strings.ReplaceAll(lackingPlay, "@KUBECTL@", kubectl)})
		own := rbacv1.PolicyRule{APIGroups: []string{"lacking.example.com", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}
		s.Limit(ctx, own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
		s.Start(ctx, kind.Kind)
		says := And(ContainSubstring("may not create configmaps in the namespace "+s.Namespace), ContainSubstring("ensign rbac"),
			MatchRegexp(`https://github.com/ensign-operator/ensign/blob/[^/]+/docs/howto-debug.md#a-right-is-missing`))
		for _, how := range []string{"module", "kubectl"} {
			cr := harness.Custom(kind, s.Namespace, how, map[string]any{"how": how})
			s.Create(ctx, cr)
			Eventually(ctx, s.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "Failed"), HaveField("Message", says)), how)
			Eventually(s.Log).Should(MatchRegexp(`run failed.*/` + how + `".*may not create configmaps`))
		}
	})
})
