package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

const testGroup = "test.ensign.io"

// definition returns a CRD of the tests' group.
func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	return harness.Definition(schema.GroupKind{Group: testGroup, Kind: kind})
}

// newNamespace makes a namespace for one spec. It is deleted with the cluster.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	Expect(k8s.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// custom returns an object of the tests' group.
func custom(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: testGroup, Version: "v1", Kind: kind})
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func fetch(ctx context.Context, object client.Object) error {
	return k8s.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// condition is what a condition of a CR says, in one comparable value.
type condition struct {
	Status, Reason, Message string
	Generation              int64
}

// conditionOf reads the CR and gives one of its conditions; the zero value where
// it has none.
func conditionOf(object *unstructured.Unstructured, kind string) func(context.Context) (condition, error) {
	return func(ctx context.Context) (condition, error) {
		current := object.DeepCopy()
		if err := fetch(ctx, current); err != nil {
			return condition{}, err
		}
		list, _, err := unstructured.NestedSlice(current.Object, "status", "conditions")
		if err != nil {
			return condition{}, err
		}
		for _, item := range list {
			if c, ok := item.(map[string]any); ok && c["type"] == kind {
				generation, _ := c["observedGeneration"].(int64)
				return condition{c["status"].(string), c["reason"].(string), c["message"].(string), generation}, nil
			}
		}
		return condition{}, nil
	}
}

// expectSuccess waits until the CR's current generation is reported as successful.
func expectSuccess(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	current := object.DeepCopy()
	Expect(fetch(ctx, current)).To(Succeed())
	Eventually(ctx, conditionOf(object, "Successful")).Should(Equal(condition{
		"True", "Successful", "Last reconciliation succeeded", current.GetGeneration(),
	}))
}

// expectFailure waits until the CR fails for the reason, and gives the message.
func expectFailure(ctx context.Context, object *unstructured.Unstructured, reason string) string {
	GinkgoHelper()
	var failure condition
	Eventually(ctx, func(ctx context.Context) (string, error) {
		var err error
		failure, err = conditionOf(object, "Failure")(ctx)
		return failure.Status + "/" + failure.Reason, err
	}).Should(Equal("True/" + reason))
	return failure.Message
}

// expectGone waits until the object is no more.
func expectGone(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(errorIfFound(fetch(ctx, object.DeepCopyObject().(client.Object))))
	}).Should(Succeed())
}

type stillThereError struct{}

func (stillThereError) Error() string { return "the object is still there" }

func errorIfFound(err error) error {
	if err == nil {
		return stillThereError{}
	}
	return err
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
