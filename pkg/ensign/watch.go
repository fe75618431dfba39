package ensign

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/operator"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Watch is a kind and the content that reconciles it: an entry of watches.yaml.
type Watch struct{ entry watches.Watch }

// GVK returns the watched kind.
func (w Watch) GVK() schema.GroupVersionKind { return w.entry.GVK }

// WatchOption changes how a watch is reconciled.
type WatchOption func(*operator.Watch)
