//go:build long

package contract

import (
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const familyWatches = `
- {group: family.example.com, version: v1, kind: Parent, playbook: hold.yml}
- {group: family.example.com, version: v1, kind: Loner, playbook: hold.yml, watchDependentResources: false}
- {group: family.example.com, version: v1, kind: Wide, playbook: hold.yml, watchClusterScopedResources: true}
- {group: family.example.com, version: v1, kind: Picky, playbook: hold.yml, blacklist: [{group: "", version: v1, kind: ConfigMap}]}
- {group: family.example.com, version: v1, kind: Friend, playbook: hold.yml, references: [{group: family.example.com, version: v1, kind: House, name: spec.house, statusFields: [ready]}, {version: v1, kind: Secret, name: spec.secret}, {version: v1, kind: Secret, name: "spec.more[*].secret", namespace: spec.home}]}
`

var _ = Describe("children by the watch's settings", Ordered, ContinueOnFailure, func() {
	var (
		s     *site.Site
		kinds = []string{"Parent", "Loner", "Wide", "Picky", "Friend"}
		of    = map[string]*held{}
		other string
	)
	configMapOf := func(kind string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "of-" + kind}}
	}
	clusterRoleOf := func(kind string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + kind}}
	}
	BeforeAll(func(ctx context.Context) {
		for _, kind := range append([]string{"House"}, kinds...) {
			ground.Define(ctx, harness.Definition(kindOf("family", kind)))
		}
		s = holder(ctx, familyWatches)
		other = ground.Namespace(ctx)
		s.Options.Namespace = s.Namespace + "," + other
		s.Options.Args = append(s.Options.Args, "--max-concurrent-runs=5") // All are held at once.
		s.Start(ctx, kinds...)
		crs := map[string]*unstructured.Unstructured{}
		for _, kind := range kinds {
			crs[kind] = harness.Custom(kindOf("family", kind), s.Namespace, strings.ToLower(kind), map[string]any{
				"house": "waited-for", "secret": "mine", "home": other, "more": []any{map[string]any{"secret": "theirs"}},
			})
			s.Create(ctx, crs[kind])
		}
		for _, kind := range kinds {
			of[kind] = hold(s, crs[kind])
		}
		for _, kind := range []string{"Parent", "Loner", "Wide", "Picky"} {
			of[kind].Do(ctx, http.MethodPost, configMaps(s.Namespace), configMap("of-"+strings.ToLower(kind), "1"))
			of[kind].Do(ctx, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterroles", clusterRole(s.Namespace+"-"+strings.ToLower(kind)))
		}
	})
	row("§1 watchDependentResources, §1 blacklist", "children bring their CR back; not where it is false, or their kind is listed", func(ctx context.Context) {
		for _, kind := range kinds {
			of[kind].release()
		}
		for _, kind := range kinds {
			Eventually(s.Ended(of[kind].cr)).Should(Equal(1), kind)
		}
		s.Watched(ctx, "configmaps", "clusterroles.rbac.authorization.k8s.io")
		for _, kind := range []string{"loner", "picky", "parent"} {
			Expect(k8s.Delete(ctx, configMapOf(kind))).To(Succeed())
		}
		s.Settles(of["Parent"].cr, 2)
		for _, kind := range []string{"Loner", "Picky"} {
			Expect(s.Runs(of[kind].cr)()).To(Equal(1), kind)
		}
	})
	row("§1 watchClusterScopedResources", "children without a namespace bring their CR back where it is true", func(ctx context.Context) {
		for _, kind := range []string{"parent", "wide"} {
			Expect(k8s.Delete(ctx, clusterRoleOf(kind))).To(Succeed())
		}
		s.Settles(of["Wide"].cr, 2)
		Expect(s.Runs(of["Parent"].cr)()).To(Equal(2), "as before")
	})
	row("§1 references", "an object that the CR names brings it back when it comes, changes and goes", func(ctx context.Context) {
		secret := func(namespace, name string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		}
		s.Create(ctx, secret(s.Namespace, "another"), secret(s.Namespace, "theirs"), secret(s.Namespace, "mine"))
		s.Settles(of["Friend"].cr, 2)
		s.Create(ctx, secret(other, "theirs"))
		s.Settles(of["Friend"].cr, 3)
		patch(ctx, secret(s.Namespace, "mine"), `{"stringData": {"password": "new"}}`)
		s.Settles(of["Friend"].cr, 4)
		Expect(k8s.Delete(ctx, secret(other, "theirs"))).To(Succeed())
		s.Settles(of["Friend"].cr, 5)
	})
	row("§1 statusFields", "such a field of an object that the CR names brings it back; the rest of the status does not", func(ctx context.Context) {
		house := harness.Custom(kindOf("family", "House"), s.Namespace, "waited-for", nil)
		s.Create(ctx, house)
		s.Settles(of["Friend"].cr, 6)
		for _, status := range []string{`{"status": {"ready": false}}`, `{"status": {"seen": "again"}}`, `{"status": {"ready": true}}`} {
			Expect(k8s.Status().Patch(ctx, house, client.RawPatch(types.MergePatchType, []byte(status)))).To(Succeed())
			if strings.Contains(status, "ready") {
				s.Settles(of["Friend"].cr, 7+strings.Count(status, "true"))
			}
		}
	})
})

const (
	slowPlay    = "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - {name: Sleep, ansible.builtin.wait_for: {timeout: 3600}}\n"
	idleWatches = "- {group: reasons.example.com, version: v1, kind: Patient, playbook: slow.yml, timeout: 0s}\n"
)

const reasonWatches = `
- {group: reasons.example.com, version: v1, kind: Slow, playbook: slow.yml, timeout: 2s}
- {group: reasons.example.com, version: v1, kind: Far, playbook: far.yml}
- {group: reasons.example.com, version: v1, kind: Nobody, playbook: nobody.yml}
- {group: reasons.example.com, version: v1, kind: Broken, playbook: broken.yml}
- {group: reasons.example.com, version: v1, kind: Killed, playbook: killed.yml}
`

var _ = Describe("reasons of failures", Ordered, ContinueOnFailure, func() {
	var (
		s     *site.Site
		kinds = []string{"Slow", "Far", "Nobody", "Broken", "Killed"}
		crs   = map[string]*unstructured.Unstructured{}
	)
	BeforeAll(func(ctx context.Context) {
		for _, kind := range kinds {
			ground.Define(ctx, harness.Definition(kindOf("reasons", kind)))
		}
		s = ground.Site(ctx, map[string]string{
			"watches.yaml": reasonWatches,
			"slow.yml":     slowPlay,
			"far.yml": "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - ansible.builtin.add_host: {name: far-away, ansible_connection: ssh, ansible_host: 127.0.0.1, ansible_port: 1, ansible_ssh_executable: \"{{ playbook_dir }}/none.sh\"}\n" +
				"- hosts: far-away\n  gather_facts: false\n  tasks:\n  - ansible.builtin.raw: echo\n",
			"none.sh":    "#!/bin/sh\nexit 255\n",
			"nobody.yml": "- hosts: no_such_host\n  gather_facts: false\n  tasks:\n  - ansible.builtin.debug:\n",
			"broken.yml": "- hosts: localhost\n  tasks:\n  - {name: No such thing, no_such_module_at_all: {}, not_a_keyword: true}\n",
			"killed.yml": "- hosts: localhost\n  gather_facts: false\n  tasks:\n  - ansible.builtin.debug: {msg: \"{{ lookup('pipe', 'kill -9 $PPID') }}\"}\n",
		})
		s.Options.Args = append(s.Options.Args, "--max-concurrent-runs=4", "--max-backoff=5m")
		s.Start(ctx, kinds...)
		for _, kind := range kinds {
			crs[kind] = harness.Custom(kindOf("reasons", kind), s.Namespace, strings.ToLower(kind), nil)
			s.Create(ctx, crs[kind])
		}
	})
	DescribeTable("are told apart", func(ctx context.Context, kind, reason, says string) {
		Eventually(ctx, s.Condition(crs[kind], "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", reason), HaveField("Message", ContainSubstring(says))))
		Expect(k8s.Delete(ctx, crs[kind])).To(Succeed())
	},
		entry("§5 reasons, §1 timeout", "Timeout", "Slow", "Timeout", "2s"),
		entry("§5 reasons", "Unreachable", "Far", "Unreachable", "far-away"),
		entry("§5 reasons", "NoHosts", "Nobody", "NoHosts", "host"),
		entry("§5 reasons", "ContentError", "Broken", "ContentError", "not_a_keyword"),
		entry("§5 reasons", "NoStats", "Killed", "NoStats", "dead state"),
	)
	// It has a manager of its own: on a busy machine other runs may be silent for as long.
	row("§2 --run-idle-timeout, §1 timeout", "0s is no timeout, but the run is silent for too long", func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(kindOf("reasons", "Patient")))
		silent := ground.Site(ctx, map[string]string{"watches.yaml": idleWatches, "slow.yml": slowPlay})
		silent.Options.Args = append(silent.Options.Args, "--run-idle-timeout=10s", "--max-backoff=5m")
		silent.Start(ctx, "Patient")
		cr := harness.Custom(kindOf("reasons", "Patient"), silent.Namespace, "patient", nil)
		silent.Create(ctx, cr)
		Eventually(ctx, silent.Condition(cr, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Reason", "Timeout"), HaveField("Message", ContainSubstring("idle"))))
	})
})
