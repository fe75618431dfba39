//go:build long

package children

import (
	"context"
	"fmt"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("drift at length", func() {
	// Each kind of drift for children of each scope.
	It("is repaired whatever it is, one by one", func(ctx context.Context) {
		p := newWideOperator(ctx, watching("Box", "watchClusterScopedResources: true")).start(ctx)
		near, far, role := p.deployment("near"), p.deployment("far"), clusterRole(p.Namespace)
		far["metadata"].(map[string]any)["namespace"] = "default"
		far["metadata"].(map[string]any)["name"] = p.Namespace
		cr := p.custom("all", making(near, far, role))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		p.Watched(ctx, "deployments.apps", "clusterroles.rbac.authorization.k8s.io")
		runs := 1
		for _, child := range []map[string]any{near, far, role} {
			drifts := map[string]func(){
				"label": func() { patch(ctx, child, `{"metadata": {"labels": {"stray": "%d"}}}`, runs) },
				"delete": func() {
					remove(ctx, child)
				},
			}
			if child["kind"] == "Deployment" {
				drifts["scale"] = func() { patch(ctx, child, `{"spec": {"replicas": 0}}`) }
				drifts["edit"] = func() { patch(ctx, child, `{"spec": {"paused": true}}`) }
			} else {
				drifts["edit"] = func() { patch(ctx, child, `{"rules": []}`) }
			}
			for _, name := range []string{"label", "edit", "scale", "delete"} {
				if drifts[name] == nil {
					continue
				}
				By(name + " " + fmt.Sprint(child["kind"], child["metadata"]))
				drifts[name]()
				runs++
				p.Settles(cr, runs)
			}
			Expect(field(child, "metadata", "uid")(ctx)).NotTo(BeEmpty())
		}
	})

	// The role finds what the garbage collector is about to take.
	It("is repaired for a CR that comes while its predecessor's children go", func(ctx context.Context) {
		p := newOperator(ctx, watching("Box", ""), harness.Options{}).start(ctx)
		child := p.configMap("child")
		cr := p.custom("again", making(child))
		Expect(k8s.Create(ctx, cr.DeepCopy())).To(Succeed())
		p.Settles(cr, 1)
		before, err := field(child, "metadata", "uid")(ctx)
		Expect(err).NotTo(HaveOccurred())
		patch(ctx, child, `{"metadata": {"finalizers": ["children.ensign.io/slow"]}}`)
		p.Settles(cr, 2)
		Expect(k8s.Delete(ctx, cr.DeepCopy())).To(Succeed())
		Eventually(ctx, field(child, "metadata", "deletionTimestamp")).ShouldNot(BeEmpty())
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 3)
		Expect(field(child, "metadata", "uid")(ctx)).To(Equal(before))
		patch(ctx, child, `{"metadata": {"finalizers": null}}`)
		p.Settles(cr, 4)
		Expect(field(child, "metadata", "uid")(ctx)).NotTo(Or(BeEmpty(), Equal(before)))
	})

	It("is repaired for a cluster-scoped CR", func(ctx context.Context) {
		p := newWideOperator(ctx, watching("Tank", "")).start(ctx, "Tank")
		near, role := p.configMap("near"), clusterRole(p.Namespace)
		cr := harness.Custom(tank, "", p.Namespace, map[string]any{"objects": []any{near, role}})
		cr.SetLabels(map[string]string{"place": p.Namespace})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		p.Watched(ctx, "configmaps", "clusterroles.rbac.authorization.k8s.io")
		remove(ctx, near)
		p.Settles(cr, 2)
		patch(ctx, role, `{"rules": []}`)
		p.Settles(cr, 3)
		Expect(field(near, "data", "a")(ctx)).To(Equal("1"))
	})

	It("of a shared child is repaired for both, and of a kind nobody may list, or that goes, harms no other", func(ctx context.Context) {
		thing := schema.GroupKind{Group: "children.ensign.io", Kind: "Thing"}
		Expect(k8s.Create(ctx, harness.Definition(thing))).To(Succeed())
		p := newWideOperator(ctx, watching("Box", "watchClusterScopedResources: true"))
		p.Limit(ctx, // It may do all but list and watch ClusterRoles.
			rbacv1.PolicyRule{APIGroups: []string{"", "children.ensign.io", "events.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"get", "create", "patch", "update", "escalate", "bind"}})
		p.start(ctx)
		shared, role := p.configMap("shared"), clusterRole(p.Namespace)
		custom := p.object("children.ensign.io/v1", "Thing", "custom", map[string]any{"spec": map[string]any{"a": "1"}})
		one, two := p.custom("one", making(shared, role)), p.custom("two", making(custom))
		Eventually(func() error { return k8s.Create(ctx, one.DeepCopy()) }).Should(Succeed())
		Eventually(func() error { return k8s.Create(ctx, two.DeepCopy()) }).Should(Succeed())
		p.Settles(one, 1)
		p.Settles(two, 1)
		Eventually(p.Log).Should(MatchRegexp(`can't be followed.*clusterroles.*forbidden`))
		p.Watched(ctx, "configmaps", "things.children.ensign.io")
		By("taking a kind of children away")
		Expect(k8s.Delete(ctx, harness.Definition(thing))).To(Succeed())
		Eventually(p.Runs(two)).Should(BeNumerically(">=", 2))
		By("sharing a child, whose drift is that of both")
		Expect(k8s.Delete(ctx, two)).To(Succeed())
		three := p.custom("three", map[string]any{})
		Expect(k8s.Create(ctx, three)).To(Succeed())
		p.Settles(three, 1)
		reference := metav1.OwnerReference{APIVersion: "children.ensign.io/v1", Kind: "Box", Name: "three", UID: three.GetUID()}
		owned := &unstructured.Unstructured{Object: map[string]any{}}
		owned.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		Expect(k8s.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: "shared"}, owned)).To(Succeed())
		owned.SetOwnerReferences(append(owned.GetOwnerReferences(), reference))
		Expect(k8s.Update(ctx, owned)).To(Succeed())
		before, after := p.Calms(one), p.Calms(three)
		remove(ctx, shared)
		p.Settles(one, before+1)
		p.Settles(three, after+1)
	})

	It("is not waited for where there are no children any more", func(ctx context.Context) {
		p := newOperator(ctx, watching("Box", ""), harness.Options{Args: []string{"--children-unused-after=2s"}}).start(ctx)
		child := p.configMap("child")
		cr := p.custom("leaves", making(child))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		p.Watched(ctx, "configmaps")
		kinds := func() (string, error) {
			record := &corev1.ConfigMap{}
			err := k8s.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: "ensign-children"}, record)
			return record.Data["Box.children.ensign.io"], err
		}
		Eventually(kinds).Should(ContainSubstring("configmaps"))
		Consistently(p.Log, site.Calm).ShouldNot(ContainSubstring("following a kind no longer"))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		Eventually(ctx, p.Metrics).ShouldNot(MatchRegexp(`purpose="related"[^}]*resource="configmaps"`))
		Eventually(kinds).Should(BeEmpty())
	})

	It("is the leader's to repair", func(ctx context.Context) {
		p := newOperator(ctx, watching("Box", ""), harness.Options{Args: []string{"--leader-elect", "--leader-election-id=drift"}}).start(ctx)
		child := p.configMap("child")
		cr := p.custom("led", making(child))
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		copied := *p.Site
		standby := &operator{&copied}
		standby.Options.Home = filepath.Join(p.Dir, "standby")
		var err error
		standby.Manager, err = harness.Start(standby.Options)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(standby.Stop()).To(Succeed()) })
		Eventually(standby.Log).Should(ContainSubstring("ttempting to acquire leader lease"))
		remove(ctx, child)
		p.Settles(cr, 2)
		Expect(standby.Log()).NotTo(Or(ContainSubstring("following a kind"), ContainSubstring("run started")))
		By("ending the leader")
		Expect(p.Stop()).To(Succeed())
		Expect(standby.Ready(ctx, "Box")).To(Succeed())
		standby.Watched(ctx, "configmaps")
		Consistently(standby.Runs(cr), site.Calm).Should(BeZero())
		remove(ctx, child)
		standby.Settles(cr, 1)
	})
})

var _ = Describe("references at length", func() {
	It("bring their CR back when a Secret changes, comes, goes, and while no manager runs", func(ctx context.Context) {
		p := newOperator(ctx, watching("Box", "references: [{version: v1, kind: Secret, name: spec.password}]"), harness.Options{}).start(ctx)
		secret := func(value string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "password"}, StringData: map[string]string{"a": value}}
		}
		cr := p.custom("refers", map[string]any{"password": "password"})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		By("creating it")
		Expect(k8s.Create(ctx, secret("1"))).To(Succeed())
		Eventually(p.Ended(cr)).Should(Equal(2))
		By("changing it")
		Expect(k8s.Patch(ctx, secret("2"), client.Merge)).To(Succeed())
		p.Settles(cr, 3)
		By("starting the next manager, for which the CR is settled")
		Expect(p.Stop()).To(Succeed())
		p.start(ctx)
		p.Watched(ctx, "secrets")
		Consistently(p.Runs(cr), site.Calm).Should(BeZero())
		By("changing it while no manager runs")
		Expect(p.Stop()).To(Succeed())
		Expect(k8s.Patch(ctx, secret("3"), client.Merge)).To(Succeed())
		p.start(ctx)
		p.Settles(cr, 1)
		By("deleting it")
		Expect(k8s.Delete(ctx, secret("3"))).To(Succeed())
		p.Settles(cr, 2)
	})

	It("bring their CR back when another CR changes", func(ctx context.Context) {
		p := newOperator(ctx, watching("Box", "references: [{group: children.ensign.io, version: v1, kind: Box, name: 'spec.peers[*].name'}]"), harness.Options{}).start(ctx)
		peer := p.custom("peer", making(p.configMap("of-the-peer")))
		Expect(k8s.Create(ctx, peer)).To(Succeed())
		p.Settles(peer, 1)
		cr := p.custom("refers", map[string]any{"peers": []any{map[string]any{"name": "peer"}, map[string]any{"name": "other"}}})
		Expect(k8s.Create(ctx, cr)).To(Succeed())
		p.Settles(cr, 1)
		By("changing the peer, whose own run and status are no change")
		patch(ctx, map[string]any{"apiVersion": "children.ensign.io/v1", "kind": "Box", "metadata": map[string]any{"namespace": p.Namespace, "name": "peer"}}, `{"spec": {"more": "x"}}`)
		p.Settles(peer, 2)
		p.Settles(cr, 2)
		By("starting the next manager")
		Expect(p.Stop()).To(Succeed())
		p.start(ctx)
		Consistently(p.Runs(cr), site.Calm).Should(BeZero())
		Expect(k8s.Delete(ctx, peer)).To(Succeed())
		p.Settles(cr, 1)
	})
})
