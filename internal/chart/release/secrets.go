package release

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// secrets reads each Secret once: only the run writes records that count. Records name their CR by annotations. It
// does not create records that are larger than the API server accepts, whose refusal names neither the cause nor a
// remedy.
type secrets struct {
	clientv1.SecretInterface

	annotations map[string]string

	mu   sync.Mutex // Helm writes the end of an attempt from a second goroutine.
	seen map[string]*corev1.Secret
}

// Get implements clientv1.SecretInterface.
func (s *secrets) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	found := s.seen[name]
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	found, err := s.SecretInterface.Get(ctx, name, o)
	return s.keep(name, found, err)
}

// Create implements clientv1.SecretInterface.
func (s *secrets) Create(ctx context.Context, secret *corev1.Secret, o metav1.CreateOptions) (*corev1.Secret, error) {
	if size := len(secret.Data["release"]); size > corev1.MaxSecretSize-growth {
		return nil, tooLarge(size, "and a Secret holds 1 MiB")
	}
	secret.Annotations = s.annotations
	made, err := s.SecretInterface.Create(ctx, secret, o)
	return s.keep(secret.Name, made, err)
}

// Update implements clientv1.SecretInterface.
func (s *secrets) Update(ctx context.Context, secret *corev1.Secret, o metav1.UpdateOptions) (*corev1.Secret, error) {
	secret.Annotations = s.annotations
	made, err := s.SecretInterface.Update(ctx, secret, o)
	return s.keep(secret.Name, made, err)
}

// keep keeps the API server's answer about a Secret, or forgets it.
func (s *secrets) keep(name string, found *corev1.Secret, err error) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]*corev1.Secret{}
	}
	s.seen[name] = found
	if err != nil {
		delete(s.seen, name)
	}
	return found, err
}
