// Package run describes runs of any kind of content, their results, and the places where they execute. A
// kind of content makes the payload of a run, and alone reads its events and the detail of its result. An
// Executor carries them: a Program in this process, package jobs/executor to a Job and back.
//
// It does not know any kind of content, or how a run gets anywhere.
package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Spec describes one run.
type Spec struct {
	// UID is the CR's. Two runs for one UID never run at the same time.
	UID string
	// ID is unique among the runs of this manager, and safe as a file name.
	ID string
	// Watch and CR describe the run, in the same words as the log.
	Watch, CR string
	// Kubeconfig gives access to the API. A run in a Job gets another one there, to the same objects.
	Kubeconfig []byte
	// Timeout ends the run; 0 means no timeout.
	Timeout time.Duration
	// Payload has the other input of the run, as the kind of content encodes it.
	Payload json.RawMessage
}

// Result is the result of a run.
type Result struct {
	Outcome content.Outcome
	// Detail is the kind of content's part of the result; nil if there is none, as of a run that has
	// ended without a result.
	Detail json.RawMessage `json:",omitempty"`
	// Brief is Detail where there is little room, in at most 1 KiB; nil: Detail is short enough.
	Brief json.RawMessage `json:"-"`
	// Started and Ended are when the run did; of one that executed elsewhere, as Executor.Run saw it, or,
	// if an earlier manager began it, as the API server did.
	Started, Ended time.Time
	// Remote is true if the run executed outside of this process, and Detached if it may still do: then
	// the next manager goes on with it.
	Remote   bool `json:"-"`
	Detached bool `json:"-"`
}

// StartJob is how logs and metrics call the start of a run in a Job.
const StartJob = "job"

// Account returns the place and the duration of a run that executed elsewhere, for the log and the metrics.
func (r *Result) Account() content.Account {
	if !r.Remote {
		return content.Account{}
	}
	return content.Account{Start: StartJob, Duration: max(0, r.Ended.Sub(r.Started))} // An earlier manager may have begun it, by another clock.
}

// Failed returns the result of a run that could not begin.
func Failed(err error) Result {
	now := time.Now()
	return Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, err), Started: now, Ended: now}
}

// Attempt is the requested run of a CR. It says whether a run that exists already is this one.
type Attempt struct {
	// Request is the same for runs that are to do the same.
	Request string
	// Interrupted is true if the status shows a run without a result: the manager that started it has
	// stopped.
	Interrupted bool
	Generation  int64
	Finalizing  bool
	// Located is called with the place where the run executes and the reason why it waits, in words
	// for people; either is "" if there is none. nil: it is not called.
	Located func(place, waitingFor string)
}

// NewAttempt returns the attempt of a request. more has the other input of the run, in a form that
// JSON can have. Parts of a CR that change without a new run, such as its status, do not count.
func NewAttempt(r content.Request, more map[string]any) Attempt {
	text, _ := json.Marshal(map[string]any{ // All of it came as JSON and can be JSON again.
		"generation": r.Object.GetGeneration(), "annotations": r.Object.GetAnnotations(), "values": r.Spec(), "overrides": r.Overrides,
		"finalizing": r.Finalizing, "more": more,
	})
	sum := sha256.Sum256(text)
	return Attempt{Request: hex.EncodeToString(sum[:16]), Interrupted: r.Interrupted, Generation: r.Object.GetGeneration(), Finalizing: r.Finalizing}
}

// Executor executes the runs of one watch.
type Executor interface {
	// Run blocks until nothing of the run executes any more, or until ctx ends and the run goes on
	// without this manager: then its Result is Detached. If a run that has started already does the
	// requested work, Run goes on with that one. It calls emit with each event of the run, in their
	// order, on one goroutine, and the run waits for emit.
	Run(ctx context.Context, spec Spec, attempt Attempt, emit func(event []byte)) Result
	// IsResumable reports whether Run would go on with a run that has started already. It may wait,
	// until ctx ends, for the data that it needs for that.
	IsResumable(ctx context.Context, uid string, attempt Attempt) bool
	// HasEarlier reports whether there may be an earlier run of the CR. It may wait as IsResumable.
	HasEarlier(ctx context.Context, uid string, attempt Attempt) bool
	// Resume returns when nothing of an earlier run of the CR executes any more, with its result if its
	// request was the same, else nil. It needs no payload.
	Resume(ctx context.Context, spec Spec, attempt Attempt, emit func(event []byte)) *Result
	// ResultStored is called when the result of the CR's run has been written.
	ResultStored(uid string)
	// Terminate is that of content.Engine.
	Terminate(ctx context.Context, uid string) error
	// Remove deletes the remains of the runs of a CR that is gone.
	Remove(uid string) error
}

// Program executes a run in this process. It is also an Executor, of whose runs nothing outlives the
// manager.
type Program func(ctx context.Context, spec Spec, emit func(event []byte)) Result

var _ Executor = Program(nil)

// Run implements Executor.
func (p Program) Run(ctx context.Context, spec Spec, _ Attempt, emit func(event []byte)) Result {
	return p(ctx, spec, emit)
}

// IsResumable implements Executor.
func (Program) IsResumable(context.Context, string, Attempt) bool { return false }

// HasEarlier implements Executor.
func (Program) HasEarlier(context.Context, string, Attempt) bool { return false }

// Resume implements Executor.
func (Program) Resume(context.Context, Spec, Attempt, func([]byte)) *Result { return nil }

// ResultStored implements Executor.
func (Program) ResultStored(string) {}

// Terminate implements Executor.
func (Program) Terminate(context.Context, string) error { return nil }

// Remove implements Executor.
func (Program) Remove(string) error { return nil }
