package objects

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
)

// Change is a change that an upgrade would make to an object.
type Change struct {
	// Name is the kind with namespace and name, for people.
	Name string `json:"object"`
	// Kind is create, update, replace or delete, or keep for an object that the chart no longer has.
	Kind string `json:"change"`
	// Fields are those that change, and Random those that differ from one rendering to the next, as JSON pointers.
	Fields []string `json:"fields,omitempty"`
	Random []string `json:"random,omitempty"`
	// Note says why an object that can be created was not tried, or why one is kept.
	Note string `json:"note,omitempty"`
	// Error is why the upgrade would fail at the object. Preview sets Err; callers set Error and Diff.
	Error string `json:"error,omitempty"`
	Diff  string `json:"diff,omitempty"`

	// Live is the object as it is, and Applied as it would be; nil where there is none.
	Live    *unstructured.Unstructured `json:"-"`
	Applied *unstructured.Unstructured `json:"-"`
	// Former is true if the release has the object already, and FromCRDs if it comes from the chart's directory crds.
	Former   bool  `json:"-"`
	FromCRDs bool  `json:"-"`
	Err      error `json:"-"`
}

// Preview returns the changes by an upgrade from the manifest before to the first one of wanted. The second one is
// another rendering. It also compares the CRDs of the chart's directory crds. It writes nothing.
func (d *Detector) Preview(ctx context.Context, definitions, before string, wanted [2]string) (changes []Change, err error) {
	var parsed [4][]*unstructured.Unstructured
	for i, text := range []string{before, wanted[0], wanted[1], definitions} {
		if parsed[i], err = manifest.Parse(text); err != nil {
			return nil, err
		}
	}
	former, made, again := d.byIdentity(parsed[0]), lastOfEach(parsed[1], d.Namespace), d.byIdentity(parsed[2])
	d.Scaled = ScaledBy(made, d.Namespace)
	brings := append(slices.Clone(parsed[3]), made...)
	for _, crd := range parsed[3] {
		plain := *d
		plain.ByClient = false
		change := plain.preview(ctx, crd, nil, nil)
		change.FromCRDs = true
		changes = append(changes, change)
	}
	for _, object := range made {
		fault := NotText(object.Object)
		if fault != nil {
			fault = fmt.Errorf("unable to decode: %w", fault)
		}
		d.addHelmMetadata(object)
		identity, random := identityOf(object, d.Namespace), []string{"/metadata/name"}
		if twin := again[identity]; twin != nil {
			d.addHelmMetadata(twin)
			random = Differing(object.Object, twin.Object, "")
		}
		change := d.preview(ctx, object, former[identity], brings)
		change.Former, change.Random, change.Err = former[identity] != nil, random, cmp.Or(fault, change.Err)
		changes = append(changes, change)
		delete(former, identity)
	}
	for _, object := range lastOfEach(parsed[0], d.Namespace) {
		if former[identityOf(object, d.Namespace)] == nil {
			continue
		}
		if change := d.dropped(ctx, object); change.Live != nil || change.Err != nil {
			changes = append(changes, change)
		}
	}
	return slices.DeleteFunc(changes, func(c Change) bool { return c.Kind == "update" && len(c.Fields) == 0 && c.Err == nil }), ctx.Err()
}

func (d *Detector) byIdentity(all []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, object := range all {
		found[identityOf(object, d.Namespace)] = object
	}
	return found
}

// preview tries one object. brings are the objects of the release that others may need.
func (d *Detector) preview(ctx context.Context, want, before *unstructured.Unstructured, brings []*unstructured.Unstructured) (c Change) {
	c.Name, c.Kind = manifest.Name(want), "create"
	if want.GetName() == "" {
		c.Err = errNoName
		return c
	}
	client, err := d.Cluster.Find(want)
	c.Name = manifest.Name(want)
	if meta.IsNoMatchError(err) && defines(brings, want.GroupVersionKind().GroupKind()) {
		c.Applied, c.Note = want, "not tried: its kind comes with the release"
		return c
	}
	var result Result
	if err == nil {
		result, err = d.Apply(ctx, client, want, before, Options{DryRun: true})
	}
	if err == nil && result.Live == nil {
		result, err = d.Apply(ctx, client, want, nil, Options{DryRun: true, New: true})
	}
	if apierrors.IsNotFound(err) && hasNamespace(brings, want.GetNamespace()) {
		c.Applied, c.Note = want, "not tried: its namespace comes with the release"
		return c
	}
	c.Live, c.Applied, c.Fields, c.Err = result.Live, result.Applied, result.Differences, Explained(err)
	if c.Live != nil {
		c.Kind = "update"
	}
	return c
}

// dropped returns the change of an object that the chart no longer has, as helmclient does it.
func (d *Detector) dropped(ctx context.Context, object *unstructured.Unstructured) (c Change) {
	c.Live, _, c.Err = d.Cluster.Get(ctx, object)
	c.Name, c.Kind, c.Former = manifest.Name(object), "delete", true
	if c.Live == nil {
		return c
	}
	if other := OtherRelease(c.Live, d.Namespace, d.Applier.Name); other != "" {
		c.Kind, c.Note = "keep", "it belongs to the release "+other
	}
	if IsKept(c.Live) {
		c.Kind, c.Note = "keep", "it has the annotation "+KeepPolicy+": keep"
	}
	return c
}

// defines reports whether one of the objects is the CRD of a kind.
func defines(objects []*unstructured.Unstructured, kind schema.GroupKind) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		name, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		return object.GetKind() == "CustomResourceDefinition" && group == kind.Group && name == kind.Kind
	})
}

func hasNamespace(objects []*unstructured.Unstructured, name string) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"} && object.GetName() == name
	})
}

func keysOf(one, other map[string]any) []string {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return slices.Sorted(maps.Keys(all))
}

// Differing returns the places at which two values differ, as JSON pointers that begin with at.
func Differing(one, other any, at string) (all []string) {
	switch first := one.(type) {
	case map[string]any:
		if second, is := other.(map[string]any); is {
			for _, key := range keysOf(first, second) {
				was, had := first[key]
				is, has := second[key]
				below := at + Pointer{key}.String()
				if had != has {
					all = append(all, below)
				} else {
					all = append(all, Differing(was, is, below)...)
				}
			}
			return all
		}
	case []any:
		if second, is := other.([]any); is && len(first) == len(second) {
			for i := range first {
				all = append(all, Differing(first[i], second[i], at+"/"+strconv.Itoa(i))...)
			}
			return all
		}
	}
	if reflect.DeepEqual(one, other) {
		return nil
	}
	return []string{at}
}
