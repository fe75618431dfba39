package visitors

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/site"
)

var ofSites = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "PersistentVolumeClaim"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
}

func lobby(space string) *unstructured.Unstructured {
	return harness.Custom(kind.GroupKind(), space, "lobby", map[string]any{"size": int64(2)})
}

// runsOf starts the operator of a variant, and defines its kind, until the end of the spec.
func runsOf(ctx context.Context, variant string) {
	GinkgoHelper()
	runsProject(ctx, variant, filepath.Join(example, variant))
}

func runsProject(ctx context.Context, variant, project string) {
	GinkgoHelper()
	crd := definition(variant)
	Expect(harness.Define(ctx, ground.Client, crd)).To(Succeed())
	_, end := operatorOf(ctx, variant, project)
	DeferCleanup(func(ctx context.Context) {
		ground.Kubectl(ctx, "delete", "visitorsapps", "--all", "--all-namespaces", "--timeout="+waitTimeout.String())
		end()
		ground.Delete(ctx, crd)
		ground.Gone(ctx, crd)
	})
}

func conditionOf(cr *unstructured.Unstructured, of string) func(context.Context) (harness.Condition, error) {
	return func(ctx context.Context) (harness.Condition, error) {
		now := cr.DeepCopy()
		err := ground.Client.Get(ctx, client.ObjectKeyFromObject(cr), now)
		return harness.ConditionOf(now, of), err
	}
}

var _ = DescribeTable("other owners' objects stay as they are through the life of a VisitorsApp", func(ctx context.Context, variant string) {
	runsOf(ctx, variant)
	app := lobby(ground.Namespace(ctx))
	ground.Create(ctx, app)
	var own []*unstructured.Unstructured
	Eventually(ctx, func() []*unstructured.Unstructured {
		own = slices.DeleteFunc(ground.Owned(ctx, app, ofSites...), func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "sh.helm.release.") })
		return own
	}).Should(HaveLen(8))
	// A StatefulSet would take the pod up, and replace it.
	claim := own[slices.IndexFunc(own, func(o *unstructured.Unstructured) bool { return o.GetKind() == "PersistentVolumeClaim" })].DeepCopy()
	pod := harness.Custom(schema.GroupKind{Kind: "Pod"}, "", "lobby-mysql-0", map[string]any{"containers": []any{map[string]any{"name": "c", "image": "none"}}})
	pod.SetLabels(claim.GetLabels())
	refused := ground.Strangers(ctx, app, append(own, pod)...)
	// These are in nobody's way.
	claim.SetName("data-lobby-mysql-0")
	beside := pod.DeepCopy()
	beside.SetName("beside")
	all := append(refused, ground.Strangers(ctx, app, claim, beside)...)

	By("runs that are refused, before and after a change of the spec")
	good, bad, isBad := "Successful", "Failure", "True"
	if variant == "go" {
		good, bad, isBad = "Ready", "Ready", "False"
	}
	reported := func(generation int64) func(*site.Stranger) types.GomegaMatcher {
		return func(s *site.Stranger) types.GomegaMatcher {
			about := HaveField("Generation", generation)
			if !slices.Contains(refused, s) {
				return site.Condition(good, And(HaveField("Status", "True"), about))
			}
			return site.Condition(bad, And(HaveField("Status", isBad), about,
				HaveField("Message", And(ContainSubstring(s.Object.GetKind()), ContainSubstring(s.Object.GetName())))))
		}
	}
	ground.Settle(ctx, all, reported(1))
	for _, s := range all {
		s.Change(ctx, `{"size": 3}`)
	}
	ground.Settle(ctx, all, reported(2))
	By("the end")
	ground.DeleteStrangersCRs(ctx, all)
	for _, s := range all {
		s.IsUnchanged(ctx)
	}
}, Entry("of the role", "ansible"), Entry("of the chart", Label("long"), "helm"), Entry("of the operator in Go", Label("long"), "go"))

var _ = It("takes a Secret of a VisitorsApp up that was lost and restored", func(ctx context.Context) {
	runsOf(ctx, "ansible")
	app := lobby(ground.Namespace(ctx))
	space := "--namespace=" + app.GetNamespace()
	ground.Create(ctx, app)
	Eventually(ctx, conditionOf(app, "Ready")).Should(HaveField("Status", "True"))
	ground.Kubectl(ctx, "delete", "secret", "lobby-mysql", space)

	By("one message, and no Ready of an earlier generation")
	ground.Kubectl(ctx, "patch", "visitorsapp", "lobby", space, "--type=merge", `--patch={"spec": {"size": 3}}`)
	Eventually(ctx, conditionOf(app, "Failure")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2)), HaveField("Message", And(
		ContainSubstring("Secret "+app.GetNamespace()+"/lobby-mysql is gone"), ContainSubstring("Restore the Secret with its keys password and root-password")))))
	Expect(conditionOf(app, "Ready")(ctx)).To(And(HaveField("Status", "False"), HaveField("Reason", "RunFailed"), HaveField("Generation", int64(2))))

	By("the next run, which the Secret triggers")
	ground.Kubectl(ctx, "create", "secret", "generic", "lobby-mysql", space, "--from-literal=password=a", "--from-literal=root-password=b")
	Eventually(ctx, conditionOf(app, "Ready")).Should(And(HaveField("Status", "True"), HaveField("Generation", int64(2))))
	Expect(ground.Kubectl(ctx, "get", "secret", "lobby-mysql", space, "--output=jsonpath={.data.password} {.metadata.ownerReferences[0].uid}")).To(Equal("YQ== " + string(app.GetUID())))

	By("none that belongs to somebody else")
	ground.Kubectl(ctx, "delete", "secret", "lobby-mysql", space)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: app.GetNamespace(), Name: "theirs"}}
	ground.Create(ctx, theirs)
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: theirs.Name, UID: theirs.UID}
	ground.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.GetNamespace(), Name: "lobby-mysql", OwnerReferences: []metav1.OwnerReference{owner}}})
	Eventually(ctx, conditionOf(app, "Failure")).Should(HaveField("Message", ContainSubstring("lobby-mysql exists and belongs to ConfigMap theirs, not to VisitorsApp lobby")))
})
