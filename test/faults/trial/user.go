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
}

// object is the resource with this spec.
func (u user) object(spec map[string]any) *unstructured.Unstructured {
	return harness.Custom(schema.GroupKind{Group: group, Kind: u.kind}, u.namespace, "subject", spec)
}

// create makes the resource. Its size tells one spec from the other.
func (u user) create(ctx context.Context, script stub.Script) (uid string, err error) {
	play, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&script)
	if err != nil {
		return "", fmt.Errorf("write the script: %w", err)
	}
	cr := u.object(map[string]any{"size": time.Now().UnixMilli(), "play": play})
	if err := u.client.Create(ctx, cr); err != nil {
		return "", fmt.Errorf("create the resource: %w", err)
	}
	return string(cr.GetUID()), nil
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

// patch merges JSON into the resource.
func (u user) patch(ctx context.Context, format string, args ...any) error {
	merge := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	if err := u.client.Patch(ctx, u.object(nil), merge); err != nil {
		return fmt.Errorf("change the resource: %w", err)
	}
	return nil
}

// update changes the spec.
func (u user) update(ctx context.Context) error {
	return u.patch(ctx, `{"spec": {"size": %d}}`, time.Now().UnixMilli())
}

// rivalFinalizer is another writer's. It comes first in the list, so that ours has
// another place in it than before.
const rivalFinalizer = group + "/other"

// rivalCondition is another writer's. It comes first too.
func rivalCondition() map[string]any {
	return map[string]any{"type": "Foreign", "status": "True", "reason": "Race", "message": "another writer's", "lastTransitionTime": "2026-01-02T03:04:05Z"}
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
	return client.IgnoreNotFound(u.patch(ctx, `{"metadata": {"finalizers": null}}`))
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
