package helmclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

// isHook reports whether the object is a hook of the chart.
func isHook(info *resource.Info) bool {
	object, err := objectOf(info.Object)
	return err == nil && object.GetAnnotations()[release.HookAnnotation] != ""
}

// Nameless returns the error for a hook without a name.
func Nameless(kind string) error {
	return fmt.Errorf("a hook of kind %s has a generateName and no name: nobody could wait for it or delete it. Give it a name in the chart", kind)
}

// clearFormerHooks removes earlier hooks with the names of new ones, and waits until they are gone,
// also where Helm has deleted them: Helm itself would apply the new one over the old one. It refuses
// objects that do not belong to the release.
func (c *Client) clearFormerHooks(resources kube.ResourceList) error {
	for _, info := range resources {
		if !isHook(info) {
			continue
		}
		if info.Name == "" {
			return Nameless(info.Mapping.GroupVersionKind.Kind) // An object of a revision that Helm itself has made.
		}
		live, err := c.get(info)
		if err != nil {
			return err
		}
		switch {
		case live == nil:
		case live.GetDeletionTimestamp() != nil:
			err = c.waitUntilGone(info, live.GetUID())
		case c.Own(live):
			err = c.removeFormer(info, live)
		default:
			if err := c.refuseStranger(live); err != nil {
				return fmt.Errorf("hook %s: %w", nameOf(info), err)
			}
		}
		if err != nil {
			return fmt.Errorf("%s of an earlier time: %w", nameOf(info), err)
		}
	}
	return nil
}

// refuseStranger returns an error for a live object that does not belong to the release: Helm would apply the hook over it,
// and the delete policy of the hook would delete it. A hook without an owner is taken for one of the release: Helm's
// command and the policy keep leave such hooks.
func (c *Client) refuseStranger(live *unstructured.Unstructured) error {
	annotations := live.GetAnnotations()
	other := objects.OtherRelease(live, c.Applier.Namespace, c.Name)
	switch {
	case c.Own(live):
		return nil
	case other != "":
		return fmt.Errorf("an object of this name belongs to the release %s", other)
	case annotations["meta.helm.sh/release-name"] != "":
		return nil // That release is this one.
	}
	owners := c.Owners(live)
	switch {
	case owners != "":
		return fmt.Errorf("an object of this name belongs to %s", owners)
	case c.Adopt || annotations[release.HookAnnotation] != "":
		return nil
	}
	return errors.New("an object of this name is there already and belongs to no release: rename the hook, delete the object, or take it over by adopt: true in the watch")
}

// removeFormer removes an earlier hook that its delete policy has kept. A hook that has ended would
// not run again, and the API server would refuse another one in its place. A hook that can become
// the new one stays.
func (c *Client) removeFormer(info *resource.Info, live *unstructured.Unstructured) error {
	switch kind := live.GroupVersionKind().GroupKind().String(); {
	case mustStay(live, info) != "":
		return nil // The API server says whether it can be the new one.
	case kind == "Job.batch" || kind == "Pod" || c.ByClient:
		former := *info
		former.Object = live
		return c.deleteForNew(&former)
	default:
		return c.replace(kube.ResourceList{info}, kube.ResourceList{info})
	}
}

// TakeHooks gives live hooks of the CR the labels and annotations of objects of the release. It leaves
// all other objects.
func (c *Client) TakeHooks(resources kube.ResourceList) error {
	for _, info := range resources {
		live, err := c.get(info)
		if err != nil {
			return err
		}
		if live == nil || live.GetAnnotations()[release.HookAnnotation] == "" || !c.Own(live) {
			continue
		}
		labels, added := objects.HelmMetadata(c.Applier.Namespace, c.Name)
		annotations := map[string]any{release.HookAnnotation: nil}
		for name, value := range added {
			annotations[name] = value
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": live.GetUID(), "labels": labels, "annotations": annotations}})
		if err != nil {
			return err
		}
		_, err = c.of(info).Patch(context.Background(), info.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: objects.FieldManager})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: %w", nameOf(info), err)
		}
	}
	return nil
}

// waiter is Helm's, except for its waits for hooks. It also reports why the pods of unready objects
// wait.
type waiter struct {
	kube.Waiter

	client *Client
	// objects is true if the strategy waits for objects that are not hooks.
	objects bool
}

// GetWaiterWithOptions implements kube.InterfaceWaitOptions.
func (c *Client) GetWaiterWithOptions(strategy kube.WaitStrategy, options ...kube.WaitOption) (kube.Waiter, error) {
	helm, err := c.Client.GetWaiterWithOptions(strategy, options...)
	return waiter{helm, c, strategy != kube.HookOnlyStrategy}, err
}

// left returns the timeout of a wait, bounded by the rest of the time of all waits.
func (w waiter) left(timeout time.Duration) time.Duration {
	return min(timeout, max(time.Until(w.client.Until), 0))
}

// Wait implements kube.Waiter.
func (w waiter) Wait(resources kube.ResourceList, timeout time.Duration) error {
	if w.objects {
		w.client.Working("wait until the objects of the release are ready")
	}
	err := w.Waiter.Wait(resources, w.left(timeout))
	if err == nil {
		return nil
	}
	var pods []error
	for _, info := range resources {
		if problems := w.client.podProblems(info); problems != "" {
			pods = append(pods, errors.New(problems))
		}
	}
	return errors.Join(append([]error{err}, pods...)...)
}

// WatchUntilReady implements kube.Waiter. It waits until Jobs and Pods have ended; other hooks are
// ready once they are there.
//
// Helm's own waiter looks at the existing objects, and waits forever for a Job that the TTL
// controller has removed (ttlSecondsAfterFinished). This one sees each change since the hook was
// created, so that it knows how the hook ended although it is gone.
func (w waiter) WatchUntilReady(resources kube.ResourceList, timeout time.Duration) error {
	timeout = w.left(timeout)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, info := range resources {
		w.client.Working("wait for the hook " + nameOf(info))
		err := w.client.untilEnded(ctx, info)
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%s has not ended after %s", nameOf(info), timeout.Round(time.Second))
		}
		if problems := w.client.podProblems(info); problems != "" {
			err = fmt.Errorf("%w; %s", err, problems)
		}
		return err
	}
	return nil
}

// untilEnded waits until the hook has ended, and returns how it failed.
func (c *Client) untilEnded(ctx context.Context, info *resource.Info) error {
	live, err := objectOf(info.Object) // As the API server answered when it was created.
	if err != nil {
		return err
	}
	for {
		if ended, err := endOf(live); ended {
			return err
		}
		live, err = c.nextChange(ctx, info, live.GetResourceVersion())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case live == nil:
			return fmt.Errorf("%s is gone, and how it ended is not known", nameOf(info))
		}
	}
}

// nextChange returns the object after its next change, or an error if it is deleted before it has
// ended. If the watch breaks, it returns the object as it is then.
func (c *Client) nextChange(ctx context.Context, info *resource.Info, version string) (*unstructured.Unstructured, error) {
	changes, err := resource.NewHelper(info.Client, info.Mapping).WatchSingle(info.Namespace, info.Name, version)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", nameOf(info), err)
	}
	defer changes.Stop()
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case event, open = <-changes.ResultChan():
		}
		if !open || event.Type == watch.Error {
			return c.get(info)
		}
		if event.Type == watch.Bookmark {
			continue
		}
		changed, err := objectOf(event.Object)
		if err != nil || event.Type != watch.Deleted {
			return changed, err
		}
		if ended, _ := endOf(changed); !ended {
			return nil, fmt.Errorf("%s was deleted before it had ended", nameOf(info))
		}
		return changed, nil
	}
}

// endOf reports whether the hook has ended, and how it failed.
func endOf(object *unstructured.Unstructured) (ended bool, failure error) {
	name := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
	switch object.GroupVersionKind().GroupKind().String() {
	case "Job.batch":
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, one := range conditions {
			condition, _ := one.(map[string]any)
			switch {
			case condition["status"] != "True":
			case condition["type"] == "Complete":
				return true, nil
			case condition["type"] == "Failed":
				return true, fmt.Errorf("%s has failed: %v: %v", name, condition["reason"], condition["message"])
			}
		}
		return false, nil
	case "Pod":
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		if phase == string(corev1.PodFailed) {
			return true, fmt.Errorf("%s has failed", name)
		}
		return phase == string(corev1.PodSucceeded), nil
	}
	return true, nil
}
