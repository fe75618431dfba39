package helmclient

import (
	"errors"
	"fmt"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/ensign-operator/ensign/internal/chart/displace"
)

// copied returns the objects as they are: an update makes those that are applied the live ones.
func copied(resources kube.ResourceList) (all kube.ResourceList) {
	for _, one := range resources {
		other := *one
		other.Object = one.Object.DeepCopyObject()
		all.Append(&other)
	}
	return all
}

// displaceAll makes way for the objects that the API server refuses for what others have put in
// their place. It reports whether there are any.
func displaceAll(targets kube.ResourceList) (found bool, err error) {
	var errs []error
	for _, target := range targets {
		refusal := apply(target, target.Object, target.Name)
		displaced, err := makeWay(target, refusal)
		found = found || displaced
		if err != nil {
			errs = append(errs, fmt.Errorf("make way for %s: %w", nameOf(target), err))
		}
	}
	return found, errors.Join(errs...)
}

// makeWay gives Helm what others have put in the place of an object that was refused, so that the
// next apply takes it away. It reports whether there is any.
func makeWay(target *resource.Info, refusal error) (bool, error) {
	if !apierrors.IsInvalid(refusal) {
		return false, nil
	}
	live, err := get(target)
	if err != nil || live == nil {
		return false, err
	}
	desired, err := objectOf(target.Object)
	if err != nil {
		return false, err
	}
	helper := resource.NewHelper(target.Client, target.Mapping).WithFieldManager(FieldManager)
	dry := resource.NewHelper(target.Client, target.Mapping).WithFieldManager(FieldManager).DryRun(true)
	displaced, err := displace.Find(live, desired, refusal, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		updated, err := dry.Replace(target.Namespace, target.Name, false, object)
		if err != nil {
			return nil, err
		}
		return objectOf(updated)
	})
	if displaced == nil || err != nil {
		return false, err
	}
	_, err = helper.Patch(target.Namespace, target.Name, types.JSONPatchType, displaced.Patch, nil)
	return err == nil, err
}
