package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	helm "helm.sh/helm/v4/pkg/release/v1"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/release"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The Events of a deletion.
const (
	eventHooksSkipped = "HooksSkipped"
	eventLeft         = "ObjectsLeft"
	actionUninstall   = "Uninstall"
)

// Digest implements content.Engine. It returns "": after a restart, a look at the release tells
// whether it is as it should be.
func (e *Engine) Digest() string { return "" }

// FinalizesWithoutValues implements content.Engine: a release is removed as it is.
func (e *Engine) FinalizesWithoutValues() bool { return true }

// finalize removes the release. Helm runs the hooks and deletes the objects. Then the manager looks
// at each object itself, and deletes those that Helm has left. It deletes the history last, when all
// objects are seen to be gone, because only the history names them. Another owner's release stays,
// but not the objects that the CR itself has made.
func (w *work) finalize(ctx context.Context, job content.Job, f found) content.Result {
	foreign := f.State == release.Foreign
	switch {
	case foreign:
		w.warnLeft(ctx, "the release "+w.name+" belongs to "+f.history.Owners())
	case w.mustUninstall(f):
		if outcome := w.uninstall(ctx, job, f); outcome.Verdict != content.Succeeded {
			return failed(outcome, order.Uninstall)
		}
		w.uninstalled = true
		var err error
		if f, err = w.look(ctx, job); err != nil {
			return irreconcilable(ctx, err)
		}
	case w.missesHooks(f):
		if !w.namespaceGoes(ctx, f) {
			return w.waitsForRecord(f)
		}
		w.warn(ctx, eventHooksSkipped, "The release has no record any more, and the namespace is being deleted: the hooks of its deletion are skipped")
	case f.State == release.Absent && len(f.history.Known) == 0 && w.hadRelease():
		w.warn(ctx, eventHooksSkipped, "The release has no record any more: the hooks of its deletion are skipped")
	}
	left, refused, err := w.removeRemaining(ctx, f)
	if err == nil && len(left) > 0 {
		return notGone(left, !refused)
	}
	if err == nil {
		err = w.forget(ctx, f, foreign)
	}
	if err != nil {
		return irreconcilable(ctx, err)
	}
	if f.last() != nil {
		w.log(ctx).Info("Uninstalled release")
	}
	return w.removed(ctx)
}

// forget deletes the records of the release, unless another owner has it, and then its entry in the
// ledger, which names the objects to remove.
func (w *work) forget(ctx context.Context, f found, foreign bool) error {
	if !foreign {
		if err := f.records.Purge(ctx); err != nil {
			return err
		}
	}
	return w.engine.ledger.Delete(ctx, f.entry)
}

// missesHooks reports whether a deletion has hooks that cannot run, because their record is lost.
func (w *work) missesHooks(f found) bool {
	return f.State == release.Lost && f.hooksAtDeletion() && !w.settings.disableHooks[order.Uninstall]
}

func (w *work) removed(ctx context.Context) content.Result {
	w.log(ctx).Info("Removing finalizer")
	return uninstalled()
}

// mustUninstall reports whether Helm still has to uninstall the release. It takes over a release that
// is not sealed, so that Helm starts from an authentic record.
func (w *work) mustUninstall(f found) bool {
	last := f.entry.Last()
	return f.State == release.Unsealed || last != nil && f.State != release.Lost && last.Status != order.StatusUninstalled
}

// hooksAtDeletion reports whether the release has hooks of a deletion, by the ledger.
func (f found) hooksAtDeletion() bool {
	for revision := range f.history.Kept() {
		if revision.DeletionHooks {
			return true
		}
	}
	return false
}

// waitsForRecord returns the result of a deletion whose hooks cannot run because their record was
// deleted.
func (w *work) waitsForRecord(f found) content.Result {
	return failed(content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: fmt.Sprintf(
		"the hooks of the deletion cannot run: the record of revision %d of release %q in namespace %q is gone or changed. Restore the Secret; or set the annotation %[4]suninstall-disable-hooks: \"true\" to delete the objects without the hooks; or set the annotation %[4]sabandon: \"true\" to leave them",
		f.entry.Last().Version, w.name, w.namespace, watches.ChartAnnotations)}, order.Uninstall)
}

// uninstall has chart-exec uninstall the release. With uninstall-wait, post-delete hooks run after
// the objects are gone. Hooks cannot run in a namespace that is being deleted, because nothing can be
// created there.
func (w *work) uninstall(ctx context.Context, job content.Job, f found) content.Outcome {
	o := w.newOrder(order.Uninstall, release.Decision{TakeOver: f.TakeOver})
	o.Wait = w.settings.uninstallWait && f.last() != nil && slices.ContainsFunc(f.last().Hooks, func(h *helm.Hook) bool {
		return slices.Contains(h.Events, helm.HookPostDelete)
	})
	if w.settings.uninstallWait {
		w.log(ctx).Info("Uninstall wait")
		w.log(ctx).Info("Waiting until all resources are deleted")
	}
	if !o.DisableHooks && f.last() != nil && len(f.last().Hooks) > 0 && w.namespaceGoes(ctx, f) {
		o.DisableHooks = true
		w.warn(ctx, eventHooksSkipped, "The namespace is being deleted, where hooks cannot run: the release is uninstalled without its hooks")
	}
	return w.execute(ctx, job, f, o)
}

// namespaceGoes reports whether the release's namespace is being deleted. Without the right to
// read it, it is taken to stay.
func (w *work) namespaceGoes(ctx context.Context, f found) bool {
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(w.namespace)
	live, _, err := f.cluster.Get(ctx, namespace)
	return err == nil && live != nil && live.GetDeletionTimestamp() != nil
}

// warnLeft warns which objects stay on purpose.
func (w *work) warnLeft(ctx context.Context, what string) {
	w.warn(ctx, eventLeft, "Left behind: "+what)
}

// maxNote is less than the API's limit for the note of an Event, in bytes.
const maxNote = 1000

// warn logs a warning and makes an Event of it, which the API server refuses in a namespace that is
// being deleted.
func (w *work) warn(ctx context.Context, reason, note string) {
	note = w.mask.Text(note)
	w.log(ctx).Info("WARNING: "+reason, "message", note)
	if w.engine.Recorder != nil {
		w.engine.Recorder.Eventf(w.cr, nil, corev1.EventTypeWarning, reason, actionUninstall, "%s", cut(note, maxNote))
	}
}

// hadRelease reports whether the status says that the CR had a release.
func (w *work) hadRelease() bool {
	_, had, _ := unstructured.NestedMap(w.cr.Object, "status", deployedRelease)
	return had
}

// goneSoon returns the result of a deletion that only waits until objects are gone. It changes
// nothing.
func (w *work) goneSoon(ctx context.Context, f found) (content.Result, bool) {
	if last := f.entry.Last(); last == nil || last.Status != order.StatusUninstalled {
		return content.Result{}, false
	}
	r, err := w.remaining(ctx, f)
	if err != nil || len(r.waiting) == 0 || len(r.there) > 0 || len(r.unknown) > 0 {
		return content.Result{}, false // Run does the rest.
	}
	return notGone(r.waiting, true), true
}

// Abandon names the remaining objects of the release. After the end of the CR, these are the objects of a
// release that the ledger knows; if none remains, Abandon deletes the history.
func (w *work) Abandon(ctx context.Context, job content.Job) string {
	if w.gone {
		if entry, err := w.engine.ledger.Get(ctx, w.seal.Owner); err == nil && entry.Last() == nil {
			if entry.Name != "" { // An entry of another CR of the name reads as an empty one.
				_ = w.engine.ledger.Delete(ctx, entry) // It only says that an attempt has begun.
			}
			return ""
		}
	} else if w.name == "" {
		return "the resource has no release"
	}
	f, err := w.look(ctx, job)
	var r remainingObjects
	if err == nil {
		r, err = w.remaining(ctx, f)
	}
	left := w.notCollected(r)
	if err == nil && w.gone && len(left) == 0 {
		if err = w.forget(ctx, f, false); err == nil {
			return ""
		}
	}
	switch {
	case err != nil:
		return fmt.Sprintf("the release %q and its objects may still be there (%s)", w.name, w.mask.Text(err.Error()))
	case len(left) == 0 && len(f.history.Revisions) == 0 && f.entry.Last() == nil:
		return "nothing of a release is left"
	}
	return fmt.Sprintf("the release %q: %s", w.name, strings.Join(left, "; "))
}

// notCollected returns the names, sorted, of the objects that the garbage collector does not delete with the CR.
func (w *work) notCollected(r remainingObjects) []string {
	left := slices.Concat(r.waiting, r.unknown)
	for _, o := range r.there {
		if !release.Refers(o.live, w.seal.Owner) {
			left = append(left, o.name)
		}
	}
	slices.Sort(left)
	return left
}
