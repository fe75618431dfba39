package controller

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/watches"
)

// Objects are objects by their kind.
type Objects = map[schema.GroupVersionKind][]types.NamespacedName

// Related follows the objects that belong to CRs: their children, and the objects to which
// their specs refer.
type Related interface {
	// Subscribe calls changed, one call at a time, for each CR of the watch of which an object
	// changed, until ctx ends. It returns when the watches that an earlier manager had are started.
	// uid is "" if the object does not say which CR of the name it belongs to. The third argument
	// names the object in the log, and is "" if only the status of children has changed. current is
	// how many children have become Current for kstatus.
	Subscribe(ctx context.Context, watch Scope, changed func(cr types.NamespacedName, uid types.UID, what string, current int))
	// Health returns the health of a CR's children. When it changes, changed is called without a text.
	Health(watch schema.GroupVersionKind, cr types.NamespacedName) Health
	// StatusFrom returns the fields of children that the status shows, by the key of the status; nil for one
	// that there is not.
	StatusFrom(watch schema.GroupVersionKind, cr types.NamespacedName) map[string]any
	// Refers sets the objects to which a CR refers, in place of those before.
	Refers(watch schema.GroupVersionKind, cr types.NamespacedName, to Objects)
	// State returns a digest of the objects. It waits a short time until they are known. If
	// they are still unknown, it returns "", and changed is called once they are known.
	State(ctx context.Context, watch schema.GroupVersionKind, cr types.NamespacedName, to Objects) string
}

// Health is that of a CR's children: those that are not Current for kstatus, and those of them that count
// although the CR was healthy. Next is when another one begins to count. Uncounted are kinds that are not watched.
type Health = struct {
	Known        bool
	All, Overdue []string
	Next         time.Time
	Uncounted    []string
}

// Scope is a watched kind, and whether its CRs have a namespace.
type Scope = struct {
	GVK        schema.GroupVersionKind
	Namespaced bool
}

// referencesField of a stripped object holds the objects to which the CR refers,
// each as the number of the watch's reference, namespace and name.
const referencesField = "ensignReferences"

// noteReferences stores in a stripped CR the references of the full one.
func noteReferences(references []watches.Reference, full, stripped *unstructured.Unstructured) {
	var items []any
	for i, reference := range references {
		for _, to := range reference.Resolve(full.Object) {
			items = append(items, strconv.Itoa(i)+"/"+to.Namespace+"/"+to.Name)
		}
	}
	if items != nil {
		stripped.Object[referencesField] = items
	}
}

// referencesOf returns the objects to which a stripped CR refers.
func referencesOf(references []watches.Reference, stripped *unstructured.Unstructured) Objects {
	found := Objects{}
	items, _ := stripped.Object[referencesField].([]any)
	for _, item := range items {
		text, _ := item.(string)
		parts := strings.SplitN(text, "/", 3)
		if i, err := strconv.Atoi(parts[0]); err == nil && len(parts) == 3 && i < len(references) {
			gvk := references[i].GVK
			found[gvk] = append(found[gvk], types.NamespacedName{Namespace: parts[1], Name: parts[2]})
		}
	}
	return found
}

// newReference returns an object to which a stripped CR refers and did not before, for the log; "" if
// there is none.
func newReference(references []watches.Reference, before, after *unstructured.Unstructured) string {
	known := referencesOf(references, before)
	for gvk, names := range referencesOf(references, after) {
		for _, name := range names {
			if !slices.Contains(known[gvk], name) {
				return gvk.Kind + " " + strings.TrimPrefix(name.String(), "/")
			}
		}
	}
	return ""
}

// setReferences gives related the objects to which a CR refers, before anything runs for it.
// stripped is nil for a CR that is gone.
func setReferences(related Related, watch *watches.Watch, name types.NamespacedName, stripped *unstructured.Unstructured) {
	switch {
	case related == nil, len(watch.References) == 0:
	case stripped == nil:
		related.Refers(watch.GVK, name, nil)
	default:
		related.Refers(watch.GVK, name, referencesOf(watch.References, stripped))
	}
}

// digestWith returns the digest of all that the attempt's run depends on: digestOf, and the
// objects to which the CR refers, as they are now. Where functions make the values of the
// content, those count that the prepared work has.
func (r *Reconciler) digestWith(ctx context.Context, a *attempt) string {
	digest, references := r.withValues(r.digestOf(a.cr), a), r.Watch.References
	if r.Related == nil || len(references) == 0 || a.cr.GetDeletionTimestamp() != nil {
		return digest // Nothing compares the digest of a CR that is being deleted.
	}
	to := Objects{}
	for _, reference := range references {
		to[reference.GVK] = append(to[reference.GVK], reference.Resolve(a.cr.Object)...)
	}
	if digest == "" {
		r.Related.Refers(r.Watch.GVK, a.request.NamespacedName, to)
		return ""
	}
	state := r.Related.State(ctx, r.Watch.GVK, a.request.NamespacedName, to)
	if state == "" {
		return ""
	}
	return digestOfText(digest + "\n" + state)
}

// withValues adds the digest of the values that functions have made to a digest; "" if they are
// unknown, as those of a CR that is not prepared.
func (r *Reconciler) withValues(digest string, a *attempt) string {
	if !r.Translates || digest == "" {
		return digest
	}
	work, knows := a.work.(translated)
	if !knows || work.ValuesDigest() == "" {
		return ""
	}
	return digestOfText(digest + "\n" + work.ValuesDigest())
}
