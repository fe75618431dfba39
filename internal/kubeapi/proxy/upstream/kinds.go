package upstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindCache has the kinds that discovery has returned so far.
type kindCache struct {
	discovery interface {
		ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	}

	mu         sync.Mutex
	byResource map[schema.GroupVersionResource]Kind
}

// Kind is a resource as discovery returns it.
type Kind struct {
	Kind string
	// Virtual is true for a kind whose objects are not stored, such as TokenReview: they can be
	// created but not read.
	Virtual bool
}

// Kind returns the kind of the resource. It is the zero Kind if the API server does not serve the
// resource or does not let the manager see it. Kind asks discovery once for each group version.
func (u *Upstream) Kind(ctx context.Context, resource schema.GroupVersionResource) (Kind, error) {
	if kind, ok := u.kinds.get(resource); ok {
		return kind, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	served, err := u.kinds.discovery.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return Kind{}, nil // The API server itself decides about the request.
	case err != nil:
		return Kind{}, fmt.Errorf("ask what the API server serves in %s: %w", resource.GroupVersion(), err)
	}
	u.kinds.add(resource.GroupVersion(), served.APIResources)
	kind, _ := u.kinds.get(resource)
	return kind, nil
}

func (k *kindCache) get(resource schema.GroupVersionResource) (Kind, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind, ok := k.byResource[resource]
	return kind, ok
}

func (k *kindCache) add(version schema.GroupVersion, served []metav1.APIResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byResource == nil {
		k.byResource = map[schema.GroupVersionResource]Kind{}
	}
	for i := range served {
		if !strings.Contains(served[i].Name, "/") {
			k.byResource[version.WithResource(served[i].Name)] = Kind{Kind: served[i].Kind, Virtual: !slices.Contains(served[i].Verbs, "get")}
		}
	}
}
