package operator

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// lookForNamespaces warns of watched namespaces that the cluster does not have: nothing would run,
// and nothing would say why. They may be created later.
func (c *components) lookForNamespaces(ctx context.Context) error {
	if len(c.namespaces) == 0 {
		return nil
	}
	kube, err := kubernetes.NewForConfig(c.client)
	if err != nil {
		return fmt.Errorf("use the kubeconfig: %w", err)
	}
	if missing := missingNamespaces(ctx, kube, c.namespaces); len(missing) > 0 {
		c.options.Logger.Info("WARNING: the cluster does not have these watched namespaces, so nothing runs there; correct their names, or create them", "namespaces", missing)
	}
	return nil
}

// missingNamespaces returns those that the cluster does not have. It reads only those that it may
// read, and leaves out those of which it learns nothing.
func missingNamespaces(ctx context.Context, kube kubernetes.Interface, names []string) (missing []string) {
	for _, name := range names {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: name, Name: name, Verb: "get", Resource: "namespaces"},
		}}
		answer, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil || !answer.Status.Allowed {
			continue
		}
		if _, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			missing = append(missing, name)
		}
	}
	return missing
}
