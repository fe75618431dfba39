package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

// unrecorded returns the objects that have the label of a chart and are children of the CR, but
// cannot go with it by an owner reference. They are cluster-scoped, or in a namespace of the
// release that is not the CR's. A CR that never had a release has none.
func (w *work) unrecorded(ctx context.Context, f found) (r remainingObjects, err error) {
	if !w.hadRelease() && len(f.history.Revisions) == 0 {
		return r, nil
	}
	served, err := discovery.NewDiscoveryClientForConfig(f.config)
	if err != nil {
		return r, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	client, err := metadata.NewForConfig(f.config)
	if err != nil {
		return r, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	// An error is about groups that cannot be asked now; the others are in the answer.
	groups, err := served.ServerPreferredResources()
	if groups == nil && err != nil {
		return r, fmt.Errorf("look for objects of a release without a record: %w", err)
	}
	for _, kind := range w.unreferenced(groups) {
		items, err := f.labelled(ctx, client, kind)
		if err != nil {
			return r, fmt.Errorf("look for objects of a release without a record: %w", err)
		}
		for i := range items {
			if one := &items[i]; w.mustRemove(one) && w.isReleases(kind, one) {
				name := strings.TrimPrefix(one.GetNamespace()+"/"+one.GetName(), "/")
				r.add(kind.name+" "+name, one, f.cluster.Client.Resource(kind.resource).Namespace(kind.namespace), nil)
			}
		}
	}
	return r, nil
}

// listed is a kind whose objects are listed, in a namespace or, if that is "", those of the
// cluster.
type listed struct {
	name, namespace string
	resource        schema.GroupVersionResource
}

// labelled returns the objects of a kind that have the label of a chart. There are none of a kind that the run may
// neither list nor make.
func (f found) labelled(ctx context.Context, client metadata.Interface, kind listed) ([]metav1.PartialObjectMetadata, error) {
	list, err := client.Resource(kind.resource).Namespace(kind.namespace).List(ctx, metav1.ListOptions{LabelSelector: order.ChartLabel})
	if apierrors.IsForbidden(err) {
		may, mayErr := f.mayMake(ctx, kindIn{kind.resource, kind.namespace})
		if mayErr == nil && !may {
			return nil, nil
		}
		err = errors.Join(err, mayErr)
	}
	if isNone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// isReleases reports whether the object goes with the release. CRDs of a chart's directory crds, which
// do not have Helm's annotations, outlive it: other clients may have objects of these kinds.
func (w *work) isReleases(kind listed, one *metav1.PartialObjectMetadata) bool {
	isDefinition := kind.resource.Group == "apiextensions.k8s.io" && kind.resource.Resource == "customresourcedefinitions"
	return !isDefinition || objects.BelongsTo(one, w.namespace, w.name)
}

// isNone reports whether the answer to a list means that there is nothing of the release.
func isNone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// unreferenced returns the kinds whose objects cannot refer to the CR as their owner.
func (w *work) unreferenced(groups []*metav1.APIResourceList) []listed {
	var found []listed
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range group.APIResources {
			kind := listed{name: resource.Kind, resource: version.WithResource(resource.Name)}
			if resource.Namespaced {
				kind.namespace = w.namespace
			}
			refers := w.cr.GetNamespace() == "" || kind.namespace == w.cr.GetNamespace()
			if !refers && slices.Contains(resource.Verbs, "list") && slices.Contains(resource.Verbs, "delete") {
				found = append(found, kind)
			}
		}
	}
	return found
}
