package operator

import (
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
	// sweepInterval is the time between two looks for directories of CRs that are
	// gone; a tenth is added at random, so that managers do not ask at once.
	sweepInterval = time.Hour
	sweepJitter   = 0.1
	// sweepPage bounds one answer of the API server.
	sweepPage = 500
)

// directories are the run directories of CRs, as rundir.Root keeps them.
type directories interface {
	UIDs() ([]string, error)
	Sweep(keep func(uid string) bool) (removed []string, err error)
}

// kinds tells what the API server serves; a discovery client does.
type kinds interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// sweeper removes the directories of CRs that went unseen: while no manager ran,
// together with their kind, or while their directory could not be removed. Others
// are removed by their controllers. It is a manager.Runnable.
type sweeper struct {
	directories directories
	reader      client.Reader
	kinds       kinds
	watches     []watches.Watch
	namespaces  []string // nil: all
	interval    time.Duration
	log         logr.Logger
}

// Start sweeps at once and then again and again until ctx ends.
func (s sweeper) Start(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, s.sweep, s.interval, sweepJitter, true)
	return nil
}

// sweep looks once. What can't be listed may have directories, so nothing is
// removed then; directories that stay are no reason to stop.
func (s sweeper) sweep(ctx context.Context) {
	removed, err := s.remove(ctx)
	if len(removed) > 0 {
		s.log.Info("removed the run directories of custom resources that are gone", "count", len(removed))
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error(err, "run directories of custom resources that are gone may be left until the next look")
	}
}

func (s sweeper) remove(ctx context.Context) ([]string, error) {
	// What could not be removed before is tried again, whatever the API server says.
	_, retried := s.directories.Sweep(func(string) bool { return true })
	// Only what was there before the lists can be known to have no CR.
	before, err := s.directories.UIDs()
	if err != nil || len(before) == 0 {
		return nil, errors.Join(retried, err)
	}
	live, err := s.live(ctx)
	if err != nil {
		return nil, errors.Join(retried, err)
	}
	known := sets.New(before...)
	removed, err := s.directories.Sweep(func(uid string) bool { return live.Has(uid) || !known.Has(uid) })
	return removed, errors.Join(retried, err)
}

// live returns the UIDs of all CRs of the watched kinds.
func (s sweeper) live(ctx context.Context) (sets.Set[string], error) {
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	groups, err := s.kinds.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its groups: %w", err)
	}
	found := sets.New[string]()
	for _, watch := range s.watches {
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
func (s sweeper) served(watched schema.GroupVersionKind, groups *metav1.APIGroupList) (schema.GroupVersionKind, bool, error) {
	var found []string
	for _, group := range groups.Groups {
		if group.Name != watched.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := s.kinds.ServerResourcesForGroupVersion(version.GroupVersion)
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

func (s sweeper) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string, found sets.Set[string]) error {
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		err := s.reader.List(ctx, page, client.InNamespace(namespace), client.Limit(sweepPage), client.Continue(page.Continue))
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
