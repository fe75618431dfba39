package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
)

func TestOnlyNamespacesThatAreSurelyMissingAreNamed(t *testing.T) {
	kube := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(action kubetesting.Action) (bool, runtime.Object, error) {
		review := action.(kubetesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = review.Spec.ResourceAttributes.Name != "hidden"
		return true, review, nil
	})
	if diff := cmp.Diff([]string{"nope"}, missingNamespaces(t.Context(), kube, []string{"hidden", "nope", "shop"})); diff != "" {
		t.Error(diff)
	}
	for _, action := range kube.Actions() {
		if get, is := action.(kubetesting.GetAction); is && get.GetName() == "hidden" {
			t.Error("a namespace is read without the right to")
		}
	}
}
