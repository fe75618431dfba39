package controller

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/nearest"
)

// logMissing logs that the kind is not served, or why that is unknown.
func (s *Supervisor) logMissing(err error) {
	if err != nil {
		s.Logger.Info("the watched kind could not be looked for; it is tried again. Other kinds are not affected", "gvk", s.GVK.String(), "error", err.Error())
		return
	}
	values := []any{"gvk", s.GVK.String()}
	_, served, _ := s.Discovery.ServerGroupsAndResources() // A group that cannot be read has no candidates.
	if instead := servedInstead(s.GVK.GroupKind(), served); instead != nil {
		values = append(values, "servedInstead", instead)
	}
	s.Logger.Info("WARNING: the watched kind is not served; its CRD may be missing. Other kinds are not affected", values...)
}

// servedInstead returns the kinds that may have been meant by a watch whose kind is not
// served: the same kind in other versions, else the kind with the nearest name, as
// "demo.example.com/v1, Kind=Greeting"; nil if there is none.
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
	return found[nearest.Closest(wanted.String(), slices.Sorted(maps.Keys(found)))]
}
