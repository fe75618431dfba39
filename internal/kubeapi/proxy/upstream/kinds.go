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

// kinds are what the API server serves, as far as somebody asked.
type kinds struct {
	discovery interface {
		ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	}

	mu    sync.Mutex
	known map[schema.GroupVersionResource]Kind
}

// Kind is what discovery tells of a resource.
type Kind struct {
	Kind string
	// Virtual is true for a question or a command in the shape of an object: it can be
	// created and not be read back, because nothing is stored.
	Virtual bool
}

// Kind asks discovery for the resource, once. What is not served, or not to be seen, is
// the zero Kind.
func (u *Upstream) Kind(ctx context.Context, resource schema.GroupVersionResource) (Kind, error) {
	if kind, ok := u.kinds.get(resource); ok {
		return kind, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	served, err := u.kinds.discovery.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return Kind{}, nil // Whether the write may be done the API server says.
	case err != nil:
		return Kind{}, fmt.Errorf("ask what the API server serves in %s: %w", resource.GroupVersion(), err)
	}
	u.kinds.keep(resource.GroupVersion(), served.APIResources)
	kind, _ := u.kinds.get(resource)
	return kind, nil
}

func (k *kinds) get(resource schema.GroupVersionResource) (Kind, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kind, ok := k.known[resource]
	return kind, ok
}

func (k *kinds) keep(version schema.GroupVersion, served []metav1.APIResource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[schema.GroupVersionResource]Kind{}
	}
	for i := range served {
		if !strings.Contains(served[i].Name, "/") {
			k.known[version.WithResource(served[i].Name)] = Kind{Kind: served[i].Kind, Virtual: !slices.Contains(served[i].Verbs, "get")}
		}
	}
}
