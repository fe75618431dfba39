package charts

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("Events of an account", Label("long"), func() {
	limited := func(ctx context.Context, more ...rbacv1.PolicyRule) *site.Site {
		GinkgoHelper()
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: {{ .Values.a | quote }}")}, "  overrideValues: {a: b}\n")
		s.Limit(ctx, append(more,
			rbacv1.PolicyRule{APIGroups: []string{hello.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps"}, Verbs: []string{"*"}},
		)...)
		return s.Start(ctx, hello.Kind)
	}

	It("that may write those of the core group alone are written there, as older scaffolds grant", func(ctx context.Context) {
		s := limited(ctx, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
		cr := harness.Custom(hello, s.Namespace, "old", nil)
		s.Create(ctx, cr)
		Eventually(ctx, notes(cr, "OverrideValuesInUse")).Should(ConsistOf(`Chart value "a" overridden to "b" by operator's watches.yaml`))
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"c":"d"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		Eventually(ctx, notes(cr, "OverrideValuesInUse")).Should(HaveLen(2), "one a revision")
		Expect(s.Log()).NotTo(ContainSubstring("Events are not written"))
	})

	It("that may write none are missed once in the log", func(ctx context.Context) {
		s := limited(ctx)
		cr := harness.Custom(hello, s.Namespace, "mute", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		Expect(k8s.Patch(ctx, cr, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"c":"d"}}`)))).To(Succeed())
		Eventually(ctx, s.Condition(cr, "Deployed")).Should(HaveField("Reason", "UpgradeSuccessful"))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(text, "Events are not written: the account lacks create and patch of events, in the group events.k8s.io or in the core group")).To(Equal(1), text)
	})
})
