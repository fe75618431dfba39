// Package helmclient is Helm's client for the objects of one release, with what Helm's own does not do.
//
// It does not render, and knows no records.
package helmclient

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/util/retry"

	"github.com/ensign-operator/ensign/internal/chart/displace"
	"github.com/ensign-operator/ensign/internal/chart/fields"
	"github.com/ensign-operator/ensign/internal/chart/threeway"
)

// FieldManager is the name under which Helm's objects are applied.
const FieldManager = displace.FieldManager

// The annotations by which Helm knows the objects of a release.
const (
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// Client is Helm's client for the objects of one release.
//
//   - Before an update it moves the fields that the release's former operator holds to Helm's field
//     manager. A server-side apply removes only what its own manager holds: a container that the
//     chart drops would stay in the object forever. Helm itself moves only the fields that a
//     program of its own name holds.
//   - An update leaves objects that belong to another release by now, and replaces those that cannot
//     be changed if it may.
//   - Where the client applies, lists in which a key stands twice become what the chart says, and what
//     the former operator holds is what the chart said before.
//   - It keeps why objects could not be deleted: Helm's uninstallation only says that it failed.
type Client struct {
	*kube.Client

	// Name and Namespace are the release's.
	Name, Namespace string
	// Timeout bounds the wait for an object that is to be replaced.
	Timeout time.Duration
	// Until is when waits for hooks and objects end at the latest. Each has Helm's timeout, and together
	// they would take longer than the run may: nothing would say what it waited for.
	Until time.Time
	// ByClient makes updates by patches of the client, instead of server-side apply.
	ByClient bool
	// Replace lets updates delete what cannot be changed and create it again.
	Replace bool
	// Ignored are the fields that others may change.
	Ignored fields.Ignored
	// Former are the objects of an installation that failed. Helm takes what an installation finds for
	// what the chart renders now.
	Former kube.ResourceList
	// Own reports whether a live object belongs to the CR of the release. Helm sets no labels on hooks.
	Own func(live metav1.Object) bool
	// Working is called with what is waited for.
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
		if one.Name == "" && isHook(one) { // Helm deletes what an earlier one has left.
			return nil, []error{Nameless(one.Mapping.GroupVersionKind.Kind)}
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

// Create implements kube.Interface.
func (c *Client) Create(resources kube.ResourceList, options ...kube.ClientCreateOption) (*kube.Result, error) {
	if err := c.makePlace(resources); err != nil {
		return nil, err
	}
	result, err := c.Client.Create(resources, options...)
	c.hooks = append(c.hooks, resources.Filter(isHook)...)
	return result, explained(err)
}

// Update implements kube.Interface.
func (c *Client) Update(originals, targets kube.ResourceList, options ...kube.ClientUpdateOption) (*kube.Result, error) {
	for i, original := range originals {
		if former := c.Former.Get(original); former != nil {
			originals[i] = former
		}
	}
	originals, err := c.prepare(originals, targets)
	if err != nil {
		return &kube.Result{}, explained(err)
	}
	again := copied(targets)
	result, err := c.Client.Update(originals, targets, options...)
	if !c.ByClient && err != nil {
		mended, cause := mend(again, err)
		if cause != nil {
			return result, explained(errors.Join(err, cause))
		}
		if mended {
			created := result.Created
			result, err = c.Client.Update(originals, again, options...)
			result.Created = append(created, result.Created...)
		}
	}
	return result, explained(err)
}

// mend takes out of the way for what the API server has refused to apply the targets. It reports
// whether to try again helps.
func mend(targets kube.ResourceList, refusal error) (bool, error) {
	if strings.Contains(refusal.Error(), " is invalid: ") {
		return displaceAll(targets)
	}
	if unserved := unservedVersions(refusal); len(unserved) > 0 {
		return renewVersions(targets, unserved)
	}
	return false, nil
}

// prepare does what Helm's update does not. It returns the originals from which that starts.
func (c *Client) prepare(originals, targets kube.ResourceList) (kube.ResourceList, error) {
	if !c.ByClient {
		for _, original := range originals.Intersect(targets) {
			if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return c.move(original) }); err != nil {
				return nil, fmt.Errorf("take over the fields of %s: %w", nameOf(original), err)
			}
		}
	}
	originals, err := c.withoutOthers(originals, targets)
	if err != nil {
		return nil, err
	}
	if err := c.leaveFields(originals, targets); err != nil {
		return nil, err
	}
	if c.Replace {
		if err := c.replace(originals, targets); err != nil {
			return nil, err
		}
	}
	if !c.ByClient {
		return originals, nil
	}
	return c.patchAll(originals, targets)
}

// withoutOthers returns the originals without those that are to be deleted, because the chart
// renders them no more, and belong to another release by now, or are a hook that has just run. Helm asks
// nobody before it deletes these.
func (c *Client) withoutOthers(originals, targets kube.ResourceList) (kube.ResourceList, error) {
	dropped := originals.Difference(targets)
	others := kube.ResourceList{}
	for _, original := range dropped {
		if c.hooks.Get(original) != nil {
			others.Append(original)
			continue
		}
		live, err := get(original)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read %s before it is deleted: %w", nameOf(original), err)
		case live == nil:
			continue
		}
		if other := OtherRelease(live, c.Namespace, c.Name); other != "" {
			others.Append(original)
			c.Left(nameOf(original) + ", which belongs to the release " + other)
		}
	}
	return originals.Difference(others), nil
}

// OtherRelease returns the release that Helm's label and annotations on an object name, if it is not this one.
func OtherRelease(object metav1.Object, namespace, name string) string {
	annotations := object.GetAnnotations()
	ofNamespace, ofName := annotations[releaseNamespace], annotations[releaseName]
	if ofName == "" || ofNamespace == namespace && ofName == name {
		return ""
	}
	return ofNamespace + "/" + ofName
}

// get reads the object; nil if there is none.
func get(info *resource.Info) (*unstructured.Unstructured, error) {
	found, err := resource.NewHelper(info.Client, info.Mapping).Get(info.Namespace, info.Name)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // See above.
	case err != nil:
		return nil, err
	}
	return objectOf(found)
}

func objectOf(found any) (*unstructured.Unstructured, error) {
	object, ok := found.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("an object has a form that is not known: %T", found)
	}
	return object, nil
}

// patchAll patches the targets that exist. It returns the originals from which Helm's own update then
// finds nothing to patch: it creates what is not there, and deletes what the chart has dropped.
func (c *Client) patchAll(originals, targets kube.ResourceList) (kube.ResourceList, error) {
	var errs []error
	for _, target := range targets {
		original := originals.Get(target)
		errs = append(errs, retry.RetryOnConflict(retry.DefaultRetry, func() error { return patch(original, target, false) }))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return append(originals.Difference(targets), targets...), nil
}

// patch makes the live object what the chart says, if there is one. original is what the chart said
// before; nil if nobody knows.
func patch(original, target *resource.Info, dryRun bool) error {
	live, err := get(target)
	if err != nil {
		return fmt.Errorf("read %s: %w", nameOf(target), err)
	}
	if live == nil {
		return nil
	}
	before, err := said(original, target, live)
	if err != nil {
		return err
	}
	wanted, err := objectOf(target.Object)
	if err != nil {
		return err
	}
	text, kind, err := threeway.Patch(before, wanted, live)
	if err != nil || string(text) == threeway.Empty {
		return err
	}
	helper := resource.NewHelper(target.Client, target.Mapping).WithFieldManager(FieldManager).DryRun(dryRun)
	if _, err := helper.Patch(target.Namespace, target.Name, kind, text, nil); err != nil {
		return fmt.Errorf("patch %s: %w", nameOf(target), err)
	}
	return nil
}
