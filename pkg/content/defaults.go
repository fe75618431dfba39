package content

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/sanitize"
)

// EngineDefaults are embedded in an Engine: they are those of an Engine that keeps nothing of CRs,
// and whose runs end with the manager. With it, a method that Engine gets in a later version does
// not break the program.
type EngineDefaults struct{}

// Remove has nothing to delete.
func (EngineDefaults) Remove(string) error { return nil }

// Digest returns "": every CR runs once after a restart of the manager.
func (EngineDefaults) Digest() string { return "" }

// FinalizesWithoutValues returns false.
func (EngineDefaults) FinalizesWithoutValues() bool { return false }

// Terminate has nothing to end.
func (EngineDefaults) Terminate(context.Context, string) error { return nil }

// WorkDefaults are embedded in Work: they are those of Work that knows only by its run whether
// anything is to be done, and whose run ends with the manager.
type WorkDefaults struct{}

// Labels returns none.
func (WorkDefaults) Labels() map[string]string { return nil }

// Settled returns false.
func (WorkDefaults) Settled(context.Context, Job) (Result, bool) { return Result{}, false }

// Abandon says that nobody knows.
func (WorkDefaults) Abandon(context.Context, Job) string {
	return "the finalizer did not succeed, so the objects and data that it deletes may remain"
}

// UpToDate returns false.
func (WorkDefaults) UpToDate() (Result, bool) { return Result{}, false }

// Resumable returns false.
func (WorkDefaults) Resumable() bool { return false }

// ValuesDigest returns "".
func (WorkDefaults) ValuesDigest() string { return "" }

// ResultStored has nothing to do.
func (WorkDefaults) ResultStored() {}

// ObserverDefaults are embedded in an Observer: each method does nothing.
type ObserverDefaults struct{}

// Trace records no trace.
func (ObserverDefaults) Trace(ctx context.Context, _ Run) (context.Context, string) { return ctx, "" }

// RunStarted does nothing.
func (ObserverDefaults) RunStarted(Run) {}

// RunEnded does nothing.
func (ObserverDefaults) RunEnded(Run, Result, time.Duration) {}

// Forget has nothing to forget.
func (ObserverDefaults) Forget(schema.GroupVersionKind, string) {}

// ResultOf returns the result of a run that ended with the error. Without one it succeeded. If ctx
// has ended, the run was canceled. Otherwise it failed, and the message has the error's text, made
// safe to be shown and cut. The controller adds the rights that the run lacked.
func ResultOf(ctx context.Context, err error) Result {
	switch {
	case err == nil:
		return Result{Outcome: Outcome{Verdict: Succeeded, Reason: ReasonSuccessful}}
	case ctx.Err() != nil:
		return Result{Outcome: Outcome{Verdict: Canceled, Reason: ReasonCanceled, Message: "run canceled"}}
	}
	return Result{Outcome: *Refusal(ReasonFailed, err)}
}

// Refusal returns the outcome of a CR that nothing runs for until it changes. The message has the
// error's text, made safe to be shown and cut.
func Refusal(reason Reason, why error) *Outcome {
	return &Outcome{Verdict: Failed, Reason: reason, Message: Shown(why.Error())}
}

// Shown returns a text as the message of an Outcome may have it: without control characters other
// than tabs and line feeds, and at most 4 KiB long.
func Shown(text string) string {
	text = sanitize.Text(text)
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-len(cutMark)], "") + cutMark
}

// cutMark ends a text that was longer.
const cutMark = "… [cut]"
