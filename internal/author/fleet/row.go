package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Outcome is the outcome in the status of a CR.
type Outcome string

// The outcomes.
const (
	Running    Outcome = "Running"
	Successful Outcome = "Successful"
	Failed     Outcome = "Failed"
	Paused     Outcome = "Paused"
	Canceled   Outcome = "Canceled"
	Deleting   Outcome = "Deleting"
	// Pending: no run has been reported.
	Pending Outcome = "Pending"
	// Ignored: the labels do not match the watch's selector.
	Ignored Outcome = "Ignored"
	// Unreported: the manager writes no status for this watch.
	Unreported Outcome = "Unreported"
	// Deleted is that of a CR that went while it was watched.
	Deleted Outcome = "Deleted"
)

// Row has the columns for a CR. Its texts have no control characters.
type Row struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Ready is the condition's status for the CR's generation; "" if it has none.
	Ready   string  `json:"ready,omitempty"`
	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Message string  `json:"message,omitempty"`
	// SlowedDown says why the CR's runs are slowed down; "" if they are not.
	SlowedDown string `json:"slowedDown,omitempty"`
	// Failed is true if the last run that ended failed, also while the next one executes.
	Failed             bool  `json:"failed"`
	Generation         int64 `json:"generation"`
	ObservedGeneration int64 `json:"observedGeneration"`
	// LastRun is when the last run ended. Where the status does not say it, as of a chart that
	// succeeded and whose kind's schema drops it, LastRun is when the outcome last changed.
	LastRun *time.Time `json:"lastRun,omitempty"`
	// NextRun is nil if there is none, or if it is unknown.
	NextRun *time.Time `json:"nextRun,omitempty"`
	// Period is the pause between two runs; "" if unknown or none.
	Period string `json:"period,omitempty"`
	// Version and Digest are those of the content of the last run; "" if unknown.
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`

	uid types.UID
}

// RowOf returns the row of a CR. period is the manager's --reconcile-period; it tells nothing of
// a kind whose watch is not known.
func RowOf(kind kinds.Kind, period time.Duration, cr *unstructured.Unstructured) Row {
	watch := watchFor(kind, cr)
	row := Row{
		APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(), Generation: cr.GetGeneration(), uid: cr.GetUID(),
	}
	row.ObservedGeneration, _, _ = unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	row.Outcome, row.Reason, row.Message = outcomeOf(&watch, cr)
	row.Ready = readyOf(cr)
	row.Failed = row.Outcome == Failed || row.Reason != "" // A reason is that of a failure.
	if slowed := status.Read(cr, status.SlowedDown); slowed.Status == "True" {
		row.SlowedDown = slowed.Message
	}
	switch row.Outcome {
	case Successful:
		row.Message = cmp.Or(status.Note(cr), row.SlowedDown)
		if row.Ready == "True" { // Kinds that do not count are less urgent.
			row.Message = cmp.Or(row.SlowedDown, status.Note(cr))
		}
	case Canceled:
		row.Message = cmp.Or(status.Note(cr), row.Message)
	}
	if row.Outcome == Deleting && kind.Known {
		row.Message = cmp.Or(heldByOthers(&watch, cr), row.Message)
	}
	if !kind.Known {
		period = 0
	}
	last := status.ReadRun(cr)
	row.LastRun, row.Version, row.Digest = lastRun(cr, last), last.Version.Name, last.Version.Digest
	row.NextRun, row.Period = row.nextRun(&watch, cr, last, period)
	for _, text := range []*string{&row.APIVersion, &row.Kind, &row.Namespace, &row.Name, &row.Ready, &row.Reason, &row.Message, &row.SlowedDown, &row.Version, &row.Digest} {
		*text = sanitize.Text(*text)
	}
	return row
}

// readyOf returns the status of Ready: Unknown where the condition is about an earlier generation.
func readyOf(cr *unstructured.Unstructured) string {
	ready := status.Read(cr, status.Ready)
	if ready.Status == metav1.ConditionTrue && ready.ObservedGeneration != 0 && ready.ObservedGeneration != cr.GetGeneration() {
		return string(metav1.ConditionUnknown)
	}
	return string(ready.Status)
}

// outcomeOf returns the outcome by the conditions, and the reason of the last run's failure.
func outcomeOf(watch *watches.Watch, cr *unstructured.Unstructured) (o Outcome, reason, message string) {
	running, failure := status.Read(cr, status.Running), status.Read(cr, status.Failure)
	failed := failure.Status == "True"
	if !failed {
		failure = metav1.Condition{}
	}
	switch {
	case cr.GetDeletionTimestamp() != nil:
		return Deleting, failure.Reason, cmp.Or(failure.Message, running.Message)
	case !watch.Selector.Matches(labels.Set(cr.GetLabels())):
		return Ignored, "", "its labels do not match the selector of the watch"
	case !watch.ManageStatus:
		return Unreported, "", "manageStatus of the watch is false"
	case running.Reason == status.ReasonPaused:
		return Paused, failure.Reason, cmp.Or(failure.Message, running.Message)
	case running.Status == "True" && running.Reason == status.ReasonRunning:
		return Running, failure.Reason, running.Message
	case running.Reason == string(content.ReasonCanceled):
		return Canceled, failure.Reason, running.Message
	case running.Reason == status.ReasonUnwritable:
		return Failed, running.Reason, running.Message
	case failed:
		return Failed, failure.Reason, failure.Message
	case status.Read(cr, status.Successful).Status == "True":
		return Successful, "", ""
	}
	return Pending, "", "no run has been reported"
}

// heldByOthers says for which finalizers a CR waits that is being deleted, if the watch's own is not one of
// them: content runs for none of these.
func heldByOthers(watch *watches.Watch, cr *unstructured.Unstructured) string {
	held := cr.GetFinalizers()
	if len(held) == 0 || watch.Finalizer != nil && slices.ContainsFunc(held, watch.Finalizer.Is) {
		return ""
	}
	return "it waits for finalizers that are not those of the watch: " + strings.Join(held, ", ")
}

// lastRun returns when content ran last, as far as the status says it.
func lastRun(cr *unstructured.Unstructured, run status.LastRun) *time.Time {
	last := run.Ended
	if last.IsZero() {
		for _, kind := range []status.Type{status.Successful, status.Failure} {
			if c := status.Read(cr, kind); c.Status == "True" && c.LastTransitionTime.After(last) {
				last = c.LastTransitionTime.Time
			}
		}
	}
	if last.IsZero() {
		return nil
	}
	return &last
}

// nextRun returns when content runs next, as far as that is certain, and the period. It is not
// certain of content that looks first whether anything is to be done.
func (r Row) nextRun(watch *watches.Watch, cr *unstructured.Unstructured, last status.LastRun, otherwise time.Duration) (next *time.Time, period string) {
	pause, err := controller.Period(watch, otherwise, cr)
	if err == nil && pause > 0 {
		period = pause.String()
	}
	ended := r.Outcome == Successful || r.Outcome == Failed || r.Outcome == Deleting && status.Read(cr, status.Running).Reason != status.ReasonRunning
	switch {
	case !ended || r.Generation != r.ObservedGeneration:
	case !last.Next.IsZero():
		next = &last.Next
	case r.Outcome == Successful && period != "" && !watch.ContentKind().ChecksEachPeriod && !last.Ended.IsZero():
		next = new(last.Ended.Add(pause))
	}
	return next, period
}

// watchFor returns the watch of a kind for a CR. If the kind is not known from watches.yaml, its
// kind of content is the one that the CR shows, and that of Ansible if it shows none.
func watchFor(kind kinds.Kind, cr *unstructured.Unstructured) watches.Watch {
	watch := kind.Watch
	if content, shown := watches.KindOfContent(cr); shown && !kind.Known {
		watch.Custom = &content
	}
	return watch
}

// prefixesFor returns the prefixes that annotations get to control the CR. They are those of
// all kinds of content if neither watches.yaml nor the CR shows its kind of content.
func prefixesFor(kind kinds.Kind, cr *unstructured.Unstructured) []string {
	if _, shown := watches.KindOfContent(cr); shown || kind.Known {
		watch := watchFor(kind, cr)
		return []string{watch.AnnotationPrefix()}
	}
	return watches.AnnotationPrefixes()
}

// label names the CR for people: "Greeting shop/hello".
func (r Row) label() string { return r.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/") }
