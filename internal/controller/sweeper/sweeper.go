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
	// defaultInterval is the time between two sweeps. Up to a tenth is added at random, so
	// that several managers do not send their requests at the same time.
	defaultInterval = time.Hour
	jitter          = 0.1
	// pageSize is the highest number of objects in one response of the API server.
	pageSize = 500
)

// Directories are the run directories of CRs. rundir.Root implements it.
type Directories interface {
	UIDs() ([]string, error)
	Sweep(keep func(uid string) bool) (removed []string, err error)
}

// Discovery returns the kinds that the API server serves. A discovery client implements it.
type Discovery interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Sweeper removes the run directories of CRs that were deleted while no manager ran or
// together with their kind, and directories that could not be removed before. It is a
// manager.Runnable.
type Sweeper struct {
	Directories Directories
	Reader      client.Reader
	Discovery   Discovery
	Watches     []watches.Watch
	Namespaces  []string // nil: all
	Logger      logr.Logger

	interval time.Duration // 0: interval
}

// Start sweeps at once and then after each interval, until ctx ends.
func (s Sweeper) Start(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, s.sweep, cmp.Or(s.interval, defaultInterval), jitter, true)
	return nil
}

// sweep removes the directories of CRs that are gone. It only logs errors: a directory that stays
// must not end the manager.
func (s Sweeper) sweep(ctx context.Context) {
	removed, err := s.removeOrphans(ctx)
	if len(removed) > 0 {
		s.Logger.Info("removed the run directories of deleted resources", "count", len(removed))
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.Error(err, "could not remove the run directories of deleted resources; retrying later")
	}
}

// removeOrphans removes the directories of CRs that are gone and returns their UIDs. If a
// kind cannot be listed, it removes none, because the kind's CRs may have directories.
func (s Sweeper) removeOrphans(ctx context.Context) ([]string, error) {
	// Retry the directories that could not be removed before. That needs no response of the API
	// server.
	_, retryErr := s.Directories.Sweep(func(string) bool { return true })
	// A directory that is made after the lists may belong to a new CR, so only those that
	// exist before are removed.
	before, err := s.Directories.UIDs()
	if err != nil || len(before) == 0 {
		return nil, errors.Join(retryErr, err)
	}
	live, err := s.liveUIDs(ctx)
	if err != nil {
		return nil, errors.Join(retryErr, err)
	}
	known := sets.New(before...)
	removed, err := s.Directories.Sweep(func(uid string) bool { return live.Has(uid) || !known.Has(uid) })
	return removed, errors.Join(retryErr, err)
}

// liveUIDs returns the UIDs of all CRs of the watched kinds.
func (s Sweeper) liveUIDs(ctx context.Context) (sets.Set[string], error) {
	namespaces := s.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	groups, err := s.Discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its groups: %w", err)
	}
	found := sets.New[string]()
	for _, watch := range s.Watches {
		gvk, served, err := s.servedVersion(watch.GVK, groups)
		if err != nil {
			return nil, fmt.Errorf("ask the API server for %s: %w", watch.GVK.GroupKind(), err)
		}
		for _, namespace := range namespaces {
			if !served {
				break
			}
			if err := s.addUIDs(ctx, gvk, namespace, found); err != nil {
				return nil, fmt.Errorf("list %s: %w", gvk, err)
			}
		}
	}
	return found, nil
}

// servedVersion returns the kind in a version that the API server serves, preferably the
// watched one, and reports whether there is any. A kind has the same objects in every
// version, and none if no version is served.
func (s Sweeper) servedVersion(watched schema.GroupVersionKind, groups *metav1.APIGroupList) (schema.GroupVersionKind, bool, error) {
	var found []string
	for _, group := range groups.Groups {
		if group.Name != watched.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := s.Discovery.ServerResourcesForGroupVersion(version.GroupVersion)
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

// addUIDs adds the UIDs of all objects of the kind to found.
func (s Sweeper) addUIDs(ctx context.Context, gvk schema.GroupVersionKind, namespace string, found sets.Set[string]) error {
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
