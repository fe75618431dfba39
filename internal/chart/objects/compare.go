package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/ensign-operator/ensign/internal/chart/manifest"
)

// Detector compares the objects of one release with those of its manifest, and applies those that other clients have
// changed or deleted.
type Detector struct {
	Applier

	Cluster *manifest.Cluster
	// Observe is called for each object of the manifest, if it is not nil: with the live object as
	// it was compared, or with nil if the comparison could not read it for sure.
	Observe func(live *unstructured.Unstructured)
	// Held reports whether a field of an object waits for its repair, because it is changed again
	// and again; "" is the object itself. Nil means that no field waits.
	Held func(object, field string) bool
	// Finished is changed by comparisons, unless it is nil.
	Finished Finished
}

// Finished are the Jobs of a release that were compared, by their names; true for one that was seen to have ended. A
// repair does not create such a Job again after its deletion: a policy may have set its ttlSecondsAfterFinished.
type Finished map[string]bool

// Found is the result of a comparison.
type Found struct {
	// Drifted are in the order of the manifest.
	Drifted []Object
	// Waiting are objects with fields that wait for their repair.
	Waiting []Object
	// Refused are the objects that could not be compared.
	Refused []Refused
	// Patched are the objects that server-side apply refuses, with the reasons.
	Patched []Refused
	// Unused are the rules of Detector.Ignored that match nothing in the release.
	Unused []Rule
}

// Object is an object that has drifted.
type Object struct {
	// Name is the kind with namespace and name, for people.
	Name string
	// Missing is true if there is no such object.
	Missing bool
	// Fields are those that have drifted, as JSON pointers. They hold no values.
	Fields []string

	client                 dynamic.ResourceInterface
	desired, live, applied *unstructured.Unstructured
	keep                   []Pointer
}

// Change returns the change that a repair would make.
func (o Object) Change() Change {
	if o.Missing {
		return Change{Name: o.Name, Kind: "create", Applied: o.desired, Former: true}
	}
	return Change{Name: o.Name, Kind: "update", Live: o.live, Applied: o.applied, Fields: o.Fields, Former: true}
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

// Find compares the objects of the manifest, which it does not change. It writes nothing. After a temporary
// error, such as a timeout, the other objects are still compared: found has their differences.
func (d *Detector) Find(ctx context.Context, desired []*unstructured.Unstructured) (found Found, err error) {
	d.Scaled = ScaledBy(desired, d.Namespace)
	used := map[int]bool{}
	var errs []error
	for _, object := range lastOfEach(desired, d.Namespace) {
		object = object.DeepCopy()
		live, err := d.compare(ctx, object, &found)
		if d.Observe != nil {
			d.Observe(live)
		}
		reason := Reason(err)
		switch {
		case ctx.Err() != nil:
			return found, ctx.Err()
		case err != nil && reason != "":
			found.Refused = append(found.Refused, newRefused(object, err))
		case err != nil:
			errs = append(errs, fmt.Errorf("compare %s: %w", manifest.Name(object), err))
		}
		d.use(object, live, used)
	}
	for i, rule := range d.Ignored {
		if !used[i] {
			found.Unused = append(found.Unused, rule)
		}
	}
	return found, errors.Join(errs...)
}

// Repair applies the objects. It returns those that it has repaired, and all errors.
func (d *Detector) Repair(ctx context.Context, objects []Object) (repaired []Object, err error) {
	var errs []error
	for _, object := range objects {
		if _, err := d.apply(ctx, object.client, object.desired, Options{Keep: object.keep}); err != nil {
			errs = append(errs, fmt.Errorf("repair %s: %w", object, err))
			continue
		}
		repaired = append(repaired, object)
	}
	return repaired, errors.Join(errs...)
}

func (d *Detector) apply(ctx context.Context, client dynamic.ResourceInterface, desired *unstructured.Unstructured, o Options) (Result, error) {
	return d.Apply(ctx, client, desired, desired.DeepCopy(), o)
}

// errNoName is the refusal of an object that only has a generateName: its name is not known.
var errNoName = &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Reason: noName, Message: "it has no name, only a generateName"}}

// compare adds the differences of an object. It returns the live object where it knows that.
func (d *Detector) compare(ctx context.Context, desired *unstructured.Unstructured, found *Found) (live *unstructured.Unstructured, err error) {
	if desired.GetName() == "" {
		return nil, errNoName
	}
	client, err := d.Cluster.Find(desired)
	if err != nil {
		return nil, err
	}
	d.addHelmMetadata(desired)
	object := Object{Name: manifest.Name(desired), desired: desired, client: client}
	result, err := d.apply(ctx, client, desired, Options{DryRun: true})
	switch {
	case err != nil:
		return nil, err
	case result.Live == nil:
		object.Missing = result.Missing() && !isTemporary(desired) && !d.Finished[object.Name]
		if object.Missing {
			d.add(found, object)
		}
		return nil, nil //nolint:nilnil // It is not there.
	case result.Applied == nil:
		return nil, nil //nolint:nilnil // It is being deleted.
	}
	if d.Finished != nil && isJob(result.Live) {
		d.Finished[object.Name] = isFinished(result.Live)
	}
	if result.Patched != nil {
		patched := newRefused(desired, result.Patched)
		patched.Warnings = result.Warnings
		found.Patched = append(found.Patched, patched)
	}
	object.live, object.applied, object.Fields = result.Live, result.Applied, result.Differences
	d.add(found, object)
	return result.Live, nil
}

// add adds an object that has drifted, and its fields that wait.
func (d *Detector) add(found *Found, object Object) {
	waits := func(field string) bool { return d.Held != nil && d.Held(object.Name, field) }
	switch {
	case object.Missing && waits(""):
		found.Waiting = append(found.Waiting, object)
		return
	case object.Missing:
		found.Drifted = append(found.Drifted, object)
		return
	}
	waiting := object
	waiting.Fields = nil
	var due []string
	for _, field := range object.Fields {
		if waits(field) {
			waiting.Fields = append(waiting.Fields, field)
			object.keep = append(object.keep, byNames(Parse(field), object.live.Object))
		} else {
			due = append(due, field)
		}
	}
	if object.Fields = due; len(due) > 0 {
		found.Drifted = append(found.Drifted, object)
	}
	if len(waiting.Fields) > 0 {
		found.Waiting = append(found.Waiting, waiting)
	}
}

// Hint names the other managers of a field, where the managed fields have them, and says how to leave
// the field to them.
func (o Object) Hint(field string) string {
	if o.Missing {
		return "deleted again and again by another client"
	}
	by := "another client or a webhook"
	if managers := o.managersOf(field); len(managers) > 0 {
		by = strings.Join(managers, ", ")
	}
	return fmt.Sprintf("changed again and again by %s; to leave it to others, add to the watch: driftIgnore: [%s]", by, Line(o.desired, byNames(Parse(field), o.live.Object).String()))
}

// managersOf returns the names of the other managers that hold a field, or a part of it.
func (o Object) managersOf(field string) (names []string) {
	for _, entry := range o.live.GetManagedFields() {
		set := setOf(&entry)
		if set == nil || isOurs(&entry) {
			continue
		}
		for path := range set.All() { // It must not be left early.
			at := find(o.live.Object, path)
			pointer := at.pointer.String()
			if at.there && (pointer == field || strings.HasPrefix(pointer, field+"/")) && !slices.Contains(names, entry.Manager) {
				names = append(names, entry.Manager)
			}
		}
	}
	return names
}

// use notes the rules that match something in an object. Without a live object, this is not known: then all
// rules of its kind count as used.
func (d *Detector) use(desired, live *unstructured.Unstructured, used map[int]bool) {
	for i, rule := range d.Ignored {
		if rule.Of(desired) && (live == nil || rule.Pointer.Has(desired.Object) || rule.Pointer.Has(live.Object)) {
			used[i] = true
		}
	}
}
