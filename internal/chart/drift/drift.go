// Package drift finds the objects of a release that others have changed or deleted, and
// applies them again.
//
// An object is compared by a dry run of how Helm applies it: a field of which the chart says
// something has drifted where the answer of the API server differs from the live object. Fields
// that others added stay, and so do those that the cluster fills (package fields). The objects of
// hooks are not part of a release's manifest, and are left.
package drift

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/ensign-operator/ensign/internal/chart/displace"
	"github.com/ensign-operator/ensign/internal/chart/fields"
	"github.com/ensign-operator/ensign/internal/chart/manifest"
	"github.com/ensign-operator/ensign/internal/chart/threeway"
)

const fieldManager = displace.FieldManager

// Detector compares the objects of one release.
type Detector struct {
	Cluster *manifest.Cluster
	// Name and Namespace are the release's.
	Name, Namespace string
	Ignored         fields.Ignored
	// Saw is called for each object of the manifest, if it is not nil: with the live object as it
	// was compared, or with nil where the comparison says nothing for sure.
	Saw func(live *unstructured.Unstructured)
	// ByClient is true for a release whose objects the client has applied by patches: they are
	// compared and repaired by such patches.
	ByClient bool

	apply apply // Tests have another.
}

// apply gives the live object, which may be nil, what desired says, and returns it. With dryRun it
// changes nothing.
type apply func(ctx context.Context, client dynamic.ResourceInterface, desired, live *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error)

// Found is what a comparison has found.
type Found struct {
	// Drifted are in the order of the manifest.
	Drifted []Object
	// Refused are the objects that could not be compared.
	Refused []Refused
	// Unused are the rules of Detector.Ignored that name nothing in the release.
	Unused []fields.Rule
}

// Object is an object that has drifted.
type Object struct {
	// Name is the kind with namespace and name, for people.
	Name string
	// Missing is true if there is no such object.
	Missing bool
	// Fields are those that have drifted, as JSON pointers. They hold no values.
	Fields []string

	client        dynamic.ResourceInterface
	desired, live *unstructured.Unstructured
}

// maxFields is how many fields of an object are named.
const maxFields = 8

// String returns the object's name and its fields.
func (o Object) String() string {
	if o.Missing {
		return o.Name + " (missing)"
	}
	shown := strings.Join(o.Fields[:min(len(o.Fields), maxFields)], ", ")
	if more := len(o.Fields) - maxFields; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return o.Name + " (" + shown + ")"
}

// Find compares the objects of the manifest. It writes nothing. An error that passes by itself,
// such as a timeout, leaves the other objects compared: found has what was found in spite of it.
func (d *Detector) Find(ctx context.Context, text string) (found Found, err error) {
	desired, err := manifest.Parse(text)
	if err != nil {
		return found, err
	}
	c := comparison{Detector: d, scaled: fields.ScaledBy(desired, d.Namespace), used: map[int]bool{}}
	var errs []error
	for _, object := range lastOfEach(desired, d.Namespace) {
		one, live, err := c.compare(ctx, object)
		if d.Saw != nil {
			d.Saw(live)
		}
		reason := refusal(err)
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case err != nil && reason != "":
			found.Refused = append(found.Refused, Refused{Name: manifest.Name(object), Reason: reason, Message: err.Error()})
			c.use(object, nil)
		case err != nil:
			errs = append(errs, fmt.Errorf("compare %s: %w", manifest.Name(object), err))
			c.use(object, nil)
		case one != nil:
			found.Drifted = append(found.Drifted, *one)
		}
	}
	for i, rule := range d.Ignored {
		if !c.used[i] {
			found.Unused = append(found.Unused, rule)
		}
	}
	return found, errors.Join(errs...)
}

// lastOfEach returns the objects without those that the manifest has again further down: Helm
// applies one after the other, so that the last stays.
func lastOfEach(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	seen := map[string]bool{}
	var kept []*unstructured.Unstructured
	for _, object := range slices.Backward(objects) {
		in := object.GetNamespace()
		if in == "" {
			in = namespace
		}
		identity := strings.Join([]string{object.GroupVersionKind().GroupKind().String(), in, object.GetName()}, "/")
		if object.GetName() == "" || !seen[identity] {
			kept = append(kept, object)
		}
		seen[identity] = true
	}
	slices.Reverse(kept)
	return kept
}

// Repair applies the objects. It returns those that it has repaired, and all errors.
func (d *Detector) Repair(ctx context.Context, objects []Object) (repaired []Object, err error) {
	var errs []error
	for _, object := range objects {
		if _, err := d.applied()(ctx, object.client, object.desired, object.live); err != nil {
			errs = append(errs, fmt.Errorf("repair %s: %w", object, err))
			continue
		}
		repaired = append(repaired, object)
	}
	return repaired, errors.Join(errs...)
}

// applied returns how the objects of the release are applied.
func (d *Detector) applied() apply {
	switch {
	case d.apply != nil:
		return d.apply
	case d.ByClient:
		return byClient
	}
	return byServer
}

// comparison is one Find at work.
type comparison struct {
	*Detector

	scaled fields.Scaled
	// used are the indexes of the rules that name something.
	used map[int]bool
}

// errNoName is the refusal of an object that only has a generateName: nobody knows what it is called.
var errNoName = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: noName, Message: "it has no name, only a generateName"}}

// compare returns the object if it has drifted, and the live one where that is sure.
func (c *comparison) compare(ctx context.Context, desired *unstructured.Unstructured) (drifted *Object, live *unstructured.Unstructured, err error) {
	if desired.GetName() == "" {
		return nil, nil, errNoName
	}
	object, err := c.prepare(desired)
	if err != nil {
		return nil, nil, err
	}
	live, err = object.client.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) && refusal(err) == "" {
		c.use(desired, nil)
		if object.Missing = true; fields.IsTemporary(desired) {
			return nil, nil, nil // It is as the chart wants it.
		}
		return object, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if live.GetDeletionTimestamp() != nil {
		c.use(desired, nil)
		return nil, nil, nil // Its deletion is an event, upon which it is found missing.
	}
	object.live = live
	c.use(desired, live)
	c.leave(desired, live)
	applied, err := c.applied()(ctx, object.client, desired, live, metav1.DryRunAll)
	if err != nil {
		return nil, nil, err
	}
	if object.Fields = differences(desired, live, applied); len(object.Fields) == 0 {
		return nil, live, nil
	}
	return object, live, nil
}

// leave gives desired the live values of what the cluster fills and of what others may change.
func (c *comparison) leave(desired, live *unstructured.Unstructured) {
	for _, pointer := range fields.ByCluster(desired, c.scaled, c.Namespace) {
		fields.Keep(desired.Object, live.Object, pointer)
	}
	c.Ignored.KeepIgnored(desired, live, nil)
}

// use notes which rules name something in an object. Without a live object, nobody knows: then all
// of its kind do.
func (c *comparison) use(desired, live *unstructured.Unstructured) {
	for i, rule := range c.Ignored {
		if rule.Of(desired) && (live == nil || rule.Pointer.Has(desired.Object) || rule.Pointer.Has(live.Object)) {
			c.used[i] = true
		}
	}
}

// prepare completes an object as Helm does when it applies it.
func (c *comparison) prepare(desired *unstructured.Unstructured) (*Object, error) {
	client, err := c.Cluster.Find(desired)
	if err != nil {
		return nil, err
	}
	desired.SetLabels(with(desired.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "Helm"}))
	desired.SetAnnotations(with(desired.GetAnnotations(), map[string]string{"meta.helm.sh/release-name": c.Name, "meta.helm.sh/release-namespace": c.Namespace}))
	return &Object{Name: manifest.Name(desired), desired: desired, client: client}, nil
}

func with(all, more map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, all)
	maps.Copy(result, more)
	return result
}

// byServer is apply by a server-side apply under Helm's name, which takes what others have
// changed. What others have put in the chart's place goes.
func byServer(ctx context.Context, client dynamic.ResourceInterface, desired, live *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(desired.Object); err != nil {
		return nil, err
	}
	force := true
	apply := func() (*unstructured.Unstructured, error) {
		return client.Patch(ctx, desired.GetName(), types.ApplyPatchType, body.Bytes(), metav1.PatchOptions{FieldManager: fieldManager, Force: &force, DryRun: dryRun})
	}
	applied, refusal := apply()
	displaced, err := displace.Find(live, desired, refusal, func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return client.Update(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
	})
	switch {
	case err != nil:
		return nil, err
	case displaced == nil:
		return applied, refusal
	case len(dryRun) > 0:
		return displaced.Applied, nil
	}
	if _, err := client.Patch(ctx, desired.GetName(), types.JSONPatchType, displaced.Patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return nil, err
	}
	return apply()
}

// byClient is apply by a patch of the client.
func byClient(ctx context.Context, client dynamic.ResourceInterface, desired, live *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	if live == nil {
		return client.Create(ctx, desired, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dryRun})
	}
	patch, kind, err := threeway.Patch(desired, desired, live)
	if err != nil || string(patch) == threeway.Empty {
		return live, err
	}
	return client.Patch(ctx, desired.GetName(), kind, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: dryRun})
}
