package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/internal/suggest"
)

// Discovery returns the resources that the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	// ServerGroupsAndResources may return a part of the lists together with an error.
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// servedKind is the kind as discovery shows it.
type servedKind struct {
	found      bool
	hasStatus  bool
	namespaced bool
}

func (s *Supervisor) discover() (servedKind, error) {
	list, err := s.Discovery.ServerResourcesForGroupVersion(s.GVK.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return servedKind{}, nil
	}
	if err != nil {
		return servedKind{}, fmt.Errorf("ask the API server for %s: %w", s.GVK.GroupVersion(), err)
	}
	var kind servedKind
	for _, resource := range list.APIResources {
		if resource.Kind == s.GVK.Kind {
			kind.found = kind.found || !strings.Contains(resource.Name, "/")
			kind.namespaced = resource.Namespaced
			kind.hasStatus = kind.hasStatus || strings.HasSuffix(resource.Name, "/status")
		}
	}
	return kind, nil
}

// awaitKind blocks until the kind is served. It asks with ever longer pauses, and returns
// false if ctx ends first.
func (s *Supervisor) awaitKind(ctx context.Context) (servedKind, bool) {
	var reminded time.Time
	pause := newPause()
	for {
		kind, err := s.discover()
		if kind.found {
			return kind, true
		}
		if err == nil {
			s.unready.Store(nil) // There is nothing to watch.
		}
		if time.Since(reminded) >= logMissingInterval {
			reminded = time.Now()
			s.logMissing(err)
		}
		if sleep(ctx, pause.Step()); ctx.Err() != nil {
			return servedKind{}, false
		}
	}
}

// awaitRemoval returns when the API server answers that it does not serve the kind any
// more. An API server that does not answer proves nothing.
func (s *Supervisor) awaitRemoval(ctx context.Context) {
	gone := func(context.Context) (bool, error) {
		kind, err := s.discover()
		return err == nil && !kind.found, nil
	}
	if wait.PollUntilContextCancel(ctx, discoveryInterval, false, gone) == nil {
		s.Logger.Info("the watched kind is no longer served; its controller stops", "gvk", s.GVK.String())
	}
}

// logMissing logs that the kind is not served, or why that is unknown.
func (s *Supervisor) logMissing(err error) {
	if err != nil {
		s.Logger.Info("could not look up the watched kind; retrying. Other kinds are not affected", "gvk", s.GVK.String(), "error", err.Error())
		return
	}
	values := []any{"gvk", s.GVK.String()}
	_, served, _ := s.Discovery.ServerGroupsAndResources() // A group that cannot be read has no candidates.
	if instead := servedInstead(s.GVK.GroupKind(), served); instead != nil {
		values = append(values, "servedInstead", instead)
	}
	s.Logger.Info("WARNING: the watched kind is not served; its CRD may be missing. Other kinds are not affected", values...)
}

// servedInstead returns the kinds that a watch may have meant whose kind is not served. They are
// the same kind in other versions, or else the kind with the nearest name, as "demo.example.com/v1,
// Kind=Greeting"; nil if there is none.
func servedInstead(wanted schema.GroupKind, served []*metav1.APIResourceList) []string {
	found := map[string][]string{}
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				gvk := gv.WithKind(resource.Kind)
				found[gvk.GroupKind().String()] = append(found[gvk.GroupKind().String()], gvk.String())
			}
		}
	}
	if same := found[wanted.String()]; same != nil {
		return same
	}
	return found[suggest.Closest(wanted.String(), slices.Sorted(maps.Keys(found)))]
}
