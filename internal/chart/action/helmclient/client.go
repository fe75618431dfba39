// Package helmclient is Helm's client for the objects of one release, with additions to Helm's own.
//
// It does not render, and knows no records.
package helmclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

// Client is Helm's client for the objects of one release.
//
//   - It applies them as package objects does, one after the other, so that a fault of one stops no other.
//   - An update leaves objects that belong to another release by now, and replaces those that cannot
//     be changed if it may.
//   - It keeps why objects could not be deleted: Helm's uninstallation only says that it failed.
type Client struct {
	*kube.Client
	objects.Applier

	// Objects is the client for all kinds.
	Objects dynamic.Interface
	// Timeout bounds the wait for an object that is to be replaced.
	Timeout time.Duration
	// Until is when waits for hooks and objects end at the latest. Each has Helm's timeout, and together
	// they would take longer than the run may: nothing would say what it waited for.
	Until time.Time
	// Replace lets updates delete objects that cannot be changed and create them again.
	Replace bool
	// Former are the objects of an installation that failed. Helm takes objects that an
	// installation finds for the ones that the chart renders now.
	Former kube.ResourceList
	// Own reports whether a live object belongs to the CR of the release. Helm sets no labels on hooks.
	Own func(live metav1.Object) bool
	// Owners names the owners of a live object; "" if it has none.
	Owners func(live metav1.Object) string
	// Adopt lets hooks take the place of objects that belong to nobody.
	Adopt bool
	// Working is called with the object or condition that is waited for.
	Working func(string)
	// Left is called with each object that is left because it belongs to another release.
	Left func(string)
	// Undeleted says why objects could not be deleted.
	Undeleted []error
	// hooks are the hooks that were created.
	hooks kube.ResourceList
}

// Delete implements kube.Interface. It deletes one object after the other, in their order.
func (c *Client) Delete(resources kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	all, errs := &kube.Result{}, []error(nil)
	for _, one := range resources {
		if one.Name == "" && isHook(one) { // Helm deletes the remains of an earlier one.
			return nil, []error{Nameless(one.Mapping.GroupVersionKind.Kind)}
		}
		if isHook(one) {
			live, err := c.get(one)
			if err == nil && live != nil {
				err = c.refuseStranger(live)
			}
			if err != nil {
				return nil, []error{fmt.Errorf("hook %s: %w", nameOf(one), err)}
			}
		}
		result, failed := c.Client.Delete(kube.ResourceList{one}, policy)
		if len(failed) > 0 {
			errs = append(errs, fmt.Errorf("%s: %w", nameOf(one), errors.Join(failed...)))
			continue
		}
		all.Deleted = append(all.Deleted, result.Deleted...)
	}
	if errs != nil {
		c.Undeleted = append(c.Undeleted, errs...)
		return nil, errs
	}
	return all, nil
}

// nameOf returns the kind, the namespace and the name of an object, for people.
func nameOf(info *resource.Info) string {
	return info.Mapping.GroupVersionKind.Kind + " " + strings.TrimPrefix(info.Namespace+"/"+info.Name, "/")
}

// IsReachable implements kube.Interface. The first request shows it.
func (c *Client) IsReachable() error { return nil }

// GetPodList implements kube.InterfaceLogs. Helm makes its client of pods and their logs in IsReachable alone.
func (c *Client) GetPodList(namespace string, options metav1.ListOptions) (*corev1.PodList, error) {
	if err := c.Client.IsReachable(); err != nil {
		return nil, err
	}
	return c.Client.GetPodList(namespace, options)
}

// Create implements kube.Interface. The options are those of the release.
func (c *Client) Create(resources kube.ResourceList, _ ...kube.ClientCreateOption) (*kube.Result, error) {
	if err := c.clearFormerHooks(resources); err != nil {
		return nil, err
	}
	var errs []error
	for _, one := range resources {
		_, err := c.apply(one, nil, objects.Options{New: true})
		errs = append(errs, err)
	}
	c.hooks = append(c.hooks, resources.Filter(isHook)...)
	if err := errors.Join(errs...); err != nil {
		return nil, objects.Explained(err)
	}
	return &kube.Result{Created: resources}, nil
}

// Update implements kube.Interface. The options are those of the release.
func (c *Client) Update(originals, targets kube.ResourceList, _ ...kube.ClientUpdateOption) (*kube.Result, error) {
	for i, original := range originals {
		if former := c.Former.Get(original); former != nil {
			originals[i] = former
		}
	}
	result, errs := &kube.Result{}, []error(nil)
	all, err := objectsOf(targets)
	if err != nil {
		return result, err
	}
	c.Scaled = objects.ScaledBy(all, c.Applier.Namespace)
	if c.Replace {
		if err := c.replace(originals, targets); err != nil {
			return result, objects.Explained(err)
		}
	}
	for _, target := range targets {
		applied, err := c.apply(target, originals.Get(target), objects.Options{})
		errs = append(errs, err)
		if applied.Live == nil {
			result.Created = append(result.Created, target)
		} else {
			result.Updated = append(result.Updated, target)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return result, objects.Explained(err)
	}
	for _, original := range originals.Difference(targets) {
		deleted, err := c.drop(original)
		errs = append(errs, err)
		if deleted {
			result.Deleted = append(result.Deleted, original)
		}
	}
	return result, objects.Explained(errors.Join(errs...))
}

// ReplaceCRDs applies the CRDs by the server, however the objects of the release are applied.
func (c *Client) ReplaceCRDs(crds kube.ResourceList) error {
	byServer := *c
	byServer.ByClient = false
	_, err := byServer.Update(nil, crds)
	return err
}

// apply applies an object, and replaces target by the live object. before is the object as the chart
// had it before, or nil.
func (c *Client) apply(target, before *resource.Info, o objects.Options) (objects.Result, error) {
	want, err := objectOf(target.Object)
	if err != nil {
		return objects.Result{}, err
	}
	var former *unstructured.Unstructured
	if before != nil {
		if former, err = objectOf(before.Object); err != nil {
			return objects.Result{}, err
		}
	}
	result, err := c.Apply(context.Background(), c.of(target), want, former, o)
	if err != nil {
		return result, fmt.Errorf("%s: %w", nameOf(target), err)
	}
	if o.DryRun {
		return result, nil
	}
	return result, target.Refresh(result.Applied, true)
}

// of returns the client for the resource of an object.
func (c *Client) of(info *resource.Info) dynamic.ResourceInterface {
	all := c.Objects.Resource(info.Mapping.Resource)
	if info.Namespaced() {
		return all.Namespace(info.Namespace)
	}
	return all
}

// drop deletes an object that the chart no longer renders, and reports whether it did. One that is to be kept, belongs to another
// release by now, or is a hook that has just run, stays.
func (c *Client) drop(original *resource.Info) (bool, error) {
	if c.hooks.Get(original) != nil {
		return false, nil
	}
	live, err := c.get(original)
	switch {
	case err != nil:
		return false, fmt.Errorf("read %s before it is deleted: %w", nameOf(original), err)
	case live == nil || objects.IsKept(live):
		return false, nil
	}
	if other := objects.OtherRelease(live, c.Applier.Namespace, c.Name); other != "" {
		c.Left(nameOf(original) + ", which belongs to the release " + other)
		return false, nil
	}
	uid, background := live.GetUID(), metav1.DeletePropagationBackground
	err = c.of(original).Delete(context.Background(), live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete %s: %w", nameOf(original), err)
	}
	return true, nil
}

// get reads the object; nil if there is none.
func (c *Client) get(info *resource.Info) (*unstructured.Unstructured, error) {
	found, err := c.of(info).Get(context.Background(), info.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // See above.
	case err != nil:
		return nil, err
	}
	return found, nil
}

func objectOf(found any) (*unstructured.Unstructured, error) {
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected type of an object: %T", found)
	}
	return object, nil
}

func objectsOf(resources kube.ResourceList) (all []*unstructured.Unstructured, err error) {
	for _, one := range resources {
		object, err := objectOf(one.Object)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}
