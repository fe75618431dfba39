package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Applier applies the objects of one release.
type Applier struct {
	// Name and Namespace are the release's.
	Name, Namespace string
	// Owner is the UID of the CR of the release.
	Owner types.UID
	// Ignored are the fields that others may change, and Scaled the objects of the release that it scales.
	Ignored Ignored
	Scaled  Scaled
	// ByClient is true for a release whose objects the client applies by patches, as Helm 3 did.
	ByClient bool
}

// Options are those of one apply.
type Options struct {
	// DryRun changes nothing. A missing object is not tried, except a Job: a policy may set when the cluster
	// deletes it.
	DryRun bool
	// New is true for an object that does not exist: it is created, or tried with DryRun, without a
	// read. If it exists, it keeps the fields of other managers.
	New bool
	// Keep are fields of the live object that stay as they are.
	Keep []Pointer
}

// Result is the object that an apply has made, or with DryRun would make.
type Result struct {
	// Live is the object as it was before; nil if it was missing.
	Live *unstructured.Unstructured
	// Applied is the object as the API server has answered.
	Applied *unstructured.Unstructured
	// Differences are the fields of the chart that an apply changes, as JSON pointers into the live object.
	// They hold no values.
	Differences []string
	// Patched is the refusal of server-side apply if the object was patched instead. Warnings are the API server's.
	Patched  error
	Warnings []string
}

// Missing reports whether the object was missing and is wanted.
func (r Result) Missing() bool { return r.Live == nil && (r.Applied == nil || !isTemporary(r.Applied)) }

// Apply applies the chart's object. before is the object as the chart had it before; nil if there was
// none, and want itself for an object that was found, where this is not known. If another client
// changes the object during the apply, it is read again.
func (a *Applier) Apply(ctx context.Context, client dynamic.ResourceInterface, want, before *unstructured.Unstructured, o Options) (result Result, err error) {
	var first, wanted *unstructured.Unstructured // Changes by an attempt that ended in a conflict are differences, too.
	err = retry.OnError(retry.DefaultRetry, func(err error) bool { return apierrors.IsConflict(err) && ctx.Err() == nil }, func() (err error) {
		one := application{Applier: a, Options: o, client: client, want: plain(want), before: plain(before)}
		one.lastText = one.before
		switch before {
		case nil:
			one.lastText = &unstructured.Unstructured{}
		case want:
			one.before = nil
		}
		var warnings []string
		result, err = one.apply(context.WithValue(ctx, warningsOf{}, &warnings))
		result.Warnings = warnings
		if wanted = one.want; first == nil {
			first = result.Live
		}
		return err
	})
	if err == nil && first != nil && result.Live != nil && first != result.Live && result.Applied != nil {
		earlier := differences(wanted, first, result.Applied, a.ByClient || result.Patched != nil)
		result.Differences = slices.Compact(slices.Sorted(slices.Values(append(earlier, result.Differences...))))
	}
	return result, err
}

// application is one apply of one object.
type application struct {
	*Applier
	Options

	client dynamic.ResourceInterface
	want   *unstructured.Unstructured
	// lastText is the object as the chart had it before, and before the release's former object.
	lastText, before *unstructured.Unstructured
	live             *unstructured.Unstructured
}

func (a *application) apply(ctx context.Context) (result Result, err error) {
	if err := a.read(ctx); err != nil {
		return result, err
	}
	result.Live = a.live
	switch {
	case a.live == nil:
		if a.DryRun && !a.New && !isJob(a.want) {
			return result, nil
		}
		result.Applied, result.Patched, err = a.create(ctx)
		if a.DryRun && !a.New {
			return result, nil // It is missing, even if it cannot be created.
		}
		return result, err
	case a.DryRun && a.live.GetDeletionTimestamp() != nil:
		return result, nil // The event of its deletion leads to another comparison.
	}
	a.leave(a.want, a.live, a.lastText, a.Keep)
	if a.before == nil || isBare(a.before) {
		a.before = held(a.live)
	}
	if a.ByClient {
		result.Applied, err = a.patch(ctx, FieldManager, a.DryRun)
	} else {
		result.Applied, result.Patched, err = a.byServer(ctx)
	}
	if err != nil {
		return result, a.remedied(err)
	}
	result.Differences = differences(a.want, result.Live, result.Applied, a.ByClient || result.Patched != nil)
	return result, nil
}

// read reads the live object, unless it is known to be missing.
func (a *application) read(ctx context.Context) error {
	if a.New {
		return nil
	}
	live, err := a.client.Get(ctx, a.want.GetName(), metav1.GetOptions{})
	switch {
	case err == nil:
		a.live = live
	case apierrors.IsNotFound(err) && Reason(err) == "":
		a.live = nil
	default:
		return err
	}
	return nil
}

// create creates the object.
func (a *application) create(ctx context.Context) (created *unstructured.Unstructured, patched, err error) {
	post := func(manager string, dryRun bool) (*unstructured.Unstructured, error) {
		return a.client.Create(ctx, a.want, metav1.CreateOptions{FieldManager: manager, DryRun: dry(dryRun)})
	}
	if a.ByClient {
		created, err = post(FieldManager, a.DryRun)
		return created, nil, err
	}
	created, refusal := a.serverSide(ctx)
	if !isFormal(refusal) {
		return created, nil, refusal
	}
	tried, err := post(patchManager, true)
	if err != nil {
		return nil, nil, refusal
	}
	if created, refusal = a.serverSide(ctx); !isFormal(refusal) {
		return created, nil, refusal
	}
	if a.DryRun {
		return tried, refusal, nil
	}
	created, err = post(patchManager, false)
	return created, refusal, err
}

// serverSide applies the object under Helm's name. It takes the chart's fields from other managers,
// unless the object is not expected to exist.
func (a *application) serverSide(ctx context.Context) (*unstructured.Unstructured, error) {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(a.withOwner().Object); err != nil {
		return nil, err
	}
	force := !a.New
	return a.client.Patch(ctx, a.want.GetName(), types.ApplyPatchType, body.Bytes(), metav1.PatchOptions{FieldManager: FieldManager, Force: &force, DryRun: dry(a.DryRun)})
}

// withOwner returns the object with the live object's reference to the CR, if it has one: the API proxy would
// read the object to add it.
func (a *application) withOwner() *unstructured.Unstructured {
	if a.live == nil || IsKept(a.want) {
		return a.want
	}
	is := func(o metav1.OwnerReference) bool { return a.Owner != "" && o.UID == a.Owner }
	wanted, there := a.want.GetOwnerReferences(), a.live.GetOwnerReferences()
	at := slices.IndexFunc(there, is)
	if at < 0 || slices.ContainsFunc(wanted, is) {
		return a.want
	}
	owned := a.want.DeepCopy()
	owned.SetOwnerReferences(append(wanted, there[at]))
	return owned
}

func dry(run bool) []string {
	if run {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// isFormal reports whether server-side apply may have refused an object that a patch could make. The
// API server gives no reason for values that it can't type, such as a null or an undeclared field.
// Otherwise only temporary errors have that code without a reason.
func isFormal(err error) bool {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code == http.StatusBadRequest || code == http.StatusUnprocessableEntity ||
		code == http.StatusInternalServerError && status.Status().Reason == metav1.StatusReasonUnknown
}

// byServer changes the live object by server-side apply, or by a patch where that is refused for formal
// reasons: patched is the refusal then.
func (a *application) byServer(ctx context.Context) (applied *unstructured.Unstructured, patched, err error) {
	if err := a.takeOver(ctx); err != nil {
		return nil, nil, err
	}
	applied, refusal, err := a.withServedVersions(ctx)
	if err != nil {
		return nil, nil, err
	}
	wasPatched := slices.ContainsFunc(a.live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return isPatched(&entry) })
	if refusal == nil && wasPatched && !a.DryRun {
		wasPatched = false
		if applied, refusal, err = a.applyAgain(ctx, applied); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case !isFormal(refusal):
		return applied, nil, refusal
	case fillNulls(a.want.Object, a.lastText.Object, a.live.Object):
		return a.byServer(ctx)
	}
	return a.byPatch(ctx, refusal, wasPatched)
}

// byPatch patches the live object, which server-side apply refuses for formal reasons. It tries the patch first,
// and then server-side apply once more: the reason may be gone.
func (a *application) byPatch(ctx context.Context, refusal error, wasPatched bool) (applied *unstructured.Unstructured, patched, err error) {
	if !wasPatched || a.DryRun {
		tried, err := a.patch(ctx, patchManager, true)
		switch {
		case err != nil:
			return nil, nil, refusal
		case a.DryRun && wasPatched:
			return tried, refusal, nil
		}
		again, second := a.serverSide(ctx)
		switch {
		case !isFormal(second):
			return again, nil, second
		case a.DryRun:
			return tried, second, nil
		}
		refusal = second
	}
	applied, err = a.patch(ctx, patchManager, false)
	if err != nil {
		return nil, nil, errors.Join(refusal, err)
	}
	return applied, refusal, nil
}

// withServedVersions applies the object by the server, and once more if that is refused because of versions in the
// managed fields that are no longer served. refusal is the API server's last answer, and err why these versions stay.
func (a *application) withServedVersions(ctx context.Context) (applied *unstructured.Unstructured, refusal, err error) {
	applied, refusal = a.withoutRivals(ctx)
	if refusal == nil || a.DryRun {
		return applied, refusal, nil
	}
	entries := renewVersions(a.live, unservedVersions(refusal), a.want.GetAPIVersion())
	if entries == nil {
		return applied, refusal, nil
	}
	if err := a.setManagedFields(ctx, entries); err != nil {
		return nil, nil, err
	}
	applied, refusal = a.serverSide(ctx)
	return applied, refusal, nil
}

// applyAgain gives the applier the fields that were patched while server-side apply was refused, and
// applies once more, which removes fields that the chart has dropped since. refusal is the API
// server's answer.
func (a *application) applyAgain(ctx context.Context, live *unstructured.Unstructured) (applied *unstructured.Unstructured, refusal, err error) {
	a.live = live
	entries := live.DeepCopy()
	if err := csaupgrade.UpgradeManagedFields(entries, sets.New(patchManager), FieldManager); err != nil {
		return nil, nil, err
	}
	if err := a.setManagedFields(ctx, entries.GetManagedFields()); err != nil {
		return nil, nil, err
	}
	applied, refusal = a.serverSide(ctx)
	return applied, refusal, nil
}

// takeOver gives the applier the fields that the release's former operator holds. A server-side
// apply removes only fields that its own manager holds, so that a container that the chart drops
// would stay forever. Helm itself moves only the fields of a manager with its name.
func (a *application) takeOver(ctx context.Context) error {
	if a.DryRun {
		return nil
	}
	moved := a.live.DeepCopy()
	managers := formerManagers(moved.GetManagedFields())
	if !isAnnotated(moved, a.Namespace, a.Name) {
		managers = nil
	}
	if len(managers) > 0 {
		if err := csaupgrade.UpgradeManagedFields(moved, managers, FieldManager); err != nil {
			return fmt.Errorf("take over the fields: %w", err)
		}
	}
	found, err := asData(moved)
	if err != nil || !found && len(managers) == 0 {
		return err
	}
	if err := a.setManagedFields(ctx, moved.GetManagedFields()); err != nil {
		return fmt.Errorf("take over the fields: %w", err)
	}
	return nil
}

// setManagedFields replaces the managed fields of the live object, as it was read.
func (a *application) setManagedFields(ctx context.Context, entries []metav1.ManagedFieldsEntry) error {
	patch, err := entriesPatch(a.live, entries)
	if err != nil {
		return err
	}
	changed, err := a.client.Patch(ctx, a.want.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	if err == nil {
		a.live.SetManagedFields(changed.GetManagedFields())
		a.live.SetResourceVersion(changed.GetResourceVersion())
	}
	return err
}

// withoutRivals applies the object by the server. It removes fields of other managers that the API
// server refuses beside the chart's.
func (a *application) withoutRivals(ctx context.Context) (applied *unstructured.Unstructured, err error) {
	var refusal error
	excluded := a.heldElsewhere(rivals(a.want, a.live))
	if len(excluded) == 0 {
		if applied, refusal = a.serverSide(ctx); refusal == nil {
			return applied, nil
		}
	}
	d, err := (&conflict{a.live, a.want, a.want, a.tryUpdate(ctx)}).resolve(excluded, refusal)
	switch {
	case err != nil:
		return nil, err
	case d == nil && refusal != nil:
		return nil, refusal
	case d == nil:
		return a.serverSide(ctx)
	case a.DryRun:
		return d.applied, nil
	}
	entries, err := giveFields(a.live, fieldsAt(a.live, d.going))
	if err != nil {
		return nil, err
	}
	if err := a.setManagedFields(ctx, entries); err != nil {
		return nil, err
	}
	return a.serverSide(ctx)
}

// tryUpdate returns the function by which resolveConflict asks the API server.
func (a *application) tryUpdate(ctx context.Context) tryUpdate {
	return func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return a.client.Update(ctx, object, metav1.UpdateOptions{FieldManager: FieldManager, DryRun: dry(true)})
	}
}

// heldElsewhere returns the paths of fields that the next apply does not remove: the applier removes
// only fields without another manager.
func (a *application) heldElsewhere(paths []fieldpath.Path) []fieldpath.Path {
	applied, others := fieldsOf(a.live, isApplied), fieldsOf(a.live, func(entry *metav1.ManagedFieldsEntry) bool { return !isApplied(entry) })
	return slices.DeleteFunc(paths, func(at fieldpath.Path) bool {
		return !holdsAny(others, at) && holdsAll(applied, at, find(a.live.Object, at).value)
	})
}

// holdsAny reports whether the set has something at or below the path.
func holdsAny(set *fieldpath.Set, at fieldpath.Path) bool {
	if set.Has(at) {
		return true
	}
	for _, element := range at {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

// holdsAll reports whether the set has the value at the path and everything in it.
func holdsAll(set *fieldpath.Set, at fieldpath.Path, value any) bool {
	if set.Has(at) {
		return true
	}
	fields, _ := value.(map[string]any)
	for name, inner := range fields {
		if !holdsAll(set, append(at.Copy(), fieldpath.FieldNameElement(name)), inner) {
			return false
		}
	}
	return len(fields) > 0
}

// patch changes the live object by a patch. It removes fields of other managers that the API server
// refuses beside the chart's.
func (a *application) patch(ctx context.Context, manager string, dryRun bool) (*unstructured.Unstructured, error) {
	excluded := rivals(a.want, a.live)
	patched, refusal := a.patchOf(ctx, manager, excluded, dryRun)
	switch {
	case !apierrors.IsInvalid(refusal):
		return patched, refusal
	case fillNulls(a.want.Object, a.lastText.Object, a.live.Object):
		return a.patch(ctx, manager, dryRun)
	}
	d, err := (&conflict{a.live, a.want, a.before, a.tryUpdate(ctx)}).resolve(excluded, refusal)
	if d == nil || err != nil {
		return nil, errors.Join(refusal, err)
	}
	return a.patchOf(ctx, manager, d.going, dryRun)
}

// patchOf sends the patch from the live object to the chart's, without the removed fields. It has the UID of
// the object.
func (a *application) patchOf(ctx context.Context, manager string, going []fieldpath.Path, dryRun bool) (*unstructured.Unstructured, error) {
	text, kind, err := threeWayPatch(a.before, a.want, a.live)
	if len(going) > 0 && err == nil {
		merged, cause := mergeWithout(a.before, a.want, a.live, going)
		if cause == nil && merged != nil {
			text, kind, err = patchTo(a.live, merged)
		}
	}
	if string(text) == empty && err == nil {
		return a.live, nil
	}
	if err == nil {
		text, err = withUID(text, a.live)
	}
	if err != nil {
		return nil, fmt.Errorf("make a patch: %w", err)
	}
	return a.client.Patch(ctx, a.want.GetName(), kind, text, metav1.PatchOptions{FieldManager: manager, DryRun: dry(dryRun)})
}
