package engine

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// kindIn is a kind of objects, in a namespace or, if that is "", in the cluster.
type kindIn struct {
	schema.GroupVersionResource

	namespace string
}

// mayMake reports whether the account of the run may create or delete objects of the kind. Then objects
// of the release can exist that the account may not read; otherwise there are none of the kind.
func (f found) mayMake(ctx context.Context, kind kindIn) (bool, error) {
	if may, known := f.may[kind]; known {
		return may, nil
	}
	client, err := clientv1.NewForConfig(f.config)
	if err != nil {
		return false, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	may := false
	for _, verb := range []string{"delete", "create"} {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: kind.namespace, Verb: verb, Group: kind.Group, Version: kind.Version, Resource: kind.Resource,
		}}}
		answer, err := client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask whether the account may %s %s: %w", verb, kind.GroupResource(), err)
		}
		if may = answer.Status.Allowed; may {
			break
		}
	}
	f.may[kind] = may
	return may, nil
}
