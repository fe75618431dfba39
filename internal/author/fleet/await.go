package fleet

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Await waits until the order that Give wrote as the version has been carried out, and returns the
// outcome of the run; the zero outcome after Suspend and Cancel.
func (o Order) Await(ctx context.Context, c client.WithWatch, kind kinds.Kind, name types.NamespacedName, version string) (content.Outcome, error) {
	if !kind.ManageStatus {
		return content.Outcome{}, errors.New("the watch has manageStatus: false, so the status does not show the end of the run; leave --wait out")
	}
	if o.Verb != Suspend && o.Verb != Cancel && dropsRequest(ctx, c, kind) {
		return content.Outcome{}, errors.New("the schema of the CRD drops status.reconcileRequestedAt, so nothing shows when the run is over: set x-kubernetes-preserve-unknown-fields: true on the status in the CRD, or embed content.Status in its type in Go")
	}
	if namespaced, err := c.IsObjectNamespaced(emptyOf(kind)); err != nil || !namespaced {
		name.Namespace = metav1.NamespaceAll
	}
	last := emptyOf(kind)
	over := func(event watch.Event) (bool, error) {
		cr, ok := event.Object.(*unstructured.Unstructured)
		switch {
		case !ok:
			return false, nil
		case event.Type == watch.Deleted:
			return false, errors.New("it was deleted")
		case isOlder(cr, version):
			return false, nil
		}
		last = cr
		return o.over(kind, cr)
	}
	target := Target{Kind: kind, Name: name.Name}
	_, err := watchtools.UntilWithSync(ctx, listWatch(c, target, name.Namespace), emptyOf(kind), nil, over)
	switch {
	case err != nil && ctx.Err() != nil:
		return content.Outcome{}, o.late(ctx, kind, last)
	case err != nil:
		return content.Outcome{}, err
	case o.Verb == Suspend, o.Verb == Cancel:
		return content.Outcome{}, nil
	}
	return status.Last(last), nil
}

// dropsRequest reports whether the CRD of the kind has a schema without the field by which a status
// shows that a requested run is over. It returns false if CRDs may not be read: then the caller
// waits.
func dropsRequest(ctx context.Context, c client.WithWatch, kind kinds.Kind) bool {
	mapping, err := c.RESTMapper().RESTMapping(kind.GVK.GroupKind(), kind.GVK.Version)
	if err != nil {
		return false
	}
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := c.Get(ctx, types.NamespacedName{Name: mapping.Resource.GroupResource().String()}, crd); err != nil {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["name"] != kind.GVK.Version {
			continue
		}
		root, _, _ := unstructured.NestedMap(fields, "schema", "openAPIV3Schema")
		ofStatus, _, _ := unstructured.NestedMap(root, "properties", "status")
		_, has, _ := unstructured.NestedMap(ofStatus, "properties", "reconcileRequestedAt")
		return !has && ofStatus["x-kubernetes-preserve-unknown-fields"] != true && root["x-kubernetes-preserve-unknown-fields"] != true
	}
	return false
}

// isOlder reports whether an object is from before the version: a list may come from a cache, in
// which an earlier pause still shows.
func isOlder(cr *unstructured.Unstructured, version string) bool {
	order, err := resourceversion.CompareResourceVersion(cr.GetResourceVersion(), version)
	return err == nil && order < 0
}

func emptyOf(kind kinds.Kind) *unstructured.Unstructured {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(kind.GVK)
	return cr
}

// late returns the error of a wait that was too short, with the last state of the CR.
func (o Order) late(ctx context.Context, kind kinds.Kind, last *unstructured.Unstructured) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	row := RowOf(kind, 0, last)
	what := "no run for this request has ended"
	switch o.Verb {
	case Suspend:
		what = "no pause is shown"
	case Cancel:
		what = "the run has not ended"
	}
	return fmt.Errorf("%s within --timeout; the resource is %s. Check that the operator runs, and that the CRD's schema keeps the status", what, row.Outcome)
}
