// Package user does what users, and other writers, do to the custom resource of a
// trial, past the manager and its proxy.
package user

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/kinds"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

const look = 50 * time.Millisecond

// User acts on one resource by its name.
type User struct {
	Client          client.Client
	Kind, Namespace string
	Name            string
}

// object is the resource without its content.
func (u User) object() *unstructured.Unstructured {
	cr := &unstructured.Unstructured{}
	cr.SetAPIVersion(kinds.Group + "/" + kinds.Version)
	cr.SetKind(u.Kind)
	cr.SetNamespace(u.Namespace)
	cr.SetName(u.Name)
	return cr
}

// Create makes the resource. size tells one spec from the other.
func (u User) Create(ctx context.Context, size int64, script stub.Script) (types.UID, error) {
	play, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&script)
	if err != nil {
		return "", fmt.Errorf("write the script: %w", err)
	}
	cr := u.object()
	cr.Object["spec"] = map[string]any{"size": size, "play": play}
	if err := u.Client.Create(ctx, cr); err != nil {
		return "", fmt.Errorf("create the resource: %w", err)
	}
	return cr.GetUID(), nil
}

// Fetch returns the resource as it is, nil when there is none.
func (u User) Fetch(ctx context.Context) (*unstructured.Unstructured, error) {
	cr := u.object()
	err := u.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // That there is none is an answer.
	}
	if err != nil {
		return nil, fmt.Errorf("read the resource: %w", err)
	}
	return cr, nil
}

// Delete asks for the resource's end. There may be none.
func (u User) Delete(ctx context.Context) error {
	if err := client.IgnoreNotFound(u.Client.Delete(ctx, u.object())); err != nil {
		return fmt.Errorf("delete the resource: %w", err)
	}
	return nil
}

// AwaitGone waits until there is no resource of the name.
func (u User) AwaitGone(ctx context.Context, limit time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, look, limit, true, func(ctx context.Context) (bool, error) {
		cr, err := u.Fetch(ctx)
		return err == nil && cr == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait until the resource is gone: %w", err)
	}
	return nil
}

// Update changes the spec.
func (u User) Update(ctx context.Context) error {
	err := u.change(ctx, func(cr *unstructured.Unstructured) error {
		size, _, err := unstructured.NestedInt64(cr.Object, "spec", "size")
		if err != nil {
			return err
		}
		return unstructured.SetNestedField(cr.Object, size+10, "spec", "size")
	})
	if err != nil {
		return fmt.Errorf("change the resource: %w", err)
	}
	return nil
}

// Repair changes the script: only one more run fails.
func (u User) Repair(ctx context.Context) error {
	err := u.change(ctx, func(cr *unstructured.Unstructured) error {
		return unstructured.SetNestedSlice(cr.Object, []any{string(stub.FailedTask)}, "spec", "play", "failures")
	})
	if err != nil {
		return fmt.Errorf("repair the resource: %w", err)
	}
	return nil
}

// change edits the resource as it is.
func (u User) change(ctx context.Context, edit func(*unstructured.Unstructured) error) error {
	return u.write(ctx, edit, func(ctx context.Context, cr *unstructured.Unstructured) error { return u.Client.Update(ctx, cr) })
}

// write edits the resource as it is, until nobody is faster.
func (u User) write(ctx context.Context, edit func(*unstructured.Unstructured) error, send func(context.Context, *unstructured.Unstructured) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cr := u.object()
		if err := u.Client.Get(ctx, client.ObjectKeyFromObject(cr), cr); err != nil {
			return err
		}
		if err := edit(cr); err != nil {
			return err
		}
		return send(ctx, cr)
	})
}
