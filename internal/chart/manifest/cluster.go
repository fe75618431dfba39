package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// ErrNotServed is the error for an object of a kind that the API server no longer serves in any
// version: such an object is gone.
var ErrNotServed = errors.New("the API server does not serve the kind")

// Cluster finds the objects of a manifest at an API server.
type Cluster struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
	// Discovery asks the API server. A mapper may know kinds that are not served any more, and leaves
	// out a group whose API service is down.
	Discovery interface {
		ServerGroups() (*metav1.APIGroupList, error)
		ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	}
	// Namespace is that of objects that name none.
	Namespace string
}

// NewCluster returns the cluster of a config.
func NewCluster(config *rest.Config, mapper meta.RESTMapper, namespace string) (*Cluster, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("use the kubeconfig of the run: %w", err)
	}
	return &Cluster{Client: client, Mapper: mapper, Discovery: served, Namespace: namespace}, nil
}

// Find returns the client for an object, and sets or clears the object's namespace. The error wraps
// meta.NoKindMatchError where the mapper does not know the kind.
func (c *Cluster) Find(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", Name(object), err)
	}
	return c.client(object, mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace), nil
}

func (c *Cluster) client(object *unstructured.Unstructured, resource schema.GroupVersionResource, namespaced bool) dynamic.ResourceInterface {
	if !namespaced {
		object.SetNamespace("") // Some charts set one for cluster-scoped objects.
		return c.Client.Resource(resource)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(c.Namespace)
	}
	return c.Client.Resource(resource).Namespace(object.GetNamespace())
}

// Get reads the object that a manifest describes, and returns its client; nil and no error if it
// is surely gone. If its kind is served in another version only, the object gets that version.
func (c *Cluster) Get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	client, err := c.Find(object)
	var live *unstructured.Unstructured
	if err == nil {
		live, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
	}
	if meta.IsNoMatchError(err) || isNoResource(err) {
		if client, err = c.FindServed(object); err == nil {
			live, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
		}
	}
	switch {
	case errors.Is(err, ErrNotServed), apierrors.IsNotFound(err) && !isNoResource(err):
		return nil, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", Name(object), err)
	}
	return live, client, nil
}

// isNoResource reports whether the API server does not have the resource: that says nothing about
// the object.
func isNoResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// FindServed is Find by the API server's discovery. It sets a served version of the object's kind. The
// error is ErrNotServed, or an error of the discovery.
func (c *Cluster) FindServed(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	groups, err := c.Discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("find the kind of %s: %w", Name(object), err)
	}
	for _, group := range groups.Groups {
		if group.Name != kind.Group {
			continue
		}
		for _, version := range group.Versions {
			served, err := c.Discovery.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("find the kind of %s: %w", Name(object), err)
			}
			if resource := find(served, kind.Kind); resource != nil {
				object.SetAPIVersion(version.GroupVersion)
				return c.client(object, object.GroupVersionKind().GroupVersion().WithResource(resource.Name), resource.Namespaced), nil
			}
		}
	}
	return nil, fmt.Errorf("%w %s of %s", ErrNotServed, kind.GroupKind(), Name(object))
}

func find(served *metav1.APIResourceList, kind string) *metav1.APIResource {
	if served == nil {
		return nil
	}
	for i, resource := range served.APIResources {
		if resource.Kind == kind && !strings.Contains(resource.Name, "/") {
			return &served.APIResources[i]
		}
	}
	return nil
}

// Name returns the kind of an object with its namespace and name, for people.
func Name(object *unstructured.Unstructured) string {
	name := object.GetName()
	if name == "" && object.GetGenerateName() != "" {
		name = object.GetGenerateName() + "…"
	}
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+name, "/")
}
