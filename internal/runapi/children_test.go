package runapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/kubeapi/children"
	"github.com/ensign-operator/ensign/internal/kubeapi/children/strip"
	"github.com/ensign-operator/ensign/internal/kubeapi/informers"
	"github.com/ensign-operator/ensign/internal/watches"
)

func TestChildWatches(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "g.io", Version: "v1", Kind: "K"}
	list := []watches.Watch{{
		GVK: gvk, WatchDependentResources: true, WatchClusterScopedResources: true, Blacklist: []schema.GroupKind{{Kind: "Pod"}},
		Finalizer:  &watches.Finalizer{Name: "g.io/f"},
		References: []watches.Reference{{GVK: gvk, StatusFields: []string{"url", "ready"}}, {GVK: gvk, StatusFields: []string{"ready"}}},
	}, {GVK: gvk, References: []watches.Reference{{GVK: gvk, StatusFields: []string{"a"}}}}, {GVK: gvk, Finalizer: &watches.Finalizer{Name: "g.io/new", Former: "old"}}}
	fields := func(names ...string) strip.StatusFields { return strip.StatusFields{gvk.GroupKind(): names} }
	want := []children.Watch{
		{GVK: gvk, Dependents: true, ClusterScoped: true, Blacklist: []schema.GroupKind{{Kind: "Pod"}}, StatusFields: fields("ready", "url")},
		{GVK: gvk, StatusFields: fields("a")},
		{GVK: gvk, StatusFields: strip.StatusFields{}},
	}
	if diff := cmp.Diff(want, childWatches(list)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(fields("a", "ready", "url"), statusFields(list...)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"g.io/f", "g.io/new", "old"}, finalizerNames(list)); diff != "" {
		t.Error(diff)
	}
}

func TestMetricState(t *testing.T) {
	for state, want := range map[informers.State]string{informers.Live: "live", informers.Ended: ""} {
		if got := metricState(state); got != want {
			t.Errorf("%s: %q", state, got)
		}
	}
}
