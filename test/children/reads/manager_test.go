package reads

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// content writes with kubernetes.core, and holds each read, of one object and of all,
// against what was written.
const content = `
- hosts: all
  gather_facts: false
  vars:
    namespace: "{{ ansible_operator_meta.namespace }}"
  tasks:
    - name: Write
      kubernetes.core.k8s:
        definition:
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: "read-{{ item }}", namespace: "{{ namespace }}", labels: {from: role}}
          data: {size: "{{ size | string }}"}
      loop: [0, 1, 2]
    - name: Read one
      kubernetes.core.k8s_info: {kind: ConfigMap, name: read-1, namespace: "{{ namespace }}"}
      register: one
    - name: Read all
      kubernetes.core.k8s_info: {kind: ConfigMap, namespace: "{{ namespace }}", label_selectors: [from=role]}
      register: all
    - name: Hold them against what was written
      ansible.builtin.assert:
        that:
          - one.resources[0].data.size == size | string
          - all.resources | length == 3
          - all.resources | map(attribute='data.size') | unique | list == [size | string]
    - name: Delete one
      kubernetes.core.k8s: {state: absent, kind: ConfigMap, name: read-2, namespace: "{{ namespace }}"}
    - name: Read the rest
      kubernetes.core.k8s_info: {kind: ConfigMap, namespace: "{{ namespace }}", label_selectors: [from=role]}
      register: rest
    - name: Hold it against what was deleted
      ansible.builtin.assert:
        that: rest.resources | map(attribute='metadata.name') | sort == ['read-0', 'read-1']
`

var _ = Describe("The manager", func() {
	It("answers a playbook's reads from memory, and never with less than it wrote", func(ctx context.Context) {
		project := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(project, "content.yml"), []byte(content), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(project, "watches.yaml"), []byte("- {group: reads.ensign.io, version: v1, kind: Widget, playbook: content.yml, watchDependentResources: false, selector: {matchLabels: {read: \"yes\"}}}\n"), 0o600)).To(Succeed())
		namespace := space(ctx, "managed")
		m, err := harness.Start(harness.Options{
			Binary: filepath.Join(root, "bin", "manager"), Project: project, Kubeconfig: cluster.Kubeconfig, Home: GinkgoT().TempDir(), Copy: GinkgoWriter,
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(m.Stop()).To(Succeed()) })
		Expect(m.Ready(ctx, "Widget")).To(Succeed())

		cr := harness.Custom(widget, namespace, "reader", map[string]any{"size": int64(0)})
		cr.SetLabels(map[string]string{"read": "yes"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		const runs = 3
		for size := range int64(runs) {
			if size > 0 {
				Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":`+strconv.FormatInt(size, 10)+`}}`)))).To(Succeed())
			}
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)).To(Succeed())
				condition := harness.ConditionOf(cr, "Successful")
				g.Expect(condition.Generation).To(Equal(cr.GetGeneration()))
				g.Expect(condition.Reason).NotTo(Equal("Running"))
			}).Should(Succeed())
			Expect(harness.ConditionOf(cr, "Successful").Status).To(Equal("True"), harness.ConditionOf(cr, "Failure").Message)
		}
		metrics, err := m.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		hits := regexp.MustCompile(`ansible_operator_proxy_reads_total\{cache="hit"\} (\d+)`).FindStringSubmatch(metrics)
		Expect(hits).To(HaveLen(2), "%s", metrics)
		Expect(strconv.Atoi(hits[1])).To(BeNumerically(">=", 2*runs))
		Expect(metrics).To(MatchRegexp(`ansible_operator_read_cache_kinds [1-9]`))
		Expect(metrics).To(MatchRegexp(`ansible_operator_read_cache_bytes [1-9]`))
		Expect(metrics).To(ContainSubstring(`ansible_operator_followed_kind{namespace="",purpose="reads",resource="configmaps",state="live"} 1`))
	})
})
