// Package removal deletes the objects of an operator from a cluster. It refuses while custom
// resources exist: Kubernetes deletes them with their CRDs, and without the manager nobody removes
// their finalizers. It runs no content of finalizers.
package removal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	// interval is the time between two looks at objects that are being deleted.
	interval = 500 * time.Millisecond
	// pause is the shortest time between two requests to try again to delete a CRD.
	pause = 3 * time.Second
	// askedAt is the annotation of a CRD that says when that was asked last.
	askedAt = "ensign-deletion-asked-at"
)

// ErrInUse is the reason why Unforced removes nothing.
var ErrInUse = errors.New("these custom resources exist")

// Removal describes a removal. All fields are required, except Watches.
type Removal struct {
	// Client has no cache.
	Client client.Client
	// Objects are those of the operator, with its CRDs.
	Objects []*unstructured.Unstructured
	// Watches are those of the operator. Force takes their finalizers off.
	Watches []watches.Watch
	// Say reports a step.
	Say func(text string)
}

// Read returns the objects of a stream of YAML documents. None is an error.
func Read(in io.Reader) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(in, 4096)
	for document := 1; ; document++ {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF) && len(objects) == 0:
			return nil, errors.New("there are no objects in it")
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("document %d: %w", document, err)
		case len(object.Object) == 0: // Comments alone.
		case object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "":
			return nil, fmt.Errorf("document %d: an object needs apiVersion, kind and metadata.name", document)
		default:
			objects = append(objects, object)
		}
	}
}

// Unforced deletes the objects, and waits until they are gone. It deletes nothing while there are
// custom resources, or while they cannot be listed.
func (r *Removal) Unforced(ctx context.Context) error {
	left, err := r.resources(ctx)
	if err != nil {
		return fmt.Errorf("nothing was removed, because the custom resources cannot be listed: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("nothing was removed: %w:\n%s\nDelete them while the manager runs, then try again", ErrInUse, lines(left))
	}
	return r.delete(ctx, func() error { return nil })
}

// Force deletes the objects with all custom resources, and takes the finalizers of the watches off
// these. It does so again and again, because a manager elsewhere gives finalizers to resources
// until these are being deleted. The manager goes first, so that no content of a finalizer begins
// that cannot end.
func (r *Removal) Force(ctx context.Context) error {
	managers := *r
	managers.Objects = slices.DeleteFunc(slices.Clone(r.Objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Deployment" })
	if err := managers.delete(ctx, func() error { return nil }); err != nil {
		return err
	}
	return r.delete(ctx, func() error { return r.release(ctx) })
}

// delete deletes the objects and waits until they are gone. It calls help before each look. An
// error of help is only reported if the context ends, since the next call may succeed.
func (r *Removal) delete(ctx context.Context, help func() error) error {
	var left []*unstructured.Unstructured
	for _, object := range r.Objects {
		propagation := metav1.DeletePropagationBackground
		if object.GetKind() == "Deployment" {
			propagation = metav1.DeletePropagationForeground // It is gone when its pods are.
		}
		switch err := r.Client.Delete(ctx, object.DeepCopy(), client.PropagationPolicy(propagation)); {
		case err == nil:
			left = append(left, object)
		case !isGone(err):
			return fmt.Errorf("delete the %s %s: %w", object.GetKind(), nameOf(object), err)
		}
	}
	for {
		failed := help()
		left = slices.DeleteFunc(left, func(object *unstructured.Unstructured) bool {
			now := object.DeepCopy()
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), now)
			switch {
			case isGone(err):
				r.Say(fmt.Sprintf("removed: %s %s", object.GetKind(), nameOf(object)))
				return true
			case err == nil:
				failed = errors.Join(failed, r.askAgain(ctx, now))
			case ctx.Err() == nil:
				failed = errors.Join(failed, fmt.Errorf("read the %s %s: %w", object.GetKind(), nameOf(object), err))
			}
			return false
		})
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return r.late(ctx, left, failed)
		case <-time.After(interval):
		}
	}
}

// askAgain has the API server try again to delete the resources of a CRD, if it failed to do so, and
// returns why it failed. By itself it tries again after pauses that double up to 1000 s, for example
// because the storage of a new kind was not initialized yet. A change of the CRD ends such a pause.
func (r *Removal) askAgain(ctx context.Context, object *unstructured.Unstructured) error {
	failed := deletionFailure(object)
	if failed == nil {
		return nil
	}
	if asked, err := time.Parse(time.RFC3339Nano, object.GetAnnotations()[askedAt]); err == nil && time.Since(asked) < pause {
		return failed
	}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, askedAt, time.Now().Format(time.RFC3339Nano))
	if err := r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil && !isGone(err) {
		return errors.Join(failed, fmt.Errorf("ask again for the deletion of the %s %s: %w", object.GetKind(), nameOf(object), err))
	}
	return failed
}

// deletionFailure returns why the API server could not delete the resources of a CRD.
func deletionFailure(object *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, ok := one.(map[string]any); ok && condition["type"] == "Terminating" && condition["reason"] == "InstanceDeletionFailed" {
			return fmt.Errorf("the API server cannot delete the resources of the %s %s: %v", object.GetKind(), nameOf(object), condition["message"])
		}
	}
	return nil
}

// late says what is left.
func (r *Removal) late(ctx context.Context, left []*unstructured.Unstructured, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var text strings.Builder
	text.WriteString("the removal has begun, and these objects are still there:")
	for _, object := range left {
		text.WriteString("\n  " + object.GetKind() + " " + nameOf(object))
	}
	resources, err := r.resources(ctx)
	if len(resources) > 0 {
		text.WriteString("\nThey may wait for these custom resources, which still have finalizers of other controllers:\n" + lines(resources))
	}
	return errors.Join(errors.New(text.String()), failed, err)
}

// resource is a custom resource.
type resource struct {
	metav1.PartialObjectMetadata

	watch *watches.Watch // of its kind; nil is none
}

func lines(resources []resource) string {
	texts := make([]string, 0, len(resources))
	for _, one := range resources {
		text := "  " + one.Kind + " " + nameOf(&one)
		if len(one.Finalizers) > 0 {
			text += ", finalizers: " + strings.Join(one.Finalizers, ", ")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

func nameOf(object client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}

// resources returns all custom resources of the CRDs, and of other watched kinds those that have
// the finalizer of their watch.
func (r *Removal) resources(ctx context.Context) (all []resource, err error) {
	defined := map[metav1.GroupKind]bool{}
	for _, object := range r.Objects {
		if object.GroupVersionKind().Group != "apiextensions.k8s.io" || object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		of := metav1.GroupKind{}
		of.Group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
		of.Kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
		defined[of] = true
		found, err := r.instances(ctx, object.GetName())
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			all = append(all, resource{one, r.watchOf(of)})
		}
	}
	for _, watch := range r.Watches {
		if watch.Finalizer == nil || defined[metav1.GroupKind(watch.GVK.GroupKind())] {
			continue
		}
		found, err := r.list(ctx, metav1.GroupVersionKind(watch.GVK))
		if err != nil && !isGone(err) {
			return nil, err
		}
		for _, one := range found {
			if slices.ContainsFunc(one.Finalizers, watch.Finalizer.Is) {
				all = append(all, resource{one, &watch})
			}
		}
	}
	return all, nil
}

func (r *Removal) watchOf(kind metav1.GroupKind) *watches.Watch {
	for _, watch := range r.Watches {
		if metav1.GroupKind(watch.GVK.GroupKind()) == kind {
			return &watch
		}
	}
	return nil
}

// instances returns all resources of a CRD. A CRD that does not exist, or is being removed, has none.
func (r *Removal) instances(ctx context.Context, crd string) ([]metav1.PartialObjectMetadata, error) {
	gvk, err := r.served(ctx, crd)
	if isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := r.list(ctx, gvk)
	if err != nil {
		if _, again := r.served(ctx, crd); isGone(again) {
			return nil, nil
		}
	}
	return found, err
}

// served returns a version of the CRD that the API server serves.
func (r *Removal) served(ctx context.Context, crd string) (gvk metav1.GroupVersionKind, err error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apiextensions.k8s.io/v1")
	object.SetKind("CustomResourceDefinition")
	if err := r.Client.Get(ctx, client.ObjectKey{Name: crd}, object); err != nil {
		return gvk, fmt.Errorf("read the CRD: %w", err)
	}
	gvk.Group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
	gvk.Kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok && v["served"] == true {
			gvk.Version, _, _ = unstructured.NestedString(v, "name")
			return gvk, nil
		}
	}
	return gvk, fmt.Errorf("the CRD %s has no version that is served: set spec.versions[].served, so that its resources can be listed", crd)
}

func (r *Removal) list(ctx context.Context, gvk metav1.GroupVersionKind) (all []metav1.PartialObjectMetadata, err error) {
	page := &metav1.PartialObjectMetadataList{}
	for {
		page.APIVersion, page.Kind = metav1.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String(), gvk.Kind+"List"
		if err := r.Client.List(ctx, page, client.Limit(500), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("list the %s objects: %w", gvk.Kind, err)
		}
		for _, one := range page.Items {
			one.APIVersion, one.Kind = metav1.GroupVersion{Group: gvk.Group, Version: gvk.Version}.String(), gvk.Kind
			all = append(all, one)
		}
		if page.Continue == "" {
			return all, nil
		}
	}
}

// release takes the finalizers of the watches off all custom resources; other finalizers stay.
func (r *Removal) release(ctx context.Context) error {
	found, err := r.resources(ctx)
	errs := []error{err}
	for _, one := range found {
		if one.watch == nil || one.watch.Finalizer == nil || !slices.ContainsFunc(one.Finalizers, one.watch.Finalizer.Is) {
			continue
		}
		before := one.DeepCopy()
		one.Finalizers = slices.DeleteFunc(slices.Clone(one.Finalizers), one.watch.Finalizer.Is)
		switch err := r.Client.Patch(ctx, &one.PartialObjectMetadata, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); {
		case err == nil:
			r.Say(fmt.Sprintf("removed the finalizer %s of the %s %s", one.watch.Finalizer.Name, one.Kind, nameOf(&one)))
		case !isGone(err) && !apierrors.IsConflict(err): // The next look finds the change.
			errs = append(errs, fmt.Errorf("remove the finalizer of the %s %s: %w", one.Kind, nameOf(&one), err))
		}
	}
	return errors.Join(errs...)
}

// isGone reports whether the error says that there is no such object. There are none of a kind that
// the API server does not serve.
func isGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
