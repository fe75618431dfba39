package release

import (
	"slices"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
)

// NamesOf returns the names of the objects and hooks of a revision without the policy keep.
func NamesOf(r *Release) (names order.Names, err error) {
	if names.Objects, err = named(nil, r.Manifest); err != nil {
		return names, err
	}
	for _, hook := range r.Hooks {
		if names.Hooks, err = named(names.Hooks, hook.Manifest); err != nil {
			return names, err
		}
	}
	names.DeletionHooks = HooksAtDeletion(r)
	return names, nil
}

// HooksAtDeletion reports whether the revision has hooks that run at a deletion.
func HooksAtDeletion(r *Release) bool {
	return slices.ContainsFunc(r.Hooks, func(h *helm.Hook) bool {
		return slices.Contains(h.Events, helm.HookPreDelete) || slices.Contains(h.Events, helm.HookPostDelete)
	})
}

func named(all []order.Object, text string) ([]order.Object, error) {
	parsed, err := manifest.Parse(text)
	for _, one := range parsed {
		if one.GetName() != "" && !objects.IsKept(one) {
			all = append(all, order.Object{APIVersion: one.GetAPIVersion(), Kind: one.GetKind(), Namespace: one.GetNamespace(), Name: one.GetName()})
		}
	}
	return all, err
}

// Object returns an object with only its kind and name.
func Object(o order.Object) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(o.APIVersion)
	object.SetKind(o.Kind)
	object.SetNamespace(o.Namespace)
	object.SetName(o.Name)
	return object
}
