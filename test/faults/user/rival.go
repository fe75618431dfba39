package user

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/kinds"
)

// RivalFinalizer is another writer's. It comes first in the list, so that ours has
// another place in it than before.
const RivalFinalizer = kinds.Group + "/other"

// RivalCondition is another writer's. It comes first too.
func RivalCondition() map[string]any {
	return map[string]any{"type": "Foreign", "status": "True", "reason": "Race", "message": "another writer's", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

// RivalAddsFinalizer is another writer's change of the finalizers.
func (u User) RivalAddsFinalizer(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetFinalizers(append([]string{RivalFinalizer}, cr.GetFinalizers()...))
		return nil
	})
}

// RivalLetsGo takes the other writer's finalizer away when it is the last one of a
// resource that is being deleted. It waits for that, within bounds.
func (u User) RivalLetsGo(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, look, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		cr, err := u.Fetch(ctx)
		return err == nil && cr != nil && cr.GetDeletionTimestamp() != nil && slices.Equal(cr.GetFinalizers(), []string{RivalFinalizer}), nil
	})
	if err != nil {
		return nil //nolint:nilerr // What is missing will be told at the end.
	}
	return client.IgnoreNotFound(u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetFinalizers(nil)
		return nil
	}))
}

// RivalSetsLabel is another writer's change of what concerns nobody.
func (u User) RivalSetsLabel(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetLabels(map[string]string{"race": "lost"})
		return nil
	})
}

// RivalSetsCondition is another writer's change of the status.
func (u User) RivalSetsCondition(ctx context.Context) error {
	return u.write(ctx, func(cr *unstructured.Unstructured) error {
		conditions, _, err := unstructured.NestedSlice(cr.Object, "status", "conditions")
		if err != nil {
			return err
		}
		return unstructured.SetNestedSlice(cr.Object, append([]any{RivalCondition()}, conditions...), "status", "conditions")
	}, func(ctx context.Context, cr *unstructured.Unstructured) error {
		return u.Client.Status().Update(ctx, cr)
	})
}
