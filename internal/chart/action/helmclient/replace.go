package helmclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

// replace deletes the objects that cannot be changed to the chart's, and waits until they are gone:
// the update then creates them. It deletes nothing unless it may delete all of them, the API server
// accepts the new ones, and no data is lost.
func (c *Client) replace(originals, targets kube.ResourceList) error {
	var errs []error
	var unchangeable []*resource.Info // as they are in the cluster
	for _, target := range targets {
		_, refusal := c.apply(target, originals.Get(target), objects.Options{DryRun: true})
		if !apierrors.IsInvalid(refusal) {
			continue // The update meets any other error again.
		}
		live, err := c.replaceable(target)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be changed: %w"+objects.NotReplaced+": %w", nameOf(target), errors.Unwrap(refusal), err))
		}
		if live != nil {
			unchangeable = append(unchangeable, live)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, live := range unchangeable {
		if err := c.deleteForNew(live); err != nil {
			return fmt.Errorf("replace %s: %w", nameOf(live), err)
		}
	}
	return nil
}

// replaceable returns the live object that the target may replace; nil if it is gone. It changes
// nothing.
func (c *Client) replaceable(target *resource.Info) (*resource.Info, error) {
	live, err := c.get(target)
	if err != nil || live == nil {
		return nil, err
	}
	if why := mustStay(live, target); why != "" {
		return nil, errors.New(why)
	}
	if err := c.tryCreate(target); err != nil {
		return nil, fmt.Errorf("the API server would not take the new one: %w", err)
	}
	found := *target
	found.Object = live
	return &found, nil
}

// deleteForNew deletes the live object, and waits until it is gone.
func (c *Client) deleteForNew(info *resource.Info) error {
	live, err := objectOf(info.Object)
	if err != nil {
		return err
	}
	uid, background := live.GetUID(), metav1.DeletePropagationBackground
	err = c.of(info).Delete(context.Background(), info.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return c.waitUntilGone(info, uid)
}

// keptKinds are kinds whose deletion deletes data or contained objects.
var keptKinds = map[string]bool{ //nolint:gochecknoglobals // A table.
	"PersistentVolumeClaim": true, "PersistentVolume": true, "Namespace": true, "CustomResourceDefinition.apiextensions.k8s.io": true,
}

// mustStay says why the live object must not be replaced; "" if it may be.
func mustStay(live *unstructured.Unstructured, target *resource.Info) string {
	kind := live.GroupVersionKind().GroupKind().String()
	wanted, _ := objectOf(target.Object)
	claims, _, _ := unstructured.NestedString(live.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	switch {
	case keptKinds[kind]:
		return "its data would be deleted too"
	case objects.IsKept(live) || wanted != nil && objects.IsKept(wanted):
		return "it has the annotation " + objects.KeepPolicy + ": keep"
	case kind == "StatefulSet.apps" && claims == "Delete":
		return "its PersistentVolumeClaims would be deleted too (persistentVolumeClaimRetentionPolicy)"
	}
	return ""
}

// tryCreate returns the API server's error for creating the object with another name, by a dry run.
func (c *Client) tryCreate(target *resource.Info) error {
	object, err := objectOf(target.Object)
	if err != nil {
		return err
	}
	object = object.DeepCopy()
	object.SetName(strings.ToLower(strings.TrimRight(target.Name[:min(len(target.Name), maxTrial)], "-.") + trialSuffix))
	removeAllocated(object)
	_, err = c.Apply(context.Background(), c.of(target), object, nil, objects.Options{DryRun: true, New: true})
	return err
}

// A name with the suffix of a trial fits where any name fits.
const (
	trialSuffix = "-new"
	maxTrial    = 48
)

// removeAllocated removes the fields that only one object can have.
func removeAllocated(object *unstructured.Unstructured) {
	if object.GroupVersionKind().GroupKind().String() != "Service" {
		return
	}
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		if value, _, _ := unstructured.NestedString(object.Object, "spec", field); value != "None" {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		}
	}
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	for _, port := range ports {
		if one, ok := port.(map[string]any); ok {
			delete(one, "nodePort")
		}
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(object.Object, ports, "spec", "ports")
	}
}

// waitUntilGone waits until the object with the UID is gone.
func (c *Client) waitUntilGone(info *resource.Info, uid types.UID) error {
	const pause = 100 * time.Millisecond
	var left *unstructured.Unstructured
	c.Working("wait until " + nameOf(info) + " is gone")
	err := wait.PollUntilContextTimeout(context.Background(), pause, c.Timeout, true, func(context.Context) (bool, error) {
		live, err := c.get(info)
		left = live
		return err == nil && (live == nil || live.GetUID() != uid), err
	})
	if wait.Interrupted(err) && left != nil {
		return fmt.Errorf("its deletion did not finish within %s; remaining finalizers: %s", c.Timeout, strings.Join(left.GetFinalizers(), ", "))
	}
	return err
}
