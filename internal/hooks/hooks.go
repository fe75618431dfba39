// Package hooks makes functions of a Go program a part of each attempt, whatever kind of
// content runs: they change the values that the content gets, and run before and after it.
//
// Wrap puts them around a content.Engine; Hooks has the rules for each. The package does not decide
// when something runs.
//
// The values that a function makes from a CR are as untrusted as the CR. Hooks.Overrides alone are
// trusted. A function gets copies, so that it cannot change the values that other functions see.
// One that panics fails its attempt, as one that returns an error does.
//
// # Finalizers
//
// All functions are called for a finalizer's run too; then the CR has a deletionTimestamp. An error
// there fails the attempt, which is repeated with the usual back-off. But an error of the CR alone,
// its spec or an annotation, never delays its deletion: such an error is logged, and the run goes
// on with the values as they were.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ensign-operator/ensign/pkg/content"
)

// Hooks are the functions of one watch. Those of one kind are called in their order.
type Hooks struct {
	// Overrides are trusted values, stronger than all others, which Override adds.
	Overrides map[string]any
	// Translate make the values that the content gets of those that it would get, the first
	// of the CR's spec.
	Translate []func(ctx context.Context, cr *unstructured.Unstructured, values map[string]any) (map[string]any, error)
	// Annotations give values that go over those of Translate.
	Annotations []Annotation
	// Before are called before the content runs, and the first error ends the attempt. They
	// are not called where nothing is to be done, as for a release at rest.
	Before []func(ctx context.Context, cr *unstructured.Unstructured, values map[string]any) error
	// After are called when a run has ended, with the outcome so far, but not after one that
	// was canceled: the next manager repeats it. An error fails the attempt, and the next one
	// runs the content again, even if there is nothing to be done.
	After []func(ctx context.Context, cr *unstructured.Unstructured, outcome content.Outcome) error
	// Version represents the code of the functions in the engine's digest. While it is "",
	// every CR runs once after a restart.
	Version string
	// Timeout is the longest time for all functions of one kind together; 0 means no limit.
	Timeout time.Duration
}

// Annotation is an annotation of CRs that changes their values.
type Annotation struct {
	Name string
	// Values makes values of the annotation's text, where a CR has it. An error says what is
	// wrong with the text.
	Values func(text string) (map[string]any, error)
}

// InvalidSpec returns an error that says what is wrong with the CR: nothing runs for it until
// it changes. Other errors are temporary.
func InvalidSpec(err error) error { return invalidSpecError{err} }

type invalidSpecError struct{ error }

func (e invalidSpecError) Unwrap() error { return e.error }

func isInvalidSpec(err error) bool { return errors.As(err, &invalidSpecError{}) }

// none reports whether there is nothing to call and nothing to override.
func (h *Hooks) none() bool { return len(h.Overrides) == 0 && !h.haveCode() }

// haveCode reports whether there is a function, which has no digest of its own.
func (h *Hooks) haveCode() bool {
	return len(h.Translate)+len(h.Annotations)+len(h.Before)+len(h.After) > 0
}

// values returns the values that the content gets in place of the CR's spec; nil if no hook sets
// them. The error is a refusal, or temporary.
func (h *Hooks) values(ctx context.Context, r content.Request) (values map[string]any, err error) {
	if len(h.Translate) == 0 && !h.annotated(r.Object) {
		return r.Values, nil
	}
	values = deepCopy(r.Spec())
	ctx, cancel := h.limit(ctx)
	defer cancel()
	for _, translate := range h.Translate {
		var made map[string]any
		err := h.call(ctx, "TranslateValues", func() (err error) {
			made, err = translate(ctx, r.Object.DeepCopy(), deepCopy(values))
			return err
		})
		if err == nil {
			if made, err = asJSON(made); err == nil {
				values = made
				continue
			}
			err = fmt.Errorf("TranslateValues: %w", err)
		}
		if !r.Finalizing || !isInvalidSpec(err) {
			return nil, err
		}
		logIgnored(ctx, err)
	}
	return h.annotate(ctx, r, values)
}

func (h *Hooks) annotated(cr *unstructured.Unstructured) bool {
	has := cr.GetAnnotations()
	return slices.ContainsFunc(h.Annotations, func(a Annotation) bool { _, given := has[a.Name]; return given })
}

// annotate merges the values of the CR's annotations into the values. The error names every
// annotation that is wrong.
func (h *Hooks) annotate(ctx context.Context, r content.Request, values map[string]any) (map[string]any, error) {
	var wrong []error
	has := r.Object.GetAnnotations()
	for _, a := range h.Annotations {
		text, given := has[a.Name]
		if !given {
			continue
		}
		var made map[string]any
		err := guard(ctx, "Annotation", func() (err error) {
			made, err = a.Values(text)
			return err
		})
		if err == nil {
			made, err = asJSON(made)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("annotation %s: %w", a.Name, err))
			continue
		}
		values = merge(values, made)
	}
	if err := errors.Join(wrong...); err != nil && !r.Finalizing {
		return nil, invalidAnnotationError{err}
	} else if err != nil {
		logIgnored(ctx, err)
	}
	return values, nil
}

type invalidAnnotationError struct{ error }

// before calls the hooks before a run.
func (h *Hooks) before(ctx context.Context, r content.Request) error {
	ctx, cancel := h.limit(ctx)
	defer cancel()
	for _, hook := range h.Before {
		err := h.call(ctx, "PreHook", func() error { return hook(ctx, r.Object.DeepCopy(), deepCopy(r.Spec())) })
		if err == nil {
			continue
		}
		if !r.Finalizing || !isInvalidSpec(err) {
			return err
		}
		logIgnored(ctx, err)
	}
	return nil
}

// after calls the hooks after a run, all of them.
func (h *Hooks) after(ctx context.Context, r content.Request, outcome content.Outcome) error {
	ctx, cancel := h.limit(ctx)
	defer cancel()
	var all []error
	for _, hook := range h.After {
		all = append(all, h.call(ctx, "PostHook", func() error { return hook(ctx, r.Object.DeepCopy(), outcome) }))
	}
	return errors.Join(all...)
}

func (h *Hooks) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, h.Timeout)
}

// call calls a function of the author, which an option named. ctx is that of limit: where its end is
// the error, the message says whose time was over.
func (h *Hooks) call(ctx context.Context, option string, function func() error) error {
	err := guard(ctx, option, function)
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s took longer than the timeout of the watch, %s: %w", option, h.Timeout, err)
	}
	return err
}

// explained returns a refusal of values, which names the functions that have made them: the message
// may name fields that the resource does not have.
func (h *Hooks) explained(refused *content.Outcome, cr *unstructured.Unstructured) *content.Outcome {
	var makers []string
	if len(h.Translate) > 0 {
		makers = append(makers, "TranslateValues")
	}
	has := cr.GetAnnotations()
	for _, a := range h.Annotations {
		if _, given := has[a.Name]; given {
			makers = append(makers, fmt.Sprintf("Annotation(%q)", a.Name))
		}
	}
	if len(makers) == 0 || refused.Reason != content.ReasonInvalidSpec {
		return refused
	}
	outcome := *refused
	outcome.Message = content.Shown(outcome.Message + "\n" + strings.Join(makers, " and ") + " of the operator's program made these values of the resource. Their keys are those of the spec, such as logLevel for the variable log_level")
	return &outcome
}

// guard calls a function of the author, which an option named. A panic becomes an error.
func guard(ctx context.Context, option string, call func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic in the function of %s: %v", option, cause)
			logr.FromContextOrDiscard(ctx).Error(nil, "a hook panicked", "stack", string(debug.Stack()))
		}
	}()
	return call()
}

func logIgnored(ctx context.Context, err error) {
	logr.FromContextOrDiscard(ctx).Info("WARNING: hook refused the resource; deleting it anyway", "message", message(err))
}

// message returns the text of an error as a status may show it.
func message(err error) string {
	return cmp.Or(content.Shown(err.Error()), "a hook failed and does not say why")
}

func deepCopy(values map[string]any) map[string]any {
	if values == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(values)
}

// merge returns the values with others over them: of two maps both count, of anything else
// the other one.
func merge(values, others map[string]any) map[string]any {
	merged := maps.Clone(values)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, other := range others {
		below, isMap := merged[key].(map[string]any)
		above, both := other.(map[string]any)
		if isMap && both {
			merged[key] = merge(below, above)
			continue
		}
		merged[key] = other
	}
	return merged
}
