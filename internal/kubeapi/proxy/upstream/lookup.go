package upstream

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Metadata returns the live object with only its type and metadata; nil where there is no
// such object. An error of the API server is returned unwrapped.
func (u *Upstream) Metadata(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	live, err := u.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of %s %q: %w", resource.Resource, name, err)
	}
	return object, nil
}

// PatchMetadata changes an object by a JSON patch, and returns its metadata like Metadata.
func (u *Upstream) PatchMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, patch []byte) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	live, err := u.metadata.Resource(resource).Namespace(namespace).Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "ensign"})
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(live)
}

// Object returns the live object; nil where there is no such object. An error of the API server is
// returned unwrapped.
func (u *Upstream) Object(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	live, err := u.objects.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return live.Object, nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
