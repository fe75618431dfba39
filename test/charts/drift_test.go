package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var _ = Describe("a release whose objects others change", func() {
	const warning = "WARNING: objects of the release were changed by others, and are left so"

	DescribeTable("leaves them so where its watch says that", func(ctx context.Context, drift string, looks bool) {
		s := charted(ctx, map[string]string{"a.yaml": configMap("a", "{}", "a: b")}, "  drift: "+drift+"\n").Start(ctx, hello.Kind)
		cr := harness.Custom(hello, s.Namespace, "changed", nil)
		s.Create(ctx, cr)
		Expect(s.Outcome(ctx, cr)).To(HaveField("Reason", "Successful"))
		s.Watched(ctx, "configmaps")
		object := &corev1.ConfigMap{}
		Expect(objectNamed(s, "changed-a", object)(ctx)).To(Succeed())
		Expect(k8s.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"theirs"}}`)))).To(Succeed())
		changed := object.ResourceVersion
		log, err := audit.Open(auditLog)
		Expect(err).NotTo(HaveOccurred())
		answered(ctx, s, cr, "after the change")
		Expect(objectNamed(s, "changed-a", object)(ctx)).To(Succeed())
		Expect(object.ResourceVersion).To(Equal(changed))
		Expect(s.Condition(cr, "Successful")(ctx)).To(HaveField("Status", "True"))
		Expect(statuses(s, "changed")(ctx)).To(Equal(map[string]string{"1": "deployed"}))
		text, err := s.Log()
		Expect(err).NotTo(HaveOccurred())
		compared, err := log.DryRuns(s.Namespace)
		Expect(err).NotTo(HaveOccurred())
		if looks {
			Expect(text).To(MatchRegexp(warning + `.*"release": "changed", "objects": "ConfigMap [^"]*changed-a"`))
			Expect(compared).To(BeNumerically(">=", 1))
		} else {
			Expect(text).NotTo(ContainSubstring(warning))
			Expect(compared).To(BeZero())
		}
	},
		Entry("warn: and says so", "warn", true),
		Entry("off: without a look at them", "off", false),
	)
})

var _ = Describe("a cluster-scoped object of a release", func() {
	// asItWas is true if the object is there, as the chart has it.
	asItWas := func(s *site.Site) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			object := priorityClass(s, "wide")
			err := k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err == nil && object.Labels["app.kubernetes.io/managed-by"] == "Helm", client.IgnoreNotFound(err)
		}
	}
	It("is brought back at once when it is changed or deleted, by the next manager too", func(ctx context.Context) {
		s := charted(ctx, plain, "  reconcilePeriod: 1h\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "wide")
		for runs := range 2 {
			s.Watched(ctx, "priorityclasses.scheduling.k8s.io")
			patch(ctx, priorityClass(s, "wide"), `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"theirs"}}}`)
			Eventually(ctx, asItWas(s)).Should(BeTrue())
			Expect(k8s.Delete(ctx, priorityClass(s, "wide"))).To(Succeed())
			Eventually(ctx, asItWas(s)).Should(BeTrue())
			s.Settles(cr, 3-runs) // The installation and two repairs; of the next manager two repairs.
			if runs == 0 {
				Expect(s.Manager.Stop()).To(Succeed())
				s.Start(ctx, hello.Kind)
				Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
			}
		}
	})

	It("is left until the period where its watch says that", func(ctx context.Context) {
		s := charted(ctx, plain, "  watchClusterScopedResources: false\n").Start(ctx, hello.Kind)
		cr := deployedBy(ctx, s, hello, "wide")
		Expect(k8s.Delete(ctx, priorityClass(s, "wide"))).To(Succeed())
		Consistently(ctx, asItWas(s), site.Calm).Should(BeFalse())
		answered(ctx, s, cr, "now")
		Expect(asItWas(s)(ctx)).To(BeTrue())
	})
})
