package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/watches"
)

// pageSize is how many objects one answer of the API server holds.
const pageSize = 500

// held returns a line for each CR that has the finalizer of its watch: only an operator
// with this watches file can delete it. It needs no Python environment and the right to
// list the watched kinds, and looks in the namespaces of WATCH_NAMESPACE.
func held(ctx context.Context, o config.Options) ([]string, error) {
	o.Logger = logr.Discard() // The manager has warned of the settings; the result that counts here is returned.
	list, err := operator.Watches(o)
	if err != nil {
		return nil, err
	}
	c, err := Connect(o)
	if err != nil {
		return nil, err
	}
	namespaces := o.Env.Namespaces()
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []string
	for _, watch := range list {
		if watch.Finalizer == nil {
			continue
		}
		for _, namespace := range namespaces {
			found, err := heldOf(ctx, c, watch, namespace)
			if err != nil {
				return nil, fmt.Errorf("list the %s objects: %w", watch.GVK.Kind, err)
			}
			all = append(all, found...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil // A cluster-scoped object is found for each namespace.
}

// heldOf returns the lines for the CRs of one watch in one namespace. A kind that is not
// served has no objects.
func heldOf(ctx context.Context, c client.Client, watch watches.Watch, namespace string) ([]string, error) {
	var held []string
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(watch.GVK.GroupVersion().WithKind(watch.GVK.Kind + "List"))
	for {
		err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(page.Continue))
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object := &page.Items[i]
			if at := slices.IndexFunc(object.Finalizers, watch.Finalizer.Is); at >= 0 {
				held = append(held, fmt.Sprintf("%s %s has the finalizer %s", watch.GVK.GroupKind(), client.ObjectKeyFromObject(object), object.Finalizers[at]))
			}
		}
		if page.Continue == "" {
			return held, nil
		}
	}
}
