package runapi

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/children"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
	"github.com/ensign-operator/ensign/internal/watches"
)

// Related watches the children of CRs and the objects that they refer to.
type Related struct {
	*children.Children

	informers *informers.Set
	// observe is called when the state of an informer changes. AddTo sets it.
	observe func(informers.Key, informers.State)
	// countUnknownWrite is called for a write whose result is not known. AddTo sets it.
	countUnknownWrite func(cause string)
}

// RelatedOptions are the settings of Related.
type RelatedOptions struct {
	Client  *rest.Config
	Watches []watches.Watch
	// Namespaces are those that are watched; nil: all.
	Namespaces []string
	// RecordNamespace and RecordName are those of the record of the kinds of children; there is none if
	// the namespace is "".
	RecordNamespace, RecordName string
	// UnusedKindTimeout is that of children.Options.
	UnusedKindTimeout time.Duration
	Logger            logr.Logger
}

// Counters show what is watched.
type Counters interface {
	SetFollowed(purpose, resource, namespace, state string)
	CountUnknownWrite(cause string)
}

// NewRelated returns a Related that AddTo adds to a manager.
func NewRelated(o RelatedOptions) (*Related, error) {
	list := o.Watches
	client, err := dynamic.NewForConfig(o.Client)
	if err != nil {
		return nil, fmt.Errorf("prepare to watch children: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(o.Client)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	transformer, err := strip.New(statusFields(list...), finalizerNames(list)...)
	if err != nil {
		return nil, err
	}
	transformer.Keep(shownFields(list))
	r := &Related{observe: func(informers.Key, informers.State) {}, countUnknownWrite: func(string) {}}
	r.informers = informers.New(informers.Options{
		Client: client, Transform: transformer.Transform, Indexers: children.Indexers(), Logger: o.Logger.WithName("informers"),
		OnStateChange: func(key informers.Key, state informers.State) { r.observe(key, state) },
	})
	r.Children = children.New(children.Options{
		Informers: r.informers, Transformer: transformer, Watches: childWatches(list), Namespaces: o.Namespaces, Discovery: served,
		Record: o.record(client), UnusedKindTimeout: o.UnusedKindTimeout, Logger: o.Logger.WithName("children"),
		OnUnknownWrite: func(cause access.Cause) { r.countUnknownWrite(string(cause)) },
	})
	return r, nil
}

// metricState returns the state as metrics show it, "" for a kind that is not watched any
// more.
func metricState(state informers.State) string {
	if state == informers.Ended {
		return ""
	}
	return string(state)
}

// AddTo adds the informers to the manager, which runs them while it leads, and shows their
// states in metrics.
func (r *Related) AddTo(m manager.Manager, counters Counters) error {
	r.observe = func(key informers.Key, state informers.State) {
		counters.SetFollowed("related", key.Resource.GroupResource().String(), key.Namespace, metricState(state))
	}
	r.countUnknownWrite = counters.CountUnknownWrite
	if err := errors.Join(m.Add(r.informers), m.Add(r.Children)); err != nil {
		return fmt.Errorf("add the informers of children: %w", err)
	}
	return nil
}

func finalizerNames(list []watches.Watch) []string {
	var names []string
	for _, watch := range list {
		if watch.Finalizer != nil {
			names = append(names, watch.Finalizer.Names()...)
		}
	}
	return names
}

// statusFields returns the fields that the references of the watches name, sorted.
func statusFields(list ...watches.Watch) strip.StatusFields {
	all := strip.StatusFields{}
	for _, watch := range list {
		for _, reference := range watch.References {
			kind := reference.GVK.GroupKind()
			all[kind] = slices.Compact(slices.Sorted(slices.Values(append(all[kind], reference.StatusFields...))))
		}
	}
	return all
}

func childWatches(list []watches.Watch) []children.Watch {
	var all []children.Watch
	for _, watch := range list {
		all = append(all, children.Watch{
			GVK: watch.GVK, Dependents: watch.WatchDependentResources, ClusterScoped: watch.WatchClusterScopedResources, Blacklist: watch.Blacklist,
			StatusFields: statusFields(watch), Health: healthRule(watch), StatusFrom: statusFrom(watch),
		})
	}
	return all
}

// shownFields returns the fields of children that statuses show, by kind.
func shownFields(list []watches.Watch) map[string][]string {
	all := map[string][]string{}
	for _, watch := range list {
		for _, field := range watch.StatusFrom {
			all[field.Kind] = append(all[field.Kind], field.Path)
		}
	}
	return all
}

func statusFrom(watch watches.Watch) map[string]children.ChildField {
	var all map[string]children.ChildField
	for key, field := range watch.StatusFrom {
		if all == nil {
			all = map[string]children.ChildField{}
		}
		all[key] = children.ChildField{Kind: field.Kind, NameFor: field.NameFor, Path: field.Path}
	}
	return all
}

func healthRule(watch watches.Watch) *children.HealthRule {
	if watch.Health == nil {
		return nil
	}
	return &children.HealthRule{Ignores: watch.Health.Ignores, Grace: watch.Health.Grace}
}

// record returns the record of the kinds of children, a ConfigMap in the manager's namespace. It
// returns nil if that namespace is not known.
func (o *RelatedOptions) record(client dynamic.Interface) children.Record {
	if o.RecordNamespace == "" {
		o.Logger.Info("outside of a pod the manager does not know its namespace, and cannot store the kinds of children: after a restart it watches none until a run writes one. Give --leader-election-namespace")
		return nil
	}
	return children.ConfigMap{Client: client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(o.RecordNamespace), Name: o.RecordName}
}

// Informers returns the informers of the objects of releases.
func (r *Related) Informers() engine.Informers { return watchedObjects{r.Children} }

// watchedObjects returns the objects of releases as informers show them.
type watchedObjects struct{ children *children.Children }

// Object implements engine.Informers.
func (w watchedObjects) Object(kind string, resource schema.GroupVersionResource, namespace, name string) (engine.Known, bool) {
	known, live := w.children.Known(kind, resource, namespace, name)
	return engine.Known(known), live
}

// Series implements engine.Informers.
func (w watchedObjects) Series(kind string, resource schema.GroupVersionResource, namespace, base string) (map[string]engine.Known, bool) {
	known, live := w.children.KnownSeries(kind, resource, namespace, base)
	all := make(map[string]engine.Known, len(known))
	for name, one := range known {
		all[name] = engine.Known(one)
	}
	return all, live
}
