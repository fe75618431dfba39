package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
)

// findBase completes the order for a release whose record is lost. Helm starts from the names of the
// objects in the ledger, and runs no hooks, because the state that they would start from is unknown. If
// all objects are gone, as after `helm uninstall`, the release is installed again. Where there is no
// record either, as after one that could not be written, the ledger begins again, too.
func (w *work) findBase(ctx context.Context, f found, o *order.Order) error {
	there, left := false, false
	for revision, record := range f.history.Kept() {
		if left = left || record != nil; record != nil {
			continue
		}
		o.Base = append(o.Base, revision.Objects...)
		for _, one := range objectsOf(slices.Concat(revision.Objects, revision.Hooks)) {
			live, _, err := f.cluster.Get(ctx, one)
			if err != nil {
				return fmt.Errorf("look for objects of a release without a record: %w", err)
			}
			there = there || live != nil && objects.BelongsTo(live, w.namespace, w.name)
			left = left || live != nil && release.Linked(live, w.seal.Owner)
		}
	}
	switch {
	case !there:
		o.Action = order.Install
		if !left {
			f.entry.Revisions = nil
		}
	case o.Action == order.Upgrade && !o.DisableHooks:
		o.DisableHooks = true
		w.warn(ctx, eventHooksSkipped, fmt.Sprintf("The record of revision %d is gone or changed: the release is upgraded from the names of its objects, without hooks", f.entry.Last().Version))
	}
	return nil
}
