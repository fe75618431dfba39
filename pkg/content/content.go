// Package content is the seam between the controller and the kinds of content that it runs. It has
// the interfaces of a kind of content, and the words in which both talk about one run: why it runs,
// its resources, and its result. Roles and playbooks are one kind of content, Helm charts another,
// and a Go program may bring its own.
//
// It decides nothing, so that neither side has to know the other.
package content

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Engine runs the content of one watch. Its methods may be called concurrently. A kind of content
// embeds EngineDefaults, which has all methods but Prepare.
type Engine interface {
	// Prepare makes work of a request. It returns a refusal if no run of the CR in its present form
	// can succeed; then nothing runs until the CR changes. Work that finalizes should not be
	// refused for the CR's spec: the CR could never be deleted. An error that may pass is not a
	// refusal: such work fails when it is run.
	Prepare(ctx context.Context, request Request) (work Work, refusal *Outcome)
	// Remove deletes the files that runs of the CR left on disk, and the engine's memory of it. It
	// is called when the CR is gone.
	Remove(uid string) error
	// Digest changes whenever a run may come out differently for the same CR. A CR that succeeded
	// with the same digest does not run after a restart of the manager; "" makes every CR run once.
	Digest() string
	// FinalizesWithoutValues reports whether the finalizer needs no values of the CR, as the one that
	// uninstalls a release. Then nobody translates them for it, which could fail.
	FinalizesWithoutValues() bool
	// Terminate removes the remains of an earlier manager's run for the CR with the UID, and ends that
	// run if it is running. It returns when it has ended, or with an error when ctx ends first. It
	// is called when nothing is to run for the CR, as because it is paused or up to date. For most
	// CRs there is nothing left. Only runs outside of the manager's process leave something.
	Terminate(ctx context.Context, uid string) error
}

// Request is the input for a run of content.
type Request struct {
	// Object is the CR as it was read. Nobody changes it.
	Object *unstructured.Unstructured
	// Finalizing is true for a run of the finalizer.
	Finalizing bool
	// Gone is true beside Finalizing if the CR is gone, by a live read, although its finalizer has
	// not succeeded, as after somebody has removed that. Object has no more than its kind, names
	// and UID. Only Abandon is called: it returns "" if nothing stays, and then deletes the
	// content's records about the CR.
	Gone bool
	// Interrupted is true if the CR's status shows a run whose result nobody has written: the manager
	// that started it has stopped.
	Interrupted bool
	// Requested is true if somebody has asked for this run by the annotation
	// reconcile-requested-at, and no run has answered that: content that finds its work done checks
	// its assumptions again.
	Requested bool
	// Values are given to the content in place of the CR's spec; nil is the spec. They are as
	// untrusted as the spec, also if a program made them of it, and have the types of JSON.
	Values map[string]any
	// Overrides are trusted, and stronger than the values: variables of Ansible by name, a
	// tree of values of Helm.
	Overrides map[string]any
}

// Spec returns the values of the request: Values, or else the spec of the object, which may be
// nil. The caller does not change them.
func (r Request) Spec() map[string]any {
	if r.Values != nil {
		return r.Values
	}
	spec, _ := r.Object.Object["spec"].(map[string]any)
	return spec
}

// Work is the content of a watch, ready to run for one CR. A kind of content embeds WorkDefaults,
// which has all methods but Run.
type Work interface {
	// Labels are set on the objects that the run writes; nil: none.
	Labels() map[string]string
	// Settled reports whether everything is already as a run would leave it, and the result
	// of such a run. It changes nothing. Content that cannot tell returns false.
	Settled(ctx context.Context, job Job) (result Result, settled bool)
	// Abandon returns, in a few words for people, the objects that stay if the CR's finalizer is
	// removed although it has not succeeded. It changes nothing, and ends with ctx. job has no
	// Kubeconfig if none could be made.
	Abandon(ctx context.Context, job Job) (left string)
	// UpToDate returns the result with which Settled last was true, if surely nothing has changed
	// since of all that it looked at. It asks nobody, and is not called for a run that somebody
	// has asked for.
	UpToDate() (result Result, upToDate bool)
	// Run blocks until nothing of the run is left. It ends with ctx. A run outside of the manager's
	// process may outlive the manager: when ctx ends, and not with ErrUnwanted, Run returns a Result
	// that is Detached.
	Run(ctx context.Context, job Job) Result
	// Resumable reports whether the run is there already, because an earlier manager began it. Run then
	// goes on with it, without a slot that another run could have.
	Resumable() bool
	// ValuesDigest returns a digest of the values that the content gets, where functions of a program
	// make them, which may depend on anything; otherwise "".
	ValuesDigest() string
	// ResultStored is called after Run, when its result has been written to the CR's status. It does
	// not block for long.
	ResultStored()
}

// ErrUnwanted is in the cause of a run's context if the CR must not have this run: it is being deleted, or its
// finalizer is removed without a run. Any other cause means that the manager stops.
var ErrUnwanted = errors.New("the CR must not have this run any more")

// Run describes a run, for its log and metrics.
type Run struct {
	// ID is unique among all runs of this manager and safe as a file name.
	ID string
	// Watch is the watched kind.
	Watch schema.GroupVersionKind
	// Object is the CR as "namespace/name", or "name" when it is cluster-scoped.
	Object string
	// Generation is the CR's metadata.generation that the run works on.
	Generation int64
	// Trigger says in a few words why the run started.
	Trigger string
	// Finalizer is true for the run of a finalizer's content.
	Finalizer bool
	// Heading stands in the log above a run's message of several lines. The kind of content
	// declares it.
	Heading string
	// TraceID is that of the run's trace; "" if there is none.
	TraceID string
}

// Observer observes the runs of all kinds of content. One goroutine for each run calls its
// methods, which must not block for long: the run waits for them. An observer that needs only some
// of them embeds ObserverDefaults.
type Observer interface {
	// Trace is called before RunStarted, to begin the trace of the run. It returns ctx with the
	// parent of the work's spans, and the ID of the trace; "" if it is not recorded.
	Trace(ctx context.Context, run Run) (traced context.Context, id string)
	RunStarted(run Run)
	RunEnded(run Run, result Result, elapsed time.Duration)
	// Forget is called when a CR is gone. object names it as Run.Object does.
	Forget(watch schema.GroupVersionKind, object string)
}

// Version says which version of a watch's content a run has.
type Version struct {
	// Name is the one that people know, such as 1.4.0 or the chart's; "" if there is none.
	Name string
	// Digest stands for all that a run depends on beside its CR, in a few characters; "" if
	// it is unknown.
	Digest string
}

// ShortVersion returns a version with the first characters of a hexadecimal digest: enough to tell
// the few versions apart that a watch has in its time, and short enough for a column.
func ShortVersion(name, digest string) Version {
	const digits = 12
	return Version{Name: name, Digest: digest[:min(digits, len(digest))]}
}

// Job is the controller's input to a run.
type Job struct {
	Run Run
	// Kubeconfig gives access to the API for as long as the run lasts.
	Kubeconfig []byte
	// Working is called with the name of each task that the run begins. It does not block.
	Working func(task string)
	// Located is called with the place where a run outside of the manager's process executes, and
	// with the reason why it waits, in words for people; either is "" if there is none. It does not
	// block.
	Located func(place, waitingFor string)
	// Denied says for people which rights the account of the run has lacked so far, and the remedy,
	// in at most 1 KiB; "" if none. nil: that is not known.
	Denied func() string
}

// Result is the result of a run, as the status shows it.
type Result struct {
	Outcome Outcome
	// Detached is true if the run goes on without this manager: see Work.Run. Nothing is written of
	// it; the next manager does that.
	Detached bool
	// Version is that of the content that ran.
	Version Version
	// RequeueAfter is the pause after which the content wants to run again; 0 is the CR's
	// period. After a failure it bounds the back-off: for content that waits for somebody and
	// has nothing else to do.
	RequeueAfter time.Duration
	// WaitingForObject says, after a failure, that the content waits for an object to which the CR
	// refers: its change begins the next run at once, and not after the back-off.
	WaitingForObject bool
	// Missing are objects of the CR that do not exist, by name, although the run succeeded. With health
	// they are children that are not Current.
	Missing []string
	// Counts is the ansibleResult of the conditions; nil is none.
	Counts map[string]any
	// Conditions are set beside those that every run has, and Removed are the types of
	// those that are removed. The manager sets the observed generation and the time of the
	// last transition, and cuts a message at 4 KiB.
	Conditions []metav1.Condition
	Removed    []string
	// Fields are set in the status, by their key. A nil value removes the key.
	Fields map[string]any
	// Account has further values of the run for the log and the metrics.
	Account Account
}

// Account has a kind of content's own values of a run for the log and the metrics. Its zero value
// has none.
type Account struct {
	// Start is how the run was started, in a word such as warm; "" if there is one way only.
	// Metrics count runs by it: there are few words, and none comes from a CR.
	Start string
	// Duration is how long the run took, where that is not the time that Run took, as for a run that
	// an earlier manager began; 0 otherwise.
	Duration time.Duration
	// Numbers are the run's counts, such as ok 3 or applied 7. The log shows them in this order.
	Numbers []Number
	// Summary says the same in words for a line at a terminal.
	Summary string
	// AlreadyLogged is true if the log has shown in full why the run failed, so that the message of the
	// outcome only stands in its last line.
	AlreadyLogged bool
}

// Number is one count of a run.
type Number struct {
	Name  string
	Value int
}
