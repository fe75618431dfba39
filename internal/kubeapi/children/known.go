package children

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
)

// Known is an informer's knowledge of an object.
type Known struct {
	UID             types.UID
	ResourceVersion string
	// Content differs after each change of the object or its owners that Kubernetes itself did not make.
	Content string
}

// Known returns the known state of an object, and the zero Known for one that is not there. live is
// false where no informer sees all changes of such objects: then nothing is known yet. Each
// call keeps the kind watched for some time. kind is that of the resource.
func (c *Children) Known(kind string, resource schema.GroupVersionResource, namespace, name string) (known Known, live bool) {
	store, live := c.liveStore(kind, resource, namespace)
	if !live {
		return Known{}, false
	}
	object, _, err := store.GetByKey(storeKey(namespace, name))
	if err != nil {
		return Known{}, false
	}
	if kept, ok := object.(*strip.Object); ok {
		return knownOf(kept), true
	}
	return Known{}, true
}

// KnownSeries is Known for all objects whose name is base, ".v" and a number.
func (c *Children) KnownSeries(kind string, resource schema.GroupVersionResource, namespace, base string) (known map[string]Known, live bool) {
	store, live := c.liveStore(kind, resource, namespace)
	if !live {
		return nil, false
	}
	objects, err := store.ByIndex(bySeries, storeKey(namespace, base))
	if err != nil {
		return nil, false
	}
	known = map[string]Known{}
	for _, object := range objects {
		if kept, ok := object.(*strip.Object); ok {
			known[kept.Name] = knownOf(kept)
		}
	}
	return known, true
}

func (c *Children) liveStore(kind string, resource schema.GroupVersionResource, namespace string) (toolscache.Indexer, bool) {
	f := c.watchAsked(kind, resource, namespace != "")
	if f == nil {
		return nil, false
	}
	informer, ok := f.informerFor(namespace)
	if !ok || !informer.Live() {
		return nil, false
	}
	return informer.Store(), true
}

// watchAsked returns the kind of a resource, which it begins to watch; nil while the API server
// does not allow that.
func (c *Children) watchAsked(kind string, resource schema.GroupVersionResource, namespaced bool) *watchedKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since, ok := c.refused[resource.GroupResource()]; ok && time.Since(since) < refusedBackoff && c.kinds[resource.GroupResource()] == nil {
		return nil
	}
	f := c.kinds[resource.GroupResource()]
	if f == nil {
		f = c.watchKind(Kind{Group: resource.Group, Version: resource.Version, Kind: kind, Resource: resource.Resource, Namespaced: namespaced})
	}
	f.lastAsked = time.Now()
	return f
}

func knownOf(o *strip.Object) Known {
	owners, _ := json.Marshal(o.OwnerReferences) // OwnerReferences came as JSON and can be JSON again.
	return Known{UID: o.UID, ResourceVersion: o.ResourceVersion, Content: fmt.Sprintf("%x %t %s", o.Digest, o.DeletionTimestamp != nil, owners)}
}

// bySeries is the index of objects by their name without ".v" and a number.
const bySeries = "series"

// Indexers are those that the informers must have.
func Indexers() toolscache.Indexers {
	return toolscache.Indexers{bySeries: func(object any) ([]string, error) {
		kept, ok := object.(*strip.Object)
		if !ok {
			return nil, nil
		}
		i := strings.LastIndex(kept.Name, ".v")
		if i < 0 || strings.Trim(kept.Name[i+len(".v"):], "0123456789") != "" {
			return nil, nil
		}
		return []string{storeKey(kept.Namespace, kept.Name[:i])}, nil
	}}
}
