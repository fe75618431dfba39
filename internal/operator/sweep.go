package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
)

// sweepPage bounds one answer of the API server.
const sweepPage = 500

// directories are the run directories of CRs, as rundir.Root keeps them.
type directories interface {
	UIDs() ([]string, error)
	Sweep(keep func(uid string) bool) (removed []string, err error)
}

// sweeper removes, once, the directories of CRs that went while no manager ran.
// Those that go later are removed by their controllers. It is a manager.Runnable.
type sweeper struct {
	directories directories
	reader      client.Reader
	watches     []watches.Watch
	namespaces  []string // nil: all
	log         logr.Logger
}

// Start sweeps and returns. What cannot be listed may have directories, so
// nothing is removed then; the next manager tries again.
func (s sweeper) Start(ctx context.Context) error {
	// Only what was there before the lists can be known to have no CR.
	before, err := s.directories.UIDs()
	if err != nil || len(before) == 0 {
		return ignoreSweep(s.log, err)
	}
	live, err := s.live(ctx)
	if err != nil {
		return ignoreSweep(s.log, err)
	}
	removed, err := s.directories.Sweep(func(uid string) bool { return live.Has(uid) || !slices.Contains(before, uid) })
	if len(removed) > 0 {
		s.log.Info("removed the run directories of custom resources that are gone", "count", len(removed))
	}
	return ignoreSweep(s.log, err)
}

// ignoreSweep logs the error: directories that stay are no reason to stop.
func ignoreSweep(log logr.Logger, err error) error {
	if err != nil {
		log.Error(err, "run directories of custom resources that are gone may be left")
	}
	return nil
}

// live gives the UIDs of all CRs of the watched kinds. A kind that is not served
// has none.
func (s sweeper) live(ctx context.Context) (sets.Set[string], error) {
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	found := sets.New[string]()
	for _, watch := range s.watches {
		for _, namespace := range namespaces {
			err := s.list(ctx, watch, namespace, found)
			if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				return nil, fmt.Errorf("list %s: %w", watch.GVK, err)
			}
		}
	}
	return found, nil
}

func (s sweeper) list(ctx context.Context, watch watches.Watch, namespace string, found sets.Set[string]) error {
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.SetGroupVersionKind(watch.GVK.GroupVersion().WithKind(watch.GVK.Kind + "List"))
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
