package objects

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// tryUpdate has the API server update an object by a dry run.
type tryUpdate func(*unstructured.Unstructured) (*unstructured.Unstructured, error)

// resolution has the fields of other managers to remove, such as a port of a Service with the name of
// the chart's port. A forced apply takes the chart's fields only, and leaves the added fields
// beside them, also where the API server refuses both together.
type resolution struct {
	going []fieldpath.Path
	// applied is the object as it will be. Its applied fields are those that the update changes, with those
	// that it removes.
	applied *unstructured.Unstructured
}

// conflict is one between the live object and the chart's text. before is the object as the chart had it before.
type conflict struct {
	live, desired, before *unstructured.Unstructured

	try tryUpdate
}

// resolve returns the fields of the live object to remove, so that the API server accepts the
// chart's text; nil if there are none, or if that would not help. It removes all rivals, and as few
// fields as possible at the place of a refusal: additions by other managers elsewhere stay. An
// error is a temporary one of the API server.
func (c *conflict) resolve(rivals []fieldpath.Path, refusal error) (*resolution, error) {
	if len(rivals) > 0 && refusal == nil {
		applied, cause, err := c.without(rivals)
		switch {
		case err != nil:
			return nil, err
		case applied != nil:
			return newResolution(c.live, applied, rivals)
		}
		refusal = cause
	}
	if !apierrors.IsInvalid(refusal) {
		return nil, nil //nolint:nilnil // See above.
	}
	going := slices.Clone(rivals)
	for _, path := range suspects(c.live, c.desired, refusal) {
		if !slices.ContainsFunc(rivals, func(rival fieldpath.Path) bool { return len(path) >= len(rival) && path[:len(rival)].Equals(rival) }) {
			going = append(going, path)
		}
	}
	if len(going) == len(rivals) {
		return nil, nil //nolint:nilnil // See above.
	}
	applied, _, err := c.without(going)
	if applied == nil || err != nil {
		return nil, err
	}
	all := &resolution{going, applied}
	if err := c.spare(all, going[len(rivals):]); err != nil {
		return nil, err
	}
	if len(all.going) == 0 {
		return nil, nil //nolint:nilnil // The API server accepts the update with all additions: they are not the cause.
	}
	return newResolution(c.live, all.applied, all.going)
}

// spare takes out of d the paths that need not be removed for the API server to accept the chart's text. A default
// without a manager is removed alone: a merge may drop it by itself, and an apply does not.
func (c *conflict) spare(d *resolution, paths []fieldpath.Path) error {
	for _, path := range paths {
		rest := slices.DeleteFunc(slices.Clone(d.going), path.Equals)
		if len(rest) == 0 && !holdsAny(fieldsOf(c.live, isOthers), path) {
			break
		}
		less, _, err := c.without(rest)
		if err != nil {
			return err
		}
		if less != nil {
			d.going, d.applied = rest, less
		}
	}
	return nil
}

// without returns the object after an update to the chart's text without the fields; nil and the
// cause if the API server refuses it, or its lists cannot be merged.
func (c *conflict) without(going []fieldpath.Path) (applied *unstructured.Unstructured, cause, err error) {
	merged, err := mergeWithout(c.before, c.desired, c.live, going)
	if merged == nil || err != nil {
		return nil, err, nil // The refusal of the apply says more.
	}
	applied, err = c.try(merged)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, nil, err // Another client was faster: the refusal was about another object.
	}
	return applied, err, nil
}

// mergeWithout returns the live object as it would be with the chart's present text and without the
// fields; nil for a kind that the client does not know.
func mergeWithout(before, desired, live *unstructured.Unstructured, going []fieldpath.Path) (*unstructured.Unstructured, error) {
	rest := live.DeepCopy()
	for _, path := range going {
		remove(rest.Object, path)
	}
	return merge(before, desired, rest)
}

// suspects returns the fields and entries of lists, sorted, that are not the chart's, and that are at
// the places that the API server's refusal names.
func suspects(live, desired *unstructured.Unstructured, refusal error) (found []fieldpath.Path) {
	ours := fieldsOf(live, isOurs)
	causes := causesOf(refusal)
	for path := range fieldsOf(live, isOthers).All() {
		going := foreignPath(path, desired.Object, ours)
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

// foreignPath returns the path if the chart neither has it nor had it when it was applied. For a field
// of such an entry of a list, it returns the path of the entry. Otherwise it returns nil.
func foreignPath(path fieldpath.Path, desired map[string]any, ours *fieldpath.Set) fieldpath.Path {
	if name := path[0].FieldName; name == nil || isIdentity(*name) {
		return nil
	}
	for i := range path {
		if !find(desired, path[:i+1]).there {
			if ours.Has(path[:i+1]) {
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

// entry is an entry of a list in the path of a cause.
var entry = regexp.MustCompile(`\[[^\]]*\]`)

// causesOf returns the paths of the fields that a refusal names, without the indexes of lists, which
// belong to an object that was not stored.
func causesOf(refusal error) (causes [][]string) {
	for _, cause := range detailsOf(refusal) {
		causes = append(causes, strings.Split(entry.ReplaceAllString(cause.Field, ""), "."))
	}
	return causes
}

// detailsOf returns the causes of the API server's refusal.
func detailsOf(refusal error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
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

// newResolution counts the removed fields among the applied ones of its object, so that a comparison
// sees them.
func newResolution(live, applied *unstructured.Unstructured, going []fieldpath.Path) (*resolution, error) {
	entry := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: applied.GetAPIVersion()}
	if err := writeFields(&entry, fieldsOf(applied, isOurs).Union(fieldsAt(live, going))); err != nil {
		return nil, err
	}
	applied.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return &resolution{going, applied}, nil
}

// fieldsAt returns the fields of other managers at and below the paths, and the paths that no other
// manager holds.
func fieldsAt(live *unstructured.Unstructured, paths []fieldpath.Path) *fieldpath.Set {
	all, others := fieldpath.NewSet(), fieldsOf(live, isOthers)
	for _, at := range paths {
		held := false
		for path := range others.All() {
			if len(path) >= len(at) && path[:len(at)].Equals(at) {
				all.Insert(path.Copy())
				held = true
			}
		}
		if !held {
			all.Insert(at)
		}
	}
	return all
}
