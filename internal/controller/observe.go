package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ensign-operator/ensign/internal/controller/slots"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// attempt is one pass over one CR.
type attempt struct {
	request reconcile.Request
	// entry has the state of the CR, which is the attempt's own until its end.
	*entry
	observation
	decision
	prepared

	// latest is the CR as the API server answered last; nil after an answer without it. The goroutine
	// that shows the progress of a run has it while there is one.
	latest *unstructured.Unstructured
	// release gives the slot of the run back; nil while there is none.
	release func()
	// conclusion is the report of the attempt; nil while there is nothing to report.
	conclusion *conclusion
	// healthNext is when the health of children changes by time; the zero time is never.
	healthNext time.Time
	// readies are the conditions Ready that the status had, and that the manager has written: content that
	// sends the whole list of conditions sends them along.
	readies Readies
}

// observation is the CR as an attempt has read it, with the manager's knowledge about it. An attempt
// that has to wait for a slot observes the CR again.
type observation struct {
	// readCtx ends when an event of the CR comes after it was read.
	readCtx context.Context            //nolint:containedctx // It belongs to this attempt alone.
	cr      *unstructured.Unstructured // as it was read; later reads do not change it
	version version
	// selected is true if content runs for the CR at all.
	selected bool
	// hasFinalizer is true if the CR has the watch's finalizer, and missesFinalizer if it is to get that.
	hasFinalizer, missesFinalizer bool
	// paused is true if nothing is to be run for the CR but its finalizer.
	paused bool
	// period is the pause between two runs; 0 is none. invalid names the annotations that are invalid.
	period  time.Duration
	invalid error
	// dirty is why the name is dirty; "" if it is not.
	dirty string
	// writer is the run that wrote the news of this version.
	writer writerOf
	// before is the outcome before this attempt.
	before content.Outcome
	// wasThere is true if no status says whether the CR ran before this manager, and the CR is older
	// than its controller.
	wasThere bool
	proof    proof
}

// observed returns the part of the observation that the CR alone shows.
func (r *Reconciler) observed(cr *unstructured.Unstructured) observation {
	o := observation{cr: cr, version: versionOf(&r.Watch, cr), hasFinalizer: holdsFinalizer(&r.Watch, cr)}
	o.selected = o.version.deleting && o.hasFinalizer || !o.version.deleting && r.Watch.Selector.Matches(labels.Set(cr.GetLabels()))
	o.missesFinalizer = !o.version.deleting && r.Watch.Finalizer != nil && !o.hasFinalizer
	o.paused = o.selected && paused(&r.Watch, cr)
	o.period, o.invalid = r.periodOf(cr)
	return o
}

// prepared is set if content is to run: the work, or the reason why there is none for this version.
type prepared struct {
	work    content.Work
	refusal *content.Outcome
	// username is the user as which the run uses the API; "" is the manager.
	username string
	// digest is that of Reconciler.digestWith when the run began.
	digest string
}

// version is the part of a CR whose change makes content run again.
type version struct {
	uid        types.UID
	generation int64
	// content is the digest of a CR whose kind has no generations, else "".
	content string
	// annotations is the digest of the annotations that trigger runs.
	annotations string
	// requested are the values of the annotations that request a run: see requestsOf.
	requested string
	deleting  bool
	// abandoned is true if the CR is to go without its finalizer.
	abandoned bool
}

// sameSpec reports whether the versions differ in annotations and deletion at most.
func (v version) sameSpec(other version) bool {
	v.annotations, v.requested, v.deleting, v.abandoned = other.annotations, other.requested, other.deleting, other.abandoned
	return v == other
}

// requestsAnew reports whether the version has a request that another one has not.
func (v version) requestsAnew(other version) bool {
	return len(newRequests(v.requested, other.requested)) > 0
}

// versionOf returns the version of a CR, or of its stripped copy in the cache.
func versionOf(watch *watches.Watch, cr *unstructured.Unstructured) version {
	v := version{
		uid: cr.GetUID(), generation: cr.GetGeneration(),
		annotations: annotationsDigest(triggerAnnotations(watch, cr)), deleting: cr.GetDeletionTimestamp() != nil,
		requested: requestsOf(watch, cr), abandoned: abandoned(watch, cr),
	}
	if v.generation != 0 {
		return v
	}
	var stripped bool
	if v.content, stripped = cr.Object[digestField].(string); !stripped {
		v.content, _ = contentDigest(cr) // A CR that came as JSON can be JSON again.
	}
	return v
}

// freeSlot gives the slot of the run back, if there is one.
func (a *attempt) freeSlot() {
	if a.release != nil {
		a.release()
		a.release = nil
	}
}

// setVersion makes the attempt's version the one that content runs for or ran for.
func (a *attempt) setVersion() {
	if !a.state.version.sameSpec(a.version) && !a.writer.own {
		a.state.failures, a.state.repeats = 0, 0
	}
	a.state.version = a.version
	a.mailbox.setRan(a.version)
}

// removesFinalizer reports whether the attempt ends with the removal of the finalizer.
func (a *attempt) removesFinalizer() bool {
	c := a.conclusion
	return a.step == abandon || c != nil && c.finalizing && c.Outcome.Verdict == content.Succeeded
}

// priority returns the priority of the CR among those that wait for a slot.
func (a *attempt) priority() slots.Priority {
	switch {
	case a.work != nil && a.work.Resumable():
		return slots.Live
	case a.version.deleting:
		return slots.Urgent
	case a.dirty != "":
		return slots.Changed
	case a.state.last != nil && a.state.version == a.version:
		return slots.Normal // Whatever the status says: the manager may not write it.
	default:
		return priorityOf(a.cr)
	}
}

// requested reports whether somebody has asked for the run, and no successful run has answered yet.
func (a *attempt) requested() bool {
	return a.asks() || !a.finalizing() && !a.writer.own && a.state.failing() && a.state.last.requested
}

// asks reports whether somebody has asked for a run since the last one.
func (a *attempt) asks() bool {
	if a.finalizing() || a.writer.own {
		return false
	}
	shown := status.Request(a.cr)
	return slices.ContainsFunc(newRequests(a.version.requested, a.state.answered), func(request string) bool { return request != shown })
}

// seenBefore reports whether this manager already reconciled the CR with the same spec.
func (a *attempt) seenBefore() bool {
	return a.state.last != nil && a.state.version.sameSpec(a.version)
}

// outcomeBefore returns the outcome of the last run. The status may have none, or that of an
// earlier run, so the state goes first.
func outcomeBefore(st *state, cr *unstructured.Unstructured) content.Outcome {
	if st.last != nil {
		return st.last.Outcome
	}
	return status.Last(cr)
}

// proof says whether the CR's status proves that an earlier manager ran its version
// successfully with the same content, and that the period has not elapsed since.
type proof struct {
	succeeded bool
	// due is when the period is over; the zero time is never.
	due time.Time
}

// proofOf returns the proof of the attempt's version. The status of a kind without a status
// subresource proves nothing: everyone who may write the CR may write it. ctx ends with the manager.
func (r *Reconciler) proofOf(ctx context.Context, a *attempt) proof {
	if a.state.last != nil || a.dirty != "" || r.NoStatus || r.Digest == "" {
		return proof{}
	}
	if r.Translates && !a.version.deleting && a.selected && !a.paused {
		r.prepare(ctx, a)
	}
	a.digest = r.digestWith(ctx, a)
	ended, ok := status.SucceededWith(a.cr, a.digest)
	now := r.Clock.Now()
	// If the clock was wrong then, the pause is still not longer than a period.
	left := min(a.period, a.period-now.Sub(ended))
	switch {
	case !ok, a.invalid != nil, a.period > 0 && left <= 0:
		return proof{}
	case a.period == 0:
		return proof{succeeded: true}
	default:
		return proof{succeeded: true, due: now.Add(left)}
	}
}

// rest takes the result of an earlier manager's run from the CR's status.
func (a *attempt) rest() {
	a.setVersion()
	a.state.last, a.state.due = &conclusion{Result: content.Result{Outcome: a.before}}, a.proof.due
}

// The annotations with which a CR of any kind of content controls its own runs, without one of the
// watch's prefixes. A change of reconcile-requested-at is enough to make content run.
const (
	periodSuffix    = "reconcile-period"
	pausedSuffix    = "paused"
	requestedSuffix = "reconcile-requested-at"
	cancelSuffix    = "cancel-requested-at"
	abandonSuffix   = "abandon"
)

// unknownAnnotations returns, sorted, the CR's annotations that begin with a prefix of the watch
// and mean nothing, without those that it had before.
func unknownAnnotations(watch *watches.Watch, before, cr *unstructured.Unstructured) []string {
	var found []string
	had := map[string]string{}
	if before != nil {
		had = before.GetAnnotations()
	}
	prefixes := watch.Prefixes()
	for name := range cr.GetAnnotations() {
		ours := slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if _, old := had[name]; !old && ours && !watch.IsKnownAnnotation(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// minPeriod is the shortest period that a CR can set, so that one CR cannot fill all slots.
const minPeriod = 10 * time.Second

// periodOf returns the pause between two runs of the CR: its annotation over the watch over
// the default; 0 is none. With an error, which names every annotation that does not parse,
// it is the period without the annotation.
func (r *Reconciler) periodOf(cr *unstructured.Unstructured) (time.Duration, error) {
	return Period(&r.Watch, r.Defaults.ReconcilePeriod, cr)
}

// Period is periodOf for a manager whose --reconcile-period is otherwise.
func Period(watch *watches.Watch, otherwise time.Duration, cr *unstructured.Unstructured) (time.Duration, error) {
	period := otherwise
	if watch.ReconcilePeriod > 0 {
		period = watch.ReconcilePeriod
	}
	annotations := cr.GetAnnotations()
	var errs []error
	for _, name := range slices.Backward(watch.AnnotationNames(periodSuffix)) { // The watch's own counts.
		errs = append(errs, readPeriod(name, annotations, &period))
	}
	for _, name := range watch.AnnotationNames(pausedSuffix) {
		errs = append(errs, checkPaused(name, annotations))
	}
	return period, errors.Join(errs...)
}

// paused reports whether nothing is to be run for the CR but its finalizer.
func paused(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	if cr.GetDeletionTimestamp() != nil {
		return false
	}
	return saysTrue(watch, cr, pausedSuffix) != "" || watch.Paused != nil && watch.Paused(cr.DeepCopy())
}

// saysTrue returns the name of the annotation that says true; "" if none does.
func saysTrue(watch *watches.Watch, cr *unstructured.Unstructured, suffix string) string {
	annotations := cr.GetAnnotations()
	for _, name := range watch.AnnotationNames(suffix) {
		if annotations[name] == "true" {
			return name
		}
	}
	return ""
}

// requestsOf returns the requests of a CR, one for each name of the annotation. A CR that has only
// the watch's own has its value.
func requestsOf(watch *watches.Watch, cr *unstructured.Unstructured) string {
	annotations := cr.GetAnnotations()
	var all []string
	for _, name := range watch.AnnotationNames(requestedSuffix) {
		all = append(all, annotations[name])
	}
	return strings.TrimRight(strings.Join(all, requestsSeparator), requestsSeparator)
}

// requestsSeparator cannot stand in an annotation of a CR that came as JSON but by an escape; it
// then only splits that request.
const requestsSeparator = "\x00"

// newRequests returns the requests that differ from those before, the watch's own first.
func newRequests(now, before string) (found []string) {
	old := strings.Split(before, requestsSeparator)
	for i, request := range strings.Split(now, requestsSeparator) {
		if request != "" && (i >= len(old) || old[i] != request) {
			found = append(found, request)
		}
	}
	return found
}

// answers returns the request that the status shows as answered by a run that has seen all; "" if
// the status shows it already. A run answers all, and the status has room for one: the request that
// is new since the last answer, because somebody waits for it.
func answers(requests, answered, shown string) string {
	if !strings.Contains(requests, requestsSeparator) {
		return requests
	}
	for _, request := range newRequests(requests, answered) {
		if request != shown {
			return request
		}
	}
	return ""
}

// abandoned reports whether the CR is to go although its finalizer has not succeeded.
func abandoned(watch *watches.Watch, cr *unstructured.Unstructured) bool {
	return saysTrue(watch, cr, abandonSuffix) != "" && cr.GetDeletionTimestamp() != nil
}

// cancels reports whether an update asks for the end of the CR's run: an annotation has a new value.
// before is nil for a CR that replaced another one.
func cancels(watch *watches.Watch, before, after *unstructured.Unstructured) bool {
	if before == nil {
		return false
	}
	had, has := before.GetAnnotations(), after.GetAnnotations()
	return slices.ContainsFunc(watch.AnnotationNames(cancelSuffix), func(name string) bool { return has[name] != "" && has[name] != had[name] })
}

func checkPaused(name string, annotations map[string]string) error {
	switch text, ok := annotations[name]; {
	case !ok, text == "true", text == "false":
		return nil
	default:
		return fmt.Errorf("annotation %s: %s is neither true nor false", name, watches.Quoted(text))
	}
}

func readPeriod(name string, annotations map[string]string, into *time.Duration) error {
	text, ok := annotations[name]
	if !ok {
		return nil
	}
	period, err := time.ParseDuration(text)
	if err != nil || period < 0 {
		return fmt.Errorf("annotation %s: invalid duration %s: use for example 30s, 10m or 1h30m, or 0s for none", name, watches.Quoted(text))
	}
	if period > 0 {
		period = max(period, minPeriod)
	}
	*into = period
	return nil
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

// digestWith returns the digest of all that the attempt's run depends on: digestOf, and the
// objects to which the CR refers, as they are now. Where functions make the values of the
// content, those count that the prepared work has.
func (r *Reconciler) digestWith(ctx context.Context, a *attempt) string {
	digest, references := r.withValues(r.digestOf(a.version), a), r.Watch.References
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
	if a.work == nil || a.work.ValuesDigest() == "" {
		return ""
	}
	return digestOfText(digest + "\n" + a.work.ValuesDigest())
}

// digestOf returns the digest of all that a run depends on beside the CR's generation, for
// a later manager to compare with; "" if it is unknown.
func (r *Reconciler) digestOf(v version) string {
	if r.Digest == "" || v.annotations == "" {
		return r.Digest
	}
	return digestOfText(r.Digest + v.annotations)
}
