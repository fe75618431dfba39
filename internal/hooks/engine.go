package hooks

import (
	"context"
	"errors"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Wrap returns the engine with the hooks around its runs.
func Wrap(engine content.Engine, hooks Hooks) content.Engine {
	if hooks.none() {
		return engine
	}
	return &hooked{engine, hooks, hooks.digest(engine.Digest())}
}

type hooked struct {
	content.Engine

	hooks  Hooks
	digest string
}

// Digest implements content.Engine.
func (e *hooked) Digest() string { return e.digest }

// Prepare implements content.Engine.
func (e *hooked) Prepare(ctx context.Context, r content.Request) (content.Work, *content.Outcome) {
	r.Overrides = merge(r.Overrides, e.hooks.Overrides)
	values, err := e.valuesFor(ctx, r)
	switch {
	case err != nil && r.Finalizing:
		inner, _ := e.Engine.Prepare(ctx, r) // It says what stays.
		return &failing{inner: inner, err: err}, nil
	case errors.As(err, &invalidAnnotationError{}):
		return &failing{err: err}, refusal(content.ReasonInvalidAnnotation, err)
	case isInvalidSpec(err):
		return &failing{err: err}, refusal(content.ReasonInvalidSpec, err)
	case err != nil:
		return &failing{err: err}, nil
	}
	r.Values = values
	inner, refused := e.Engine.Prepare(ctx, r)
	if refused != nil {
		return inner, e.hooks.explained(refused, r.Object)
	}
	return &work{inner, e, r}, nil
}

// valuesFor returns the values of the request; a finalizer that needs none gets none.
func (e *hooked) valuesFor(ctx context.Context, r content.Request) (map[string]any, error) {
	if r.Finalizing && e.FinalizesWithoutValues() {
		return r.Values, nil
	}
	return e.hooks.values(ctx, r)
}

func refusal(reason content.Reason, err error) *content.Outcome {
	return &content.Outcome{Verdict: content.Failed, Reason: reason, Message: message(err)}
}

// work is the content of a CR between its hooks.
type work struct {
	content.Work

	engine  *hooked
	request content.Request
}

// ValuesDigest implements content.Work.
func (w *work) ValuesDigest() string { return digestOfValues(w.request.Spec()) }

// Settled implements content.Work.
func (w *work) Settled(ctx context.Context, job content.Job) (content.Result, bool) {
	if w.misses() {
		return content.Result{}, false
	}
	return w.Work.Settled(ctx, job)
}

// UpToDate implements content.Work.
func (w *work) UpToDate() (content.Result, bool) {
	if w.misses() {
		return content.Result{}, false
	}
	return w.Work.UpToDate()
}

// misses reports whether a hook that is called after a run has failed, or was never called: the
// status does not say that the last attempt succeeded. Then content that is as it should be is not
// enough.
func (w *work) misses() bool {
	return len(w.engine.hooks.After) > 0 && !w.request.Finalizing && !succeeded(w.request.Object)
}

// succeeded reports whether the CR's status says that its last attempt did.
func succeeded(cr *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(cr.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Running" && condition["reason"] == string(content.ReasonSuccessful)
	})
}

// Run implements content.Work.
func (w *work) Run(ctx context.Context, job content.Job) content.Result {
	hooks := &w.engine.hooks
	if len(hooks.Before) > 0 {
		job.Working("the hooks before the run")
	}
	if err := hooks.before(ctx, w.request); err != nil {
		logr.FromContextOrDiscard(ctx).Info("a hook ended the reconcile before the run", "message", message(err))
		return content.Result{Outcome: failure(ctx, err)}
	}
	result := w.Work.Run(ctx, job)
	result.Outcome.Message = content.Shown(result.Outcome.Message)
	if w.engine.digest != "" {
		result.Version = content.ShortVersion(result.Version.Name, w.engine.digest)
	}
	if result.Outcome.Verdict == content.Canceled {
		return result
	}
	if len(hooks.After) > 0 {
		job.Working("the hooks after the run")
	}
	if err := hooks.after(ctx, w.request, result.Outcome); err != nil {
		logr.FromContextOrDiscard(ctx).Info("a hook failed the reconcile after the run", "message", message(err))
		if result.Outcome.Verdict == content.Failed {
			result.Outcome.Message = content.Shown(result.Outcome.Message + "\n" + message(err))
			return result
		}
		result.Outcome = failure(ctx, err)
	}
	return result
}

// failing is the work of a CR whose values could not be made. The attempt fails and is
// repeated.
type failing struct {
	content.WorkDefaults

	inner content.Work // nil if the work does not finalize
	err   error
}

// Abandon implements content.Work.
func (w *failing) Abandon(ctx context.Context, job content.Job) string {
	if w.inner == nil {
		return ""
	}
	return w.inner.Abandon(ctx, job)
}

// Run implements content.Work.
func (w *failing) Run(ctx context.Context, _ content.Job) content.Result {
	logr.FromContextOrDiscard(ctx).Info("a hook ended the reconcile before the run", "message", message(w.err))
	return content.Result{Outcome: failure(ctx, w.err)}
}

// failure returns the outcome of an attempt that a hook ends.
func failure(ctx context.Context, err error) content.Outcome {
	if ctx.Err() != nil {
		return content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "run canceled"}
	}
	reason := content.ReasonFailed
	switch {
	case isInvalidSpec(err):
		reason = content.ReasonInvalidSpec
	case errors.Is(err, context.DeadlineExceeded):
		reason = content.ReasonTimeout
	}
	return content.Outcome{Verdict: content.Failed, Reason: reason, Message: message(err)}
}
