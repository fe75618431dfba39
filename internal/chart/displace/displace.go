// Package displace finds what others have put in the place of a chart's content, such as a port of a
// Service with the name of the chart's port. It gives that to Helm's field manager, so that the next
// apply removes it. A forced apply alone takes the fields of the chart, and leaves what others added
// beside them, also where the API server refuses both together.
package displace

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ensign-operator/ensign/internal/chart/threeway"
)

// FieldManager is the name under which Helm applies objects.
const FieldManager = "helm"

// Try has the API server update an object by a dry run, under Helm's name.
type Try func(*unstructured.Unstructured) (*unstructured.Unstructured, error)

// Displaced is what has to go.
type Displaced struct {
	// Applied is the object as it will be. The managed fields of Helm's apply in it are those that
	// the update changes, with those that it removes.
	Applied *unstructured.Unstructured
	// Patch is a JSON patch that gives Helm what is to go, and changes nothing else.
	Patch []byte
}

// Find returns what of the live object has to go, so that the API server takes what it has refused as
// invalid; nil if there is nothing. It is as little as will do: what others added elsewhere stays.
// An error is one of the API server that may pass by itself.
func Find(live, desired *unstructured.Unstructured, refusal error, try Try) (*Displaced, error) {
	if live == nil || !apierrors.IsInvalid(refusal) {
		return nil, nil //nolint:nilnil // See above.
	}
	going := suspects(live, desired, refusal)
	if len(going) == 0 {
		return nil, nil //nolint:nilnil // See above.
	}
	applied, err := without(live, desired, going, try)
	if applied == nil || err != nil {
		return nil, err
	}
	for _, path := range slices.Clone(going) {
		rest := slices.DeleteFunc(slices.Clone(going), path.Equals)
		if len(rest) == 0 {
			break
		}
		less, err := without(live, desired, rest, try)
		if err != nil {
			return nil, err
		}
		if less != nil {
			going, applied = rest, less
		}
	}
	return result(live, applied, going)
}

// without returns the object that an update brings with the chart's text, and without the fields;
// nil if the API server refuses it, or nobody knows how to merge it.
func without(live, desired *unstructured.Unstructured, going []fieldpath.Path, try Try) (*unstructured.Unstructured, error) {
	rest := live.DeepCopy()
	for _, path := range going {
		remove(rest.Object, path)
	}
	merged, err := threeway.Merge(desired, rest)
	if merged == nil || err != nil {
		return nil, nil //nolint:nilnil,nilerr // The refusal of the apply says more.
	}
	applied, err := try(merged)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, err // Somebody else was faster: the refusal was about another object.
	}
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // The refusal of the apply says why.
	}
	return applied, nil
}

// suspects returns the fields and entries of lists, sorted, of which the chart says nothing, that
// others than Helm or nobody hold, and that stand where the API server's refusal points to.
func suspects(live, desired *unstructured.Unstructured, refusal error) (found []fieldpath.Path) {
	said := heldBy(live, isHelms)
	causes := causesOf(refusal)
	all := heldBy(live, isOthers)
	for path := range all.All() {
		going := unsaid(path, desired.Object, said)
		if going == nil || !slices.ContainsFunc(causes, func(cause []string) bool { return isAt(going, cause) }) {
			continue
		}
		if !slices.ContainsFunc(found, going.Equals) {
			found = append(found, going)
		}
	}
	for _, path := range unheld(live, desired) {
		if slices.ContainsFunc(causes, func(cause []string) bool { return len(path) >= len(cause) && isAt(path, cause) }) {
			found = append(found, path)
		}
	}
	slices.SortFunc(found, fieldpath.Path.Compare)
	return found
}

// unsaid returns the path if the chart says nothing of it, neither now nor in what Helm has applied;
// for a field of such an entry of a list that of the entry, and nil for any other.
func unsaid(path fieldpath.Path, desired map[string]any, said *fieldpath.Set) fieldpath.Path {
	if name := path[0].FieldName; name == nil || slices.Contains([]string{"metadata", "status", "apiVersion", "kind"}, *name) {
		return nil
	}
	var in any = desired
	for i, element := range path {
		var there bool
		if in, there = step(in, element); !there {
			if said.Has(path[:i+1]) {
				return nil
			}
			return wholeEntry(path, i).Copy()
		}
	}
	return nil
}

// wholeEntry returns the path up to the first entry of a list from an index on, or all of it.
func wholeEntry(path fieldpath.Path, from int) fieldpath.Path {
	for i := from; i < len(path); i++ {
		if path[i].FieldName == nil {
			return path[:i+1]
		}
	}
	return path
}

// place is an entry of a list in the path of a cause.
var place = regexp.MustCompile(`\[[^\]]*\]`)

// causesOf returns the paths of the fields that a refusal names, without the places in lists: nobody
// has the object to which these belong.
func causesOf(refusal error) (causes [][]string) {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		causes = append(causes, strings.Split(place.ReplaceAllString(cause.Field, ""), "."))
	}
	return causes
}

// isAt reports whether one of the two paths leads to where the other begins.
func isAt(path fieldpath.Path, cause []string) bool {
	var names []string
	for _, element := range path {
		if element.FieldName != nil {
			names = append(names, *element.FieldName)
		}
	}
	both := min(len(names), len(cause))
	return slices.Equal(names[:both], cause[:both])
}

// result gives Helm the fields that are to go.
func result(live, applied *unstructured.Unstructured, going []fieldpath.Path) (*Displaced, error) {
	moved, others := fieldpath.NewSet(), heldBy(live, isOthers)
	for _, gone := range going {
		held := false
		for path := range others.All() {
			if len(path) >= len(gone) && path[:len(gone)].Equals(gone) {
				moved.Insert(path.Copy())
				held = true
			}
		}
		if !held {
			moved.Insert(gone)
		}
	}
	entries, err := move(live, moved)
	if entries == nil || err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	helms := heldBy(applied, func(entry *metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager && entry.Subresource == ""
	})
	entry := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: applied.GetAPIVersion(), FieldsType: "FieldsV1"}
	if err := write(&entry, helms.Union(moved)); err != nil {
		return nil, err
	}
	applied.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return &Displaced{Applied: applied, Patch: patch}, nil
}
