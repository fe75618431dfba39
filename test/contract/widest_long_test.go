//go:build long

package contract

import (
	"context"
	"crypto/sha256"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("an operator that uses what the base image has", Ordered, ContinueOnFailure, func() {
	const group = "estate.example.com"
	var s *site.Site
	create := func(ctx context.Context, kind, name string, spec map[string]any, labels map[string]string) *unstructured.Unstructured {
		cr := harness.Custom(schema.GroupKind{Group: group, Kind: kind}, s.Namespace, name, spec)
		cr.SetLabels(labels)
		s.Create(ctx, cr)
		return cr
	}
	var counter, territory, frozen *unstructured.Unstructured
	BeforeAll(func(ctx context.Context) {
		s = operator(ctx, "widest", group, "Counter", "Territory", "Ruin")
		s.Options.Args = append(s.Options.Args, "--user-metrics-bind-address=127.0.0.1:"+freePort())
		s.Start(ctx, "Counter", "Territory", "Ruin", "Secret")
		counter = create(ctx, "Counter", "five", nil, nil)
		territory = create(ctx, "Territory", "north", map[string]any{"maySee": []any{"pods"}}, map[string]string{"tier": "gold"})
		frozen = create(ctx, "Territory", "south", map[string]any{"maySee": []any{"pods"}}, map[string]string{"tier": "gold", "frozen": "yes"})
	})

	row("§operators widest", "a finalizer's playbook runs though the main one does not parse", func(ctx context.Context) {
		s.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "cleared"}})
		cr := create(ctx, "Ruin", "tower", nil, nil)
		Eventually(ctx, s.Condition(cr, "Failure")).Should(HaveField("Status", "True"))
		Expect(k8s.Delete(ctx, cr)).To(Succeed())
		gone(ctx, cr)
		Expect(read(ctx, s.Namespace, "cleared", &corev1.ConfigMap{}).Data).To(HaveKeyWithValue("last", "tower"))
	})

	row("§operators widest", "a core Secret is a watched kind, without status", func(ctx context.Context) {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "box", Labels: map[string]string{"estate.example.com/sealed": "true"}},
			StringData: map[string]string{"key": "one"},
		}
		s.Create(ctx, secret)
		seal := func(ctx context.Context) (string, error) {
			object := &corev1.ConfigMap{}
			err := k8s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: "box-seal"}, object)
			return object.Data["seal"], client.IgnoreNotFound(err)
		}
		Eventually(ctx, seal).Should(Equal(fmt.Sprintf("%x", sha256.Sum256([]byte("one")))))
		patch(ctx, secret, `{"stringData": {"key": "two"}}`)
		Eventually(ctx, seal).Should(Equal(fmt.Sprintf("%x", sha256.Sum256([]byte("two")))))
		Expect(owners(read(ctx, s.Namespace, "box-seal", &corev1.ConfigMap{}))).To(ConsistOf("Secret/box"))
	})

	row("§operators widest", "requeue_after counts to five, with a status of its own beside the conditions", func(ctx context.Context) {
		Eventually(s.Ended(counter)).Should(Equal(5))
		s.Settles(counter, 5)
		read(ctx, s.Namespace, "five", counter)
		Expect(counter.Object["status"]).To(And(HaveKeyWithValue("count", int64(5)), HaveKeyWithValue("phase", "Done")))
		Expect(harness.ConditionOf(counter, "Successful").Status).To(Equal("True"))
		Expect(harness.ConditionOf(counter, "Running").Reason).To(Equal("Successful"))
	})

	row("§operators widest", "osdk_metric of every kind", func(ctx context.Context) {
		Expect(s.Metrics(ctx)).To(And(
			ContainSubstring("\nestate_counts_total 5\n"), ContainSubstring("# HELP estate_counts_total How often something was counted\n# TYPE estate_counts_total counter\n"),
			ContainSubstring("\nestate_height 5\n"), ContainSubstring("\n# TYPE estate_spread histogram\n"), ContainSubstring("\nestate_spread_bucket{le=\"0.5\"} 1\n"),
			ContainSubstring("\nestate_sum_sum 2.5\nestate_sum_count 1\n"),
		))
	})

	row("§operators widest", "a selector by expressions, a blacklist, and children without a namespace that are repaired", func(ctx context.Context) {
		name := "visitor-of-" + s.Namespace + "-north"
		s.Settles(territory, 1)
		role := read(ctx, "", name, &rbacv1.ClusterRole{})
		Expect(role.Annotations).To(And(
			HaveKeyWithValue("operator-sdk/primary-resource", s.Namespace+"/north"), HaveKeyWithValue("operator-sdk/primary-resource-type", "Territory."+group)))
		book := read(ctx, s.Namespace, "north-guests", &corev1.ConfigMap{})
		Expect(owners(book)).To(ConsistOf("Territory/north"))
		s.Watched(ctx, "clusterroles.rbac.authorization.k8s.io")
		By("changing what is on the blacklist")
		patch(ctx, book, `{"data": {"visitor": "somebody"}}`)
		Consistently(s.Runs(territory), site.Calm).Should(Equal(1))
		By("deleting the role, and losing the label that keeps another out")
		Expect(s.Runs(frozen)()).To(BeZero())
		Expect(k8s.Delete(ctx, role)).To(Succeed())
		patch(ctx, frozen, `{"metadata": {"labels": {"frozen": null}}}`)
		s.Settles(territory, 2)
		Expect(read(ctx, "", name, role).Rules).To(HaveLen(1))
		s.Settles(frozen, 1)
		By("deleting it, with the role that no garbage collector would remove")
		Expect(k8s.Delete(ctx, territory)).To(Succeed())
		gone(ctx, territory)
		gone(ctx, role)
	})
})
