package charts

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/harness"
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
