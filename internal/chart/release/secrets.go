package release

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// secretsWithContext lists with a context that ends, which Helm's storage does not have.
type secretsWithContext struct {
	clientv1.SecretInterface

	ctx context.Context //nolint:containedctx // It is that of the one call that the value is made for.
}

// List implements clientv1.SecretInterface.
func (s secretsWithContext) List(_ context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	return s.SecretInterface.List(s.ctx, options)
}
