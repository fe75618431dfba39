package readcache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"

	"github.com/ensign-operator/ensign/internal/informers"
)

// sampleSize is how many objects tell what a kind's objects take.
const sampleSize = "20"

// errUnfit is wrapped by the reasons why a kind is not kept for long.
var errUnfit = errors.New("it is read live")

// form is how a kind's objects look.
type form struct {
	kind schema.GroupKind
	// namespaced tells whether the objects are in namespaces.
	namespaced bool
	// warnings are headers of every answer, such as that the version is deprecated.
	warnings []string
	// object is how each begins, up to where its own bytes go on; item is the same for
	// an item of a list, of which kinds with a Go type leave apiVersion and kind out.
	object, item []byte
	// list is how a list begins, up to its resource version.
	list []byte
}

// kept is a kind of which the cache may hold the objects, in one namespace or all.
// The Cache's lock guards what is not atomic.
type kept struct {
	key informers.Key
	// form is nil as long as nobody has asked the API server.
	form *form
	// opening is true while it is being looked at.
	opening bool
	// rests is until when it is read live.
	rests time.Time
	used  time.Time
	// said is true once the log has said that it rests.
	said bool
	// informer is nil unless objects are kept.
	informer *informers.Informer
	release  func()
	*weight
}

// answers tells whether the informer's store may be read from.
func (k *kept) answers() bool {
	return k.informer != nil && k.informer.Err() == nil && k.informer.Synced()
}

// hopeless tells whether trying again soon would be in vain.
func (k *kept) hopeless() bool {
	if k.informer == nil {
		return false
	}
	err := k.informer.Err()
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// survey asks the API server what a kind looks like, and how much of it there is.
type survey struct {
	discovery discovery.DiscoveryInterface
	// confined is true where only some namespaces may be read.
	confined bool
	limit    int64
}

// look gives the form of a kind, and an error that wraps errUnfit where it can't be
// kept. The form may be known all the same.
func (s survey) look(ctx context.Context, key informers.Key) (*form, error) {
	served, err := s.find(key.Resource)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(served.Verbs, "list") || !slices.Contains(served.Verbs, "watch") {
		return nil, fmt.Errorf("it can't be listed and watched: %w", errUnfit)
	}
	if served.Namespaced && s.confined && key.Namespace == "" {
		return nil, fmt.Errorf("it is not followed in all namespaces (WATCH_NAMESPACE): %w", errUnfit)
	}
	answer := s.discovery.RESTClient().Get().AbsPath(collection(key.Resource, key.Namespace)).
		Param("limit", sampleSize).SetHeader("Accept", "application/json").Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, fmt.Errorf("list some of it: %w", err)
	}
	sample, err := answer.Raw()
	if err != nil {
		return nil, fmt.Errorf("list some of it: %w", err)
	}
	found, size, err := readSample(sample, served.Kind)
	if err != nil {
		return nil, err
	}
	found.namespaced, found.warnings = served.Namespaced, headers(answer.Warnings())
	if size > s.limit {
		return found, fmt.Errorf("its objects take about %d bytes: %w", size, errUnfit)
	}
	return found, nil
}

func (s survey) find(resource schema.GroupVersionResource) (metav1.APIResource, error) {
	list, err := s.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return metav1.APIResource{}, fmt.Errorf("ask what %s serves: %w", resource.GroupVersion(), err)
	}
	for _, served := range list.APIResources {
		if served.Name == resource.Resource {
			return served, nil
		}
	}
	return metav1.APIResource{}, fmt.Errorf("it is not served: %w", errUnfit)
}

// readSample reads the beginning of a list: the form of the kind, and about how many
// bytes all of it takes.
func readSample(sample []byte, kind string) (*form, int64, error) {
	var list struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Continue  *string `json:"continue"`
			Remaining int64   `json:"remainingItemCount"`
		} `json:"metadata"`
		Items []struct {
			Kind string `json:"kind"`
		} `json:"items"`
	}
	if err := json.Unmarshal(sample, &list); err != nil {
		return nil, 0, fmt.Errorf("read the beginning of a list: %w", err)
	}
	group, err := schema.ParseGroupVersion(list.APIVersion)
	if err != nil {
		return nil, 0, fmt.Errorf("read the beginning of a list: %w", err)
	}
	named := fmt.Appendf(nil, `{"apiVersion":%s,"kind":%s,`, quoted(list.APIVersion), quoted(kind))
	f := &form{
		kind: group.WithKind(kind).GroupKind(), object: named, item: []byte("{"),
		list: fmt.Appendf(nil, `{"kind":%s,"apiVersion":%s,"metadata":{"resourceVersion":"`, quoted(list.Kind), quoted(list.APIVersion)),
	}
	switch count := int64(len(list.Items)); {
	case count == 0:
		// Lists of custom resources say that there is no more, others do not.
		if list.Metadata.Continue != nil {
			f.item = named
		}
		return f, 0, nil
	default:
		if list.Items[0].Kind != "" {
			f.item = named
		}
		return f, (int64(len(sample))/count + objectOverhead) * (count + list.Metadata.Remaining), nil
	}
}

// headers gives warnings as they came.
func headers(warnings []utilnet.WarningHeader) []string {
	var values []string
	for _, w := range warnings {
		if value, err := utilnet.NewWarningHeader(w.Code, w.Agent, w.Text); err == nil {
			values = append(values, value)
		}
	}
	return values
}

// quoted encodes a string, which has no error.
func quoted(text string) []byte {
	var encoded bytes.Buffer
	_ = json.NewEncoder(&encoded).Encode(text)
	return bytes.TrimSpace(encoded.Bytes())
}
