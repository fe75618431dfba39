// Package v1 has the admission webhooks of the kinds in version v1.
package v1

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	cachev1 "github.com/ensign-operator/ensign/examples/hybrid/api/v1"
)

// largest is the most servers that a MemcachedBackup may have.
const largest = 5

// +kubebuilder:webhook:path=/validate-cache-my-domain-v1-memcachedbackup,mutating=false,failurePolicy=fail,sideEffects=None,groups=cache.my.domain,resources=memcachedbackups,verbs=create;update,versions=v1,name=memcachedbackups.cache.my.domain,admissionReviewVersions=v1,serviceName=webhook,serviceNamespace=system

// SetupMemcachedBackupWebhookWithManager adds the webhook to the manager's server.
func SetupMemcachedBackupWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &cachev1.MemcachedBackup{}).WithValidator(&validator{}).Complete()
}

type validator struct{}

func (v *validator) ValidateCreate(_ context.Context, backup *cachev1.MemcachedBackup) (admission.Warnings, error) {
	if backup.Spec.Size > largest {
		return nil, fmt.Errorf("spec.size is %d, and at most %d is allowed", backup.Spec.Size, largest)
	}
	return nil, nil
}

func (v *validator) ValidateUpdate(ctx context.Context, _, backup *cachev1.MemcachedBackup) (admission.Warnings, error) {
	if !backup.DeletionTimestamp.IsZero() {
		return nil, nil // Whatever its size, it may go.
	}
	return v.ValidateCreate(ctx, backup)
}

func (v *validator) ValidateDelete(context.Context, *cachev1.MemcachedBackup) (admission.Warnings, error) {
	return nil, nil
}
