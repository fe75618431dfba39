package trial

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// user does what users, and other writers, do to one resource, past the manager and
// its proxy.
type user struct {
	client          client.Client
	kind, namespace string
	name            string
}

// object is the resource with this spec.
func (u user) object(spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(schema.GroupKind{Group: group, Kind: u.kind}, u.namespace, u.name, spec)
}

// create makes the resource. size tells one spec from the other.
func (u user) create(ctx context.Context, size int64, script stub.Script) (types.UID, error) {
	play, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&script)
	if err != nil {
		return "", fmt.Errorf("write the script: %w", err)
	}
	cr := u.object(map[string]any{"size": size, "play": play})
	if err := u.client.Create(ctx, cr); err != nil {
		return "", fmt.Errorf("create the resource: %w", err)
	}
	return cr.GetUID(), nil
}

// fetch returns the resource as it is, nil when there is none.
func (u user) fetch(ctx context.Context) (*unstructured.Unstructured, error) {
	cr := u.object(nil)
	err := u.client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if err != nil {
		return nil, fmt.Errorf("read the resource: %w", err)
	}
	return cr, nil
}

// delete asks for the resource's end. There may be none.
func (u user) delete(ctx context.Context) error {
	if err := client.IgnoreNotFound(u.client.Delete(ctx, u.object(nil))); err != nil {
		return fmt.Errorf("delete the resource: %w", err)
	}
	return nil
}

// becomes waits until the resource, nil when there is none, is like this.
func (u user) becomes(ctx context.Context, limit time.Duration, like func(*unstructured.Unstructured) bool) error {
	return wait.PollUntilContextTimeout(ctx, look, limit, true, func(ctx context.Context) (bool, error) {
		cr, err := u.fetch(ctx)
		return err == nil && like(cr), nil
	})
}

// update changes the spec.
func (u user) update(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		size, _, err := unstructured.NestedInt64(cr.Object, "spec", "size")
		if err != nil {
			return err
		}
		return unstructured.SetNestedField(cr.Object, size+10, "spec", "size")
	})
}

// repair changes the script: only one more run fails.
func (u user) repair(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(cr.Object, []any{string(stub.FailedTask)}, "spec", "play", "failures")
	})
}

// change edits the resource as it is, but for its status. Nobody else changes at the
// same time what the edits are about.
func (u user) change(ctx context.Context, edit func(*unstructured.Unstructured) error) error {
	cr := u.object(nil)
	if err := u.client.Get(ctx, client.ObjectKeyFromObject(cr), cr); err != nil {
		return fmt.Errorf("change the resource: %w", err)
	}
	before := cr.DeepCopy()
	if err := edit(cr); err != nil {
		return fmt.Errorf("change the resource: %w", err)
	}
	if err := u.client.Patch(ctx, cr, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("change the resource: %w", err)
	}
	return nil
}

// rivalFinalizer is another writer's. It comes first in the list, so that ours has
// another place in it than before.
const rivalFinalizer = group + "/other"

// rivalCondition is another writer's. It comes first too.
func rivalCondition() map[string]any {
	return map[string]any{"type": "Foreign", "status": "True", "reason": "Race", "message": "another writer's", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

// rivalAddsFinalizer is another writer's change of the finalizers.
func (u user) rivalAddsFinalizer(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetFinalizers(append([]string{rivalFinalizer}, cr.GetFinalizers()...))
		return nil
	})
}

// rivalLetsGo takes the other writer's finalizer away when it is the last one of a
// resource that is being deleted. It waits for that, within bounds: what is missing
// will be told at the end.
func (u user) rivalLetsGo(ctx context.Context) error {
	alone := func(cr *unstructured.Unstructured) bool {
		return cr != nil && cr.GetDeletionTimestamp() != nil && slices.Equal(cr.GetFinalizers(), []string{rivalFinalizer})
	}
	if err := u.becomes(ctx, 2*time.Minute, alone); err != nil {
		return nil //nolint:nilerr // See above.
	}
	return client.IgnoreNotFound(u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetFinalizers(nil)
		return nil
	}))
}

// rivalSetsLabel is another writer's change of what concerns nobody.
func (u user) rivalSetsLabel(ctx context.Context) error {
	return u.change(ctx, func(cr *unstructured.Unstructured) error {
		cr.SetLabels(map[string]string{"race": "lost"})
		return nil
	})
}

// rivalSetsCondition is another writer's change of the status.
func (u user) rivalSetsCondition(ctx context.Context) error {
	cr, err := u.fetch(ctx)
	if err != nil || cr == nil {
		return err
	}
	before := cr.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(cr.Object, "status", "conditions")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedSlice(cr.Object, append([]any{rivalCondition()}, conditions...), "status", "conditions"); err != nil {
		return err
	}
	return u.client.Status().Patch(ctx, cr, client.MergeFrom(before))
}
