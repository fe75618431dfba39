package contract

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

const refusedWatches = `
- {group: refused.example.com, version: v1, kind: Wide, playbook: hold.yml}
- {group: refused.example.com, version: v1, kind: Narrow, playbook: play.yml}
`

var _ = Describe("a status that the API server refuses", Ordered, ContinueOnFailure, func() {
	var s *site.Site
	wide, narrow := kindOf("refused", "Wide"), kindOf("refused", "Narrow")
	BeforeAll(func(ctx context.Context) {
		strict := harness.Definition(narrow)
		status := strict.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
		status.Properties = map[string]apiextensionsv1.JSONSchemaProps{"conditions": {
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: status.XPreserveUnknownFields,
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"ansibleResult": {Type: "string"}},
			}},
		}}
		strict.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"] = status
		ground.Define(ctx, harness.Definition(wide), strict)
		s = holder(ctx, refusedWatches)
		s.Write(map[string]string{"play.yml": ""})
		s.Start(ctx, wide.Kind, narrow.Kind)
	})

	row("§5 refused by the schema", "the log says so, Running ends with StatusRefused, and runs go on", func(ctx context.Context) {
		cr := harness.Custom(narrow, s.Namespace, "narrow", map[string]any{})
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "Running")).Should(And(HaveField("Status", "False"), HaveField("Reason", "StatusRefused")))
		Expect(s.Log()).To(ContainSubstring("could not write the status"))
		patch(ctx, cr, `{"spec": {"again": true}}`)
		Eventually(s.Runs(cr)).Should(Equal(2))
	})
	row("§5 refused by a policy, §5 running task", "the task of a long run is shown; a refused result is written once it is not, and nothing runs again for it", func(ctx context.Context) {
		cr := harness.Custom(wide, s.Namespace, "denied", nil)
		s.Create(ctx, cr)
		Eventually(ctx, s.Condition(cr, "Running")).Should(And(HaveField("Status", "True"), HaveField("Message", MatchRegexp(`^Running reconciliation: task "Wait at the gate" since 20.*Z$`))))
		allow := deny(ctx, cr)
		Expect(os.WriteFile(filepath.Join(s.Dir, "denied.gate"), nil, 0o600)).To(Succeed())
		Eventually(s.Log).Should(ContainSubstring("the API server refuses the status with the result of the run"))
		Expect(s.Condition(cr, "Running")(ctx)).To(HaveField("Status", "True"))
		allow()
		Eventually(ctx, s.Condition(cr, "Successful")).Should(HaveField("Status", "True"))
		Expect(s.Condition(cr, "Running")(ctx)).To(HaveField("Message", "Awaiting next reconciliation"))
		s.Settles(cr, 1)
	})
})

// deny lets a policy deny all writes to the status in the CR's namespace, for the reason
// that policies have by default. It returns when the policy works; what it returns ends it.
func deny(ctx context.Context, cr *unstructured.Unstructured) (allow func()) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: cr.GetNamespace() + "-deny"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{cr.GroupVersionKind().Group}, APIVersions: []string{"*"}, Resources: []string{"*/status"}},
			},
		}}},
		MatchConditions: []admissionv1.MatchCondition{{Name: "one", Expression: fmt.Sprintf("request.namespace == %q", cr.GetNamespace())}},
		Validations:     []admissionv1.Validation{{Expression: "false", Message: "not now"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
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
