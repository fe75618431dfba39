package sweeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	// interval is the time between two looks for directories of CRs that are
	// gone; a tenth is added at random, so that managers do not ask at once.
	interval = time.Hour
	jitter   = 0.1
	// pageSize bounds one answer of the API server.
	pageSize = 500
)

// Directories are the run directories of CRs, as rundir.Root keeps them.
type Directories interface {
	UIDs() ([]string, error)
	Sweep(keep func(uid string) bool) (removed []string, err error)
}

// Kinds tells what the API server serves; a discovery client does.
type Kinds interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Sweeper removes the directories of CRs that went unseen: while no manager ran,
// together with their kind, or while their directory could not be removed. Others
// are removed by their controllers. It is a manager.Runnable.
type Sweeper struct {
	Directories Directories
	Reader      client.Reader
	Kinds       Kinds
	Watches     []watches.Watch
	Namespaces  []string // nil: all
	Logger      logr.Logger

	every time.Duration // 0: interval
}

// Start sweeps at once and then again and again until ctx ends.
func (s Sweeper) Start(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, s.sweep, cmp.Or(s.every, interval), jitter, true)
	return nil
}

// sweep looks once. What can't be listed may have directories, so nothing is
// removed then; directories that stay are no reason to stop.
func (s Sweeper) sweep(ctx context.Context) {
	removed, err := s.remove(ctx)
	if len(removed) > 0 {
		s.Logger.Info("removed the run directories of custom resources that are gone", "count", len(removed))
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.Error(err, "run directories of custom resources that are gone may be left until the next look")
	}
}

func (s Sweeper) remove(ctx context.Context) ([]string, error) {
	// What could not be removed before is tried again, whatever the API server says.
	_, retried := s.Directories.Sweep(func(string) bool { return true })
	// Only what was there before the lists can be known to have no CR.
	before, err := s.Directories.UIDs()
	if err != nil || len(before) == 0 {
		return nil, errors.Join(retried, err)
	}
	live, err := s.live(ctx)
	if err != nil {
		return nil, errors.Join(retried, err)
	}
	known := sets.New(before...)
	removed, err := s.Directories.Sweep(func(uid string) bool { return live.Has(uid) || !known.Has(uid) })
	return removed, errors.Join(retried, err)
}

// live returns the UIDs of all CRs of the watched kinds.
func (s Sweeper) live(ctx context.Context) (sets.Set[string], error) {
	namespaces := s.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	groups, err := s.Kinds.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its groups: %w", err)
	}
	found := sets.New[string]()
	for _, watch := range s.Watches {
		gvk, served, err := s.served(watch.GVK, groups)
		if err != nil {
			return nil, fmt.Errorf("ask the API server for %s: %w", watch.GVK.GroupKind(), err)
		}
		for _, namespace := range namespaces {
			if !served {
				break
			}
			if err := s.list(ctx, gvk, namespace, found); err != nil {
				return nil, fmt.Errorf("list %s: %w", gvk, err)
			}
		}
	}
	return found, nil
}

// served returns the kind in a version that the API server serves, the watched one
// if it can be. A kind that is served in another version still has its objects;
// one that is served in none has none.
func (s Sweeper) served(watched schema.GroupVersionKind, groups *metav1.APIGroupList) (schema.GroupVersionKind, bool, error) {
	var found []string
	for _, group := range groups.Groups {
		if group.Name != watched.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := s.Kinds.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil {
				return watched, false, err
			}
			if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == watched.Kind }) {
				found = append(found, version.Version)
			}
		}
	}
	if len(found) == 0 || slices.Contains(found, watched.Version) {
		return watched, len(found) > 0, nil
	}
	return watched.GroupKind().WithVersion(found[0]), true, nil
}

func (s Sweeper) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string, found sets.Set[string]) error {
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := s.Reader.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(page.Continue))
		if err != nil {
			return err
		}
		for i := range page.Items {
			found.Insert(string(page.Items[i].UID))
		}
		if page.Continue == "" {
			return nil
		}
	}
}
