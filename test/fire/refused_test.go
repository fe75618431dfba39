package fire

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

var _ = Describe("a result that the API server refuses", func() {
	It("is written once an admission policy lets it pass", func(ctx context.Context) {
		b := newBench(ctx)
		cr := b.create(ctx, spark, "denied", map[string]any{"hold": "the-policy"})
		b.begun(ctx, cr)
		allow := b.deny(ctx, cr)
		b.open("the-policy")
		Eventually(ctx, func() int { return b.refused(cr) }).Should(BeNumerically(">=", 2), "the result is refused, and tried again")
		Expect(b.Log()).To(ContainSubstring("the API server refuses the result"))
		allow()
		expectSuccess(ctx, cr, 1)
		b.expectRuns(cr, 1, 1)
	})

	It("ends Running where the kind's schema refuses it for good", func(ctx context.Context) {
		b := newBench(ctx)
		cr := b.create(ctx, ash, "narrow", nil)
		Eventually(ctx, func(ctx context.Context) (harness.Condition, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(cr), cr)
			return harness.ConditionOf(cr, "Running"), err
		}).Should(And(HaveField("Status", "False"), HaveField("Reason", "StatusRefused")))
		Expect(b.Log()).To(ContainSubstring("the status could not be written"))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"again":true}}`))
		Expect(k8s.Patch(ctx, cr, patch)).To(Succeed())
		b.finished(ctx, cr, 2)
	})
})

// deny lets a policy deny all writes to the object's status, for the reason that
// policies have by default. It returns when the policy works; what it returns ends it.
func (b *bench) deny(ctx context.Context, cr *unstructured.Unstructured) (allow func()) {
	GinkgoHelper()
	name := b.namespace + "-deny"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{cr.GroupVersionKind().Group}, APIVersions: []string{"*"}, Resources: []string{"*/status"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("request.namespace == %q", b.namespace)}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "not now"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	Expect(k8s.Create(ctx, policy)).To(Succeed())
	Expect(k8s.Create(ctx, binding)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		probe := client.RawPatch(types.MergePatchType, []byte(`{"status":{"probe":true}}`))
		return k8s.Status().Patch(ctx, cr.DeepCopy(), probe, client.DryRunAll)
	}).Should(Satisfy(apierrors.IsInvalid))
	return func() {
		GinkgoHelper()
		Expect(k8s.Delete(ctx, binding)).To(Succeed())
		Expect(k8s.Delete(ctx, policy)).To(Succeed())
	}
}
