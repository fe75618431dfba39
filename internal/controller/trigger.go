package controller

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ensign-operator/ensign/internal/watches"
)

// digestField of a stripped object holds the digest of its content, if the kind has no
// generations by which changes are found.
const digestField = "ensignDigest"

// StripTransform returns the transform of the cache of the watched kinds. An attempt reads its CR live;
// the cache only serves the events. The transform keeps the fields that they need: identity,
// labels, annotations, generation, deletion, finalizers, the observed generation, and the
// references of the CR.
func StripTransform(list ...watches.Watch) func(object any) (any, error) {
	references := map[schema.GroupVersionKind][]watches.Reference{}
	for _, watch := range list {
		references[watch.GVK] = watch.References
	}
	return func(object any) (any, error) {
		full, ok := object.(*unstructured.Unstructured)
		if !ok || full.Object[strippedField] != nil {
			return object, nil
		}
		stripped, err := strip(full)
		if err != nil {
			return nil, err
		}
		noteReferences(references[full.GroupVersionKind()], full, stripped)
		return stripped, nil
	}
}

// strippedField is set in a stripped object: a reflector that gets its first list as a watch transforms each
// object twice. No object of the API server has a field of that name.
var strippedField = "stripped-" + rand.Text() //nolint:gochecknoglobals // It is a constant of the process.

func strip(full *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stripped := &unstructured.Unstructured{Object: map[string]any{strippedField: true}}
	stripped.SetGroupVersionKind(full.GroupVersionKind())
	stripped.SetNamespace(full.GetNamespace())
	stripped.SetName(full.GetName())
	stripped.SetUID(full.GetUID())
	stripped.SetResourceVersion(full.GetResourceVersion())
	stripped.SetCreationTimestamp(full.GetCreationTimestamp())
	stripped.SetDeletionTimestamp(full.GetDeletionTimestamp())
	stripped.SetLabels(full.GetLabels())
	stripped.SetFinalizers(full.GetFinalizers())
	annotations := full.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	stripped.SetAnnotations(annotations)
	if observed, ok, _ := unstructured.NestedInt64(full.Object, "status", "observedGeneration"); ok {
		stripped.Object["status"] = map[string]any{"observedGeneration": observed}
	}
	if generation := full.GetGeneration(); generation != 0 {
		stripped.SetGeneration(generation)
		return stripped, nil
	}
	digest, err := contentDigest(full)
	if err != nil {
		return nil, err
	}
	stripped.Object[digestField] = digest
	return stripped, nil
}

func contentDigest(full *unstructured.Unstructured) (string, error) {
	content := maps.Clone(full.Object)
	delete(content, "metadata")
	delete(content, "status")
	data, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return digestOfText(string(data)), nil
}

// triggers lets the events of the CRs pass that concern the watch, and all deletions. The
// handler decides which of their changes count.
func triggers(watch *watches.Watch) predicate.TypedPredicate[*unstructured.Unstructured] {
	return predicate.TypedFuncs[*unstructured.Unstructured]{
		CreateFunc: func(e event.TypedCreateEvent[*unstructured.Unstructured]) bool {
			return isWatched(watch, e.Object)
		},
		UpdateFunc: func(e event.TypedUpdateEvent[*unstructured.Unstructured]) bool {
			return replaced(e) || isWatched(watch, e.ObjectNew) || isWatched(watch, e.ObjectOld)
		},
		GenericFunc: func(e event.TypedGenericEvent[*unstructured.Unstructured]) bool {
			return isWatched(watch, e.Object)
		},
	}
}

// isWatched reports whether the CR matches the watch's selector, or is being deleted and
// still has the watch's finalizer.
func isWatched(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	if watch.Selector.Matches(labels.Set(cr.GetLabels())) {
		return true
	}
	return cr.GetDeletionTimestamp() != nil && holdsFinalizer(watch, cr)
}

func holdsFinalizer(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return watch.Finalizer != nil && slices.ContainsFunc(cr.GetFinalizers(), watch.Finalizer.Is)
}

// replaced reports whether the update is about two objects of one name: the old one was
// deleted and the new one created while the watch missed both events.
func replaced(e crUpdated) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() }

// changed reports whether the update changes the version of the CR.
func changed(watch *watches.Watch, before, after *unstructured.Unstructured) bool {
	return versionOf(watch, before) != versionOf(watch, after)
}

// triggerAnnotations returns the annotations whose change makes content run: those with the
// watch's prefix, those that mean something below another one, those that the watch names, or with watchAnnotationsChanges all but kubectl's
// copy of the object. Those that give a CR up or cancel its run are none.
func triggerAnnotations(watch *watches.Watch, cr *unstructured.Unstructured) map[string]string {
	annotations, others := cr.GetAnnotations(), append(watch.AnnotationNames(abandonSuffix), watch.AnnotationNames(cancelSuffix)...)
	maps.DeleteFunc(annotations, func(name, _ string) bool {
		ours := watch.WatchAnnotationsChanges || strings.HasPrefix(name, watch.AnnotationPrefix()) || watch.IsKnownAnnotation(name) || slices.Contains(watch.TriggerAnnotations, name)
		return !ours || name == corev1.LastAppliedConfigAnnotation || slices.Contains(others, name)
	})
	return annotations
}

// digestOf returns the digest of all that a run depends on beside the CR's generation, for
// a later manager to compare with; "" if it is unknown.
func (r *Reconciler) digestOf(cr *unstructured.Unstructured) string {
	annotations := annotationsDigest(triggerAnnotations(&r.Watch, cr))
	if r.Digest == "" || annotations == "" {
		return r.Digest
	}
	return digestOfText(r.Digest + annotations)
}

// annotationsDigest is "" where there are no annotations.
func annotationsDigest(annotations map[string]string) string {
	if len(annotations) == 0 {
		return ""
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&text, "\n%q: %q", name, annotations[name])
	}
	return digestOfText(text.String())
}

func digestOfText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
