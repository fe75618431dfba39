// Package drift finds the objects of a release that others have changed or deleted, and
// brings them back.
//
// An object is compared by a dry run of server-side apply, under the name by which Helm
// applies: what the API server answers differs from the live object exactly where somebody
// changed or removed what the release sets. Fields that others added stay. The objects of
// hooks are not part of a release's manifest, and are left.
package drift

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/threeway"
	"github.com/ensign-operator/ensign/internal/watches"
)

// fieldManager is the name under which Helm applies objects.
const fieldManager = "helm"

// Detector compares the objects of one release.
type Detector struct {
	Cluster *manifest.Cluster
	// Name and Namespace are the release's.
	Name, Namespace string
	Ignore          []watches.DriftIgnore
	// Saw is called for each object of the manifest, if it is not nil: with the live object as it
	// was compared, or with nil where the comparison says nothing for sure.
	Saw func(live *unstructured.Unstructured)
	// ByClient is true for a release whose objects the client has applied by patches: they are
	// compared and repaired by such patches.
	ByClient bool
}

// Object is an object that has drifted.
type Object struct {
	// Name is the kind with namespace and name, for people.
	Name string
	// Missing is true if there is no such object.
	Missing  bool
	client   dynamic.ResourceInterface
	desired  *unstructured.Unstructured
	byClient bool
}

// Find returns the objects of the manifest that have drifted. It writes nothing.
func (d *Detector) Find(ctx context.Context, text string) ([]Object, error) {
	desired, err := manifest.Parse(text)
	if err != nil {
		return nil, err
	}
	var drifted []Object
	for _, object := range desired {
		found, live, err := d.compare(ctx, object)
		if err != nil {
			return nil, err
		}
		if d.Saw != nil {
			d.Saw(live)
		}
		if found != nil {
			drifted = append(drifted, *found)
		}
	}
	return drifted, nil
}

// Repair applies the objects. It returns all errors.
func Repair(ctx context.Context, objects []Object) error {
	var errs []error
	for _, object := range objects {
		if _, err := object.apply(ctx); err != nil {
			errs = append(errs, fmt.Errorf("repair %s: %w", object.Name, err))
		}
	}
	return errors.Join(errs...)
}

// compare returns the object if it has drifted, and the live one where that is sure. An object
// that the API server would not accept any more, such as one with a field that cannot be changed,
// is left: only an upgrade can say more.
func (d *Detector) compare(ctx context.Context, desired *unstructured.Unstructured) (drifted *Object, live *unstructured.Unstructured, err error) {
	object, err := d.prepare(desired)
	if err != nil {
		return nil, nil, err
	}
	live, err = object.client.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		object.Missing = true
		return object, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", object.Name, err)
	}
	if live.GetDeletionTimestamp() != nil {
		return nil, nil, nil // Its deletion is an event, upon which it is found missing.
	}
	keepIgnored(desired, live, d.Ignore)
	applied, err := object.apply(ctx, metav1.DryRunAll)
	switch {
	case apierrors.IsInvalid(err):
		return nil, nil, nil // See above.
	case err != nil:
		return nil, nil, fmt.Errorf("compare %s: %w", object.Name, err)
	case reflect.DeepEqual(relevant(live), relevant(applied)):
		return nil, live, nil
	}
	return object, live, nil
}

// prepare completes an object as Helm does when it applies it.
func (d *Detector) prepare(desired *unstructured.Unstructured) (*Object, error) {
	client, err := d.Cluster.Find(desired)
	if err != nil {
		return nil, err
	}
	desired.SetLabels(with(desired.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
	desired.SetAnnotations(with(desired.GetAnnotations(), map[string]string{"meta.helm.sh/release-name": d.Name, "meta.helm.sh/release-namespace": d.Namespace}))
	return &Object{Name: manifest.Name(desired), desired: desired, client: client, byClient: d.ByClient}, nil
}

func with(all, more map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, all)
	maps.Copy(result, more)
	return result
}

// apply makes the object what it should be, or finds out with a dry run what that would be.
func (o *Object) apply(ctx context.Context, dryRun ...string) (*unstructured.Unstructured, error) {
	if o.byClient {
		return o.patch(ctx, dryRun)
	}
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(o.desired.Object); err != nil {
		return nil, err
	}
	force := true
	return o.client.Patch(ctx, o.desired.GetName(), types.ApplyPatchType, body.Bytes(), metav1.PatchOptions{FieldManager: fieldManager, Force: &force, DryRun: dryRun})
}

// patch is apply by a patch of the client.
func (o *Object) patch(ctx context.Context, dryRun []string) (*unstructured.Unstructured, error) {
	live, err := o.client.Get(ctx, o.desired.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return o.client.Create(ctx, o.desired, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dryRun})
	}
	if err != nil {
		return nil, err
	}
	patch, kind, err := threeway.Patch(o.desired, o.desired, live)
	if err != nil || string(patch) == threeway.Empty {
		return live, err
	}
	return o.client.Patch(ctx, o.desired.GetName(), kind, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: dryRun})
}

// relevant returns the object without what every write changes, and without its status.
func relevant(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	object.SetGeneration(0)
	delete(object.Object, "status")
	return object.Object
}

// keepIgnored gives desired the live values of the fields that others may change.
func keepIgnored(desired, live *unstructured.Unstructured, ignore []watches.DriftIgnore) {
	for _, one := range ignore {
		if one.Kind != desired.GetKind() {
			continue
		}
		for _, pointer := range one.Pointers {
			path := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
			for i := range path {
				path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(path[i])
			}
			value, found, err := unstructured.NestedFieldCopy(live.Object, path...)
			if err == nil && found {
				_ = unstructured.SetNestedField(desired.Object, value, path...)
			} else {
				unstructured.RemoveNestedField(desired.Object, path...)
			}
		}
	}
}
