package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Remote is a Runner whose runs may outlive this manager: their Result is then Detached.
type Remote interface {
	Runner
	// RunRemote is Run with further input for a run outside of the process. If a run that has
	// started already does the requested work, RunRemote goes on with that one.
	RunRemote(ctx context.Context, spec runner.Spec, attempt Attempt, observe func(jobevent.Event)) runner.Result
	// IsResumable reports whether RunRemote would go on with a run that has started already. It may
	// wait, until ctx ends, for the data that it needs for that.
	IsResumable(ctx context.Context, uid string, attempt Attempt) bool
	// ResultStored is called when the result of the CR's run has been written.
	ResultStored(uid string)
	// Terminate is that of content.Engine.
	Terminate(ctx context.Context, uid string) error
}

// Terminate implements content.Engine.
func (e *Engine) Terminate(ctx context.Context, uid string) error {
	if remote, is := e.Runner.(Remote); is {
		return remote.Terminate(ctx, uid)
	}
	return nil
}

// Attempt is the requested run.
type Attempt = process.Attempt

// remoteWork is work that a Remote executes.
type remoteWork struct {
	*work

	remote    Remote
	attempt   Attempt
	resumable bool
}

func (e *Engine) remoteWork(ctx context.Context, w *work, remote Remote, r content.Request) *remoteWork {
	attempt := Attempt{
		Request: e.digestOf(w, r), Interrupted: r.Interrupted, Generation: r.Object.GetGeneration(), Finalizing: r.Finalizing,
	}
	w.execute = func(ctx context.Context, spec runner.Spec, job content.Job, observe func(jobevent.Event)) runner.Result {
		attempt := attempt
		attempt.Located = job.Located
		return remote.RunRemote(ctx, spec, attempt, observe)
	}
	return &remoteWork{work: w, remote: remote, attempt: attempt, resumable: remote.IsResumable(ctx, w.uid, attempt)}
}

// Resumable implements content.Work.
func (w *remoteWork) Resumable() bool { return w.resumable }

// ResultStored implements content.Work.
func (w *remoteWork) ResultStored() { w.remote.ResultStored(w.uid) }

// digestOf returns the digest of all that the run is asked to do. It leaves out the parts of a CR
// that change without a new run, such as its status and its resourceVersion, although variables
// show them.
func (e *Engine) digestOf(w *work, r content.Request) string {
	asked, _ := json.Marshal(map[string]any{ // All of it came as JSON and can be JSON again.
		"generation": r.Object.GetGeneration(), "annotations": r.Object.GetAnnotations(), "values": r.Spec(), "overrides": r.Overrides,
		"finalizing": r.Finalizing, "version": e.Version, "settings": []int{w.settings.verbosity, w.settings.maxArtifacts},
	})
	sum := sha256.Sum256(asked)
	return hex.EncodeToString(sum[:16])
}
