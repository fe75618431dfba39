//go:build long

package contract

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a run of a manager with few rights", Ordered, ContinueOnFailure, func() {
	w := &work{}
	limited := schema.GroupKind{Group: "few.example.com", Kind: "Limited"}
	const clusterRoles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	BeforeAll(func(ctx context.Context) {
		ground.Define(ctx, harness.Definition(limited))
		w.Site = holder(ctx, "- {group: few.example.com, version: v1, kind: Limited, playbook: hold.yml, "+
			"watchClusterScopedResources: true}\n")
		w.Options.Args = append(w.Options.Args, "--children-unused-after=2s")
		w.Limit(ctx, // All that it needs but to list or watch ClusterRoles.
			rbacv1.PolicyRule{APIGroups: []string{"", "few.example.com", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"get", "create", "patch", "update", "escalate"}})
		w.Start(ctx, "Limited")
		cr := harness.Custom(limited, w.Namespace, "few", nil)
		w.Create(ctx, cr)
		w.box = hold(w.Site, cr)
	})

	row("§7 forbidden kind", "is told of in the log, and harms no other", func(ctx context.Context) {
		w.box.Do(ctx, http.MethodPost, clusterRoles, clusterRole("few-"+w.Namespace))
		w.box.Do(ctx, http.MethodPost, configMaps(w.Namespace), configMap("near", "1"))
		Eventually(w.Log).Should(MatchRegexp(`cannot watch the kind.*clusterroles.*forbidden`))
		w.Watched(ctx, "configmaps")
	})
	row("§7 unused watches", "end when there are no children any more", func(ctx context.Context) {
		w.box.release()
		w.Settles(w.box.cr, 1)
		Expect(k8s.Delete(ctx, w.box.cr)).To(Succeed())
		Eventually(ctx, w.Metrics).ShouldNot(ContainSubstring(`purpose="related",resource="configmaps"`))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			record := &corev1.ConfigMap{}
			err := k8s.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: "ensign-children"}, record)
			return record.Data["Limited.few.example.com"], err
		}).Should(BeEmpty())
	})
})

var _ = Describe("a kind that is taken away", func() {
	row("§12 kind that goes", "its controller stops, and the others go on", func(ctx context.Context) {
		stays, goes := schema.GroupKind{Group: "goes.example.com", Kind: "Stays"}, schema.GroupKind{Group: "goes.example.com", Kind: "Goes"}
		ground.Define(ctx, harness.Definition(stays), harness.Definition(goes))
		s := ground.Site(ctx, map[string]string{
			"watches.yaml": "- {group: goes.example.com, version: v1, kind: Stays, playbook: play.yml}\n- {group: goes.example.com, version: v1, kind: Goes, playbook: play.yml}\n",
			"play.yml":     "- hosts: localhost\n  gather_facts: false\n  tasks: [{ansible.builtin.debug: {msg: here}}]\n",
		})
		s.Start(ctx, "Stays", "Goes")
		Expect(k8s.Delete(ctx, harness.Definition(goes))).To(Succeed())
		Eventually(s.Log).Should(MatchRegexp(`no longer served.*Kind=Goes`))
		cr := harness.Custom(stays, s.Namespace, "on", nil)
		s.Create(ctx, cr)
		Eventually(s.Ended(cr)).Should(Equal(1))
	})
})
