package operator

import (
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/kubeapi/children"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/reduce"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/watches"
)

// related follow the objects that CRs have to do with.
type related struct {
	*children.Children

	informers *informers.Set
	// observe is set before anything is followed.
	observe func(informers.Key, informers.State)
}

// newRelated prepares what follows children and references by way of access.
func newRelated(access *rest.Config, list []watches.Watch, o config.Options) (*related, error) {
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("prepare to follow children: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("prepare discovery: %w", err)
	}
	reducer, err := reduce.New(finalizersOf(list)...)
	if err != nil {
		return nil, err
	}
	r := &related{observe: func(informers.Key, informers.State) {}}
	r.informers = informers.New(informers.Options{
		Client: client, Transform: reducer.Transform, Logger: o.Logger.WithName("informers"),
		OnStateChange: func(key informers.Key, state informers.State) { r.observe(key, state) },
	})
	r.Children = children.New(children.Options{
		Informers: r.informers, Reducer: reducer, Watches: childWatches(list), Namespaces: o.Env.Namespaces(), Discovery: served,
		Record: newRecord(client, o), UnusedKindTimeout: o.ChildrenUnused, Logger: o.Logger.WithName("children"),
	})
	return r, nil
}

// shownState is the state as metrics show it; "" once a kind is not followed.
func shownState(state informers.State) string {
	if state == informers.Ended {
		return ""
	}
	return string(state)
}

// addTo lets both work while this manager leads, and shows what is followed.
func (r *related) addTo(m manager.Manager, counters *metrics.Metrics) error {
	r.observe = func(key informers.Key, state informers.State) {
		counters.SetFollowed("related", key.Resource.GroupResource().String(), key.Namespace, shownState(state))
	}
	if err := errors.Join(m.Add(r.informers), m.Add(r.Children)); err != nil {
		return fmt.Errorf("add what follows children: %w", err)
	}
	return nil
}

func finalizersOf(list []watches.Watch) []string {
	var names []string
	for _, watch := range list {
		if watch.Finalizer != nil {
			names = append(names, watch.Finalizer.Name)
		}
	}
	return names
}

func childWatches(list []watches.Watch) []children.Watch {
	var all []children.Watch
	for _, watch := range list {
		all = append(all, children.Watch{
			GVK: watch.GVK, Dependents: watch.WatchDependentResources, ClusterScoped: watch.WatchClusterScopedResources, Blacklist: watch.Blacklist,
		})
	}
	return all
}

// newRecord returns the record of child kinds, in the manager's own namespace; nil
// where it has none.
func newRecord(client dynamic.Interface, o config.Options) children.Record {
	namespace := o.LeaderElectionNamespace
	if namespace == "" {
		content, err := os.ReadFile(config.PodNamespaceFile)
		if err != nil {
			o.Logger.Info("after a restart no children are watched until a run writes to one: outside of a pod, --leader-election-namespace says where to note their kinds")
			return nil
		}
		namespace = strings.TrimSpace(string(content))
	}
	return children.ConfigMap{
		Client: client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace),
		Name:   recordName(o),
	}
}

// recordName is that of the record of child kinds. It may be shared.
func recordName(o config.Options) string {
	for _, name := range []string{o.LeaderElectionID, o.Env["OPERATOR_NAME"], "ensign"} {
		if name != "" {
			return name + "-children"
		}
	}
	return ""
}
