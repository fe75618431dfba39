package hooks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/hooks"
	"github.com/ensign-operator/ensign/pkg/content"
)

type values = map[string]any

// world is a kind of content that notes what it is asked.
type world struct {
	content.EngineDefaults

	digest string
	// without is the answer to whether its finalizer needs no values.
	without bool
	refuses *content.Outcome
	result  content.Result
	request content.Request
	calls   []string
}

func (w *world) Digest() string { return w.digest }

func (w *world) FinalizesWithoutValues() bool { return w.without }

func (w *world) Prepare(_ context.Context, r content.Request) (content.Work, *content.Outcome) {
	w.request = r
	return worldWork{world: w}, w.refuses
}

type worldWork struct {
	content.WorkDefaults
	*world
}

func (w worldWork) Labels() map[string]string { return map[string]string{"a": "label"} }

func (w worldWork) Settled(context.Context, content.Job) (content.Result, bool) {
	w.calls = append(w.calls, "settled")
	return w.result, true
}

func (w worldWork) Abandon(context.Context, content.Job) string { return "what stays" }

func (w worldWork) Run(context.Context, content.Job) content.Result {
	w.calls = append(w.calls, "run")
	return w.result
}

func (w *world) note(what string) { w.calls = append(w.calls, what) }

func succeeded() *world {
	return &world{digest: "d", result: content.Result{Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}}}
}

func request(spec values) content.Request {
	return content.Request{Object: &unstructured.Unstructured{Object: values{
		"metadata": values{"name": "a", "annotations": values{"example.com/size": "big", "example.com/colour": "red"}}, "spec": spec,
	}}}
}

func finalizing(r content.Request) content.Request {
	r.Finalizing = true
	return r
}

func job() content.Job { return content.Job{Working: func(string) {}} }

func wrap(inner *world, h hooks.Hooks) content.Engine {
	return hooks.Wrap(inner, h)
}

func overriding(t *testing.T, h *hooks.Hooks, v values) {
	t.Helper()
	if err := h.Override(v); err != nil {
		t.Fatal(err)
	}
}

// attempt prepares and runs, as the controller does.
func attempt(t *testing.T, inner *world, h hooks.Hooks, r content.Request) content.Outcome {
	t.Helper()
	work, refusal := wrap(inner, h).Prepare(t.Context(), r)
	if refusal != nil {
		inner.note("refused")
		return *refusal
	}
	return work.Run(t.Context(), job()).Outcome
}

func translate(f func(values) (values, error)) hooks.Hooks {
	return hooks.Hooks{Translate: []func(context.Context, *unstructured.Unstructured, map[string]any) (map[string]any, error){
		func(_ context.Context, _ *unstructured.Unstructured, v map[string]any) (map[string]any, error) {
			return f(v)
		},
	}}
}

func before(f func(*unstructured.Unstructured, values) error) hooks.Hooks {
	return hooks.Hooks{Before: []func(context.Context, *unstructured.Unstructured, map[string]any) error{
		func(_ context.Context, cr *unstructured.Unstructured, v map[string]any) error { return f(cr, v) },
	}}
}

func after(f func(content.Outcome) error) hooks.Hooks {
	return hooks.Hooks{After: []func(context.Context, *unstructured.Unstructured, content.Outcome) error{
		func(_ context.Context, _ *unstructured.Unstructured, o content.Outcome) error { return f(o) },
	}}
}

func annotation(name string, f func(string) (map[string]any, error)) hooks.Annotation {
	return hooks.Annotation{Name: "example.com/" + name, Values: f}
}

func TestWithoutHooksTheEngineIsItsOwn(t *testing.T) {
	inner := succeeded()
	if got := wrap(inner, hooks.Hooks{Timeout: time.Hour, Version: "1"}); got != content.Engine(inner) {
		t.Errorf("got %T", got)
	}
}

func TestWhatTheContentGets(t *testing.T) {
	double := translate(func(v values) (values, error) {
		return values{"size": v["size"].(int64) * 2, "list": []string{"go"}}, nil
	})
	tree := hooks.Hooks{}
	overriding(t, &tree, values{"image": values{"tag": 6, "name": "a"}})
	overriding(t, &tree, values{"image": values{"tag": 7}})
	both := double
	both.Overrides = tree.Overrides
	both.Annotations = []hooks.Annotation{annotation("size", func(text string) (map[string]any, error) { return values{"size": text, "more": values{"a": 1}}, nil })}
	untouched := translate(func(v values) (values, error) {
		v["nested"].(values)["a"] = "changed"
		return values(nil), nil
	})
	for why, c := range map[string]struct {
		hooks             hooks.Hooks
		spec              values
		values, overrides values
	}{
		"overrides alone leave the spec to the content":    {tree, values{"size": int64(1)}, nil, values{"image": values{"tag": int64(7), "name": "a"}}},
		"what Translate returns, with the types of JSON":   {double, values{"size": int64(2)}, values{"size": int64(4), "list": []any{"go"}}, values{}},
		"annotations go over Translate":                    {both, values{"size": int64(2)}, values{"size": "big", "more": values{"a": int64(1)}, "list": []any{"go"}}, values{"image": values{"tag": int64(7), "name": "a"}}},
		"a function gets a copy, and may return no values": {untouched, values{"nested": values{"a": "b"}}, values{}, values{}},
	} {
		t.Run(why, func(t *testing.T) {
			inner, r := succeeded(), request(c.spec)
			want := r.Object.DeepCopy()
			if got := attempt(t, inner, c.hooks, r); got.Verdict != content.Succeeded {
				t.Fatal(got)
			}
			if diff := cmp.Diff(c.values, inner.request.Values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.overrides, inner.request.Overrides); diff != "" {
				t.Errorf("overrides (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, r.Object); diff != "" {
				t.Errorf("the CR changed:\n%s", diff)
			}
		})
	}
}

func TestTranslatorsFollowEachOther(t *testing.T) {
	add := func(letter string) hooks.Hooks {
		return translate(func(v values) (values, error) { return values{"text": v["text"].(string) + letter}, nil })
	}
	h := add("b")
	h.Translate = append(h.Translate, add("c").Translate...)
	inner := succeeded()
	attempt(t, inner, h, request(values{"text": "a"}))
	if got := inner.request.Values["text"]; got != "abc" {
		t.Errorf("got %v", got)
	}
}

func TestErrorsOfHooks(t *testing.T) {
	boom, wrong := errors.New("boom\x1b[2J"), hooks.InvalidSpec(errors.New("spec.size is odd"))
	faulty := func(err error) hooks.Hooks { return translate(func(values) (values, error) { return nil, err }) }
	denied := func(err error) hooks.Hooks {
		return before(func(*unstructured.Unstructured, values) error { return err })
	}
	late := func(err error) hooks.Hooks { return after(func(content.Outcome) error { return err }) }
	odd := hooks.Hooks{Annotations: []hooks.Annotation{
		annotation("size", func(string) (map[string]any, error) { return nil, errors.New("no number") }),
		annotation("absent", func(string) (map[string]any, error) { panic("it is not there") }),
		annotation("colour", func(text string) (map[string]any, error) { return nil, errors.New(text + " is no colour") }),
	}}
	panicking := before(func(*unstructured.Unstructured, values) error { panic("by accident") })
	noJSON := translate(func(values) (values, error) { return values{"a": func() {}}, nil })
	r, deleted := request(values{"size": int64(1)}), finalizing(request(values{"size": int64(1)}))
	for why, c := range map[string]struct {
		hooks   hooks.Hooks
		request content.Request
		reason  content.Reason
		message string // a part of it
		calls   string
	}{
		"the spec is wrong: nothing runs until it changes":  {faulty(wrong), r, content.ReasonInvalidSpec, "spec.size is odd", "refused"},
		"the values cannot be made now: it is tried again":  {faulty(boom), r, content.ReasonFailed, `boom\x1b[2J`, ""},
		"values that are no JSON":                           {noJSON, r, content.ReasonFailed, "TranslateValues: the values are not JSON", ""},
		"all annotations that are wrong":                    {odd, r, content.ReasonInvalidAnnotation, "annotation example.com/size: no number\nannotation example.com/colour: red is no colour", "refused"},
		"an error before the run is its message":            {denied(boom), r, content.ReasonFailed, `boom\x1b[2J`, ""},
		"an error before the run about the spec":            {denied(wrong), r, content.ReasonInvalidSpec, "spec.size is odd", ""},
		"a panic is an error":                               {panicking, r, content.ReasonFailed, "panic in the function of PreHook: by accident", ""},
		"an error after the run":                            {late(boom), r, content.ReasonFailed, `boom\x1b[2J`, "run"},
		"an error without a text":                           {late(errors.New("")), r, content.ReasonFailed, "does not say why", "run"},
		"a wrong spec holds no deletion up":                 {faulty(wrong), deleted, content.ReasonSuccessful, "", "run"},
		"a wrong spec holds no deletion up before the run":  {denied(wrong), deleted, content.ReasonSuccessful, "", "run"},
		"a wrong annotation holds no deletion up":           {odd, deleted, content.ReasonSuccessful, "", "run"},
		"a deletion waits for what is wrong for a time":     {faulty(boom), deleted, content.ReasonFailed, "boom", ""},
		"a deletion waits for a hook before it":             {denied(boom), deleted, content.ReasonFailed, "boom", ""},
		"a deletion is not done before the hook after says": {late(boom), deleted, content.ReasonFailed, "boom", "run"},
	} {
		t.Run(why, func(t *testing.T) {
			inner := succeeded()
			got := attempt(t, inner, c.hooks, c.request)
			if got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
				t.Errorf("want %s %q, got %+v", c.reason, c.message, got)
			}
			if calls := strings.Join(inner.calls, " "); calls != c.calls {
				t.Errorf("want %q, got %q", c.calls, calls)
			}
		})
	}
}

func TestADeletionThatNeedsNoValuesDoesNotWaitForThem(t *testing.T) {
	inner := succeeded()
	inner.without = true
	h := translate(func(values) (values, error) { return nil, errors.New("the ConfigMap is gone") })
	if got := attempt(t, inner, h, finalizing(request(nil))); got.Verdict != content.Succeeded {
		t.Errorf("got %+v", got)
	}
	if got := attempt(t, inner, h, request(nil)); got.Verdict != content.Failed {
		t.Errorf("a run that is none of a finalizer: %+v", got)
	}
}

func TestHooksStandAroundTheRun(t *testing.T) {
	inner := succeeded()
	h := before(func(cr *unstructured.Unstructured, v values) error {
		inner.note("before " + cr.GetName() + " " + v["text"].(string))
		v["text"] = "changed"
		return nil
	})
	h.Before = append(h.Before, h.Before[0])
	h.After = after(func(o content.Outcome) error {
		inner.note("after " + string(o.Reason))
		return nil
	}).After
	h.Translate = translate(func(values) (values, error) { return values{"text": "made"}, nil }).Translate
	attempt(t, inner, h, request(nil))
	if got := strings.Join(inner.calls, ", "); got != "before a made, before a made, run, after Successful" {
		t.Error(got)
	}
}

func TestNoHookIsCalledWhereNothingRuns(t *testing.T) {
	inner := succeeded()
	work, _ := wrap(inner, before(func(*unstructured.Unstructured, values) error { panic("before") })).Prepare(t.Context(), request(nil))
	if result, settled := work.Settled(t.Context(), job()); !settled || result.Outcome.Verdict != content.Succeeded || work.Labels()["a"] != "label" {
		t.Errorf("got %+v, %t", result, settled)
	}
}

// A hook after the run that failed, or was not called because the manager ended, must be called by
// a later attempt, which finds its content as it should be.
func TestWhatIsAsItShouldBeIsNotDoneBeforeItsHook(t *testing.T) {
	for reason, want := range map[string]bool{"Successful": true, "Failed": false, "Canceled": false, "Running": false, "Paused": false, "": false} {
		r := request(nil)
		if reason != "" {
			r.Object.Object["status"] = values{"conditions": []any{values{"type": "Successful", "reason": "Successful"}, values{"type": "Running", "reason": reason}}}
		}
		h := after(func(content.Outcome) error { panic("after") })
		work, _ := wrap(succeeded(), h).Prepare(t.Context(), r)
		if _, settled := work.Settled(t.Context(), job()); settled != want {
			t.Errorf("with the status %q: settled is %t", reason, settled)
		}
		work, _ = wrap(succeeded(), h).Prepare(t.Context(), finalizing(r))
		if _, settled := work.Settled(t.Context(), job()); !settled {
			t.Errorf("with the status %q: a finalizer that waits for somebody must run", reason)
		}
	}
}

func TestAHookGetsAMessageThatIsFitToBeShown(t *testing.T) {
	inner, got := succeeded(), ""
	inner.result.Outcome = content.Outcome{Verdict: content.Failed, Message: "a\x1b" + strings.Repeat("€", 2000)}
	attempt(t, inner, after(func(o content.Outcome) error {
		got = o.Message
		return nil
	}), request(nil))
	if len(got) > 4<<10 || !strings.HasPrefix(got, `a\x1b€`) {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

func TestHooksAfterAFailureAndAfterNone(t *testing.T) {
	boom := after(func(content.Outcome) error { return errors.New("nor was it reported") })
	for why, c := range map[string]struct {
		outcome content.Outcome
		want    string
	}{
		"both errors are told":                 {content.Outcome{Verdict: content.Failed, Reason: content.ReasonTimeout, Message: "too long"}, "too long\nnor was it reported"},
		"the next manager repeats the run":     {content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "ended"}, "ended"},
		"a long message is cut, and is a text": {content.Outcome{Verdict: content.Failed, Reason: content.ReasonTimeout, Message: strings.Repeat("€", 1365)}, strings.Repeat("€", 1362) + "… [cut]"},
	} {
		t.Run(why, func(t *testing.T) {
			inner := succeeded()
			inner.result.Outcome = c.outcome
			got := attempt(t, inner, boom, request(nil))
			if got.Message != c.want || got.Reason != c.outcome.Reason || !utf8.ValidString(got.Message) || len(got.Message) > 4<<10 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAHookThatTakesTooLongIsToldSo(t *testing.T) {
	h := hooks.Hooks{Timeout: time.Nanosecond, Before: []func(context.Context, *unstructured.Unstructured, map[string]any) error{
		func(ctx context.Context, _ *unstructured.Unstructured, _ map[string]any) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}}
	if got := attempt(t, succeeded(), h, request(nil)); got.Reason != content.ReasonTimeout || !strings.HasPrefix(got.Message, "PreHook took longer than the timeout of the watch, 1ns: ") {
		t.Errorf("got %+v", got)
	}
}

func TestAHookThatEndsWithTheManagerIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	h := before(func(*unstructured.Unstructured, values) error {
		cancel()
		return context.Canceled
	})
	work, _ := wrap(succeeded(), h).Prepare(ctx, request(nil))
	if got := work.Run(ctx, job()).Outcome; got.Verdict != content.Canceled {
		t.Errorf("got %+v", got)
	}
}

func TestWhatStaysIsSaidWithoutTheValues(t *testing.T) {
	h := translate(func(values) (values, error) { return nil, errors.New("boom") })
	work, _ := wrap(succeeded(), h).Prepare(t.Context(), finalizing(request(nil)))
	if got := work.Abandon(t.Context(), job()); got != "what stays" {
		t.Errorf("got %q", got)
	}
}

func TestWhatTheContentRefusesStaysRefused(t *testing.T) {
	inner := succeeded()
	inner.refuses = content.Refusal(content.ReasonInvalidSpec, errors.New("no"))
	h := before(func(*unstructured.Unstructured, values) error { panic("before") })
	if got := attempt(t, inner, h, request(nil)); got.Message != "no" {
		t.Errorf("got %+v", got)
	}
}

// TestARefusalOfMadeValuesNamesTheFunctions: the user's spec does not have the fields.
func TestARefusalOfMadeValuesNamesTheFunctions(t *testing.T) {
	r := request(values{"size": int64(1)})
	made := translate(func(values) (values, error) { return values{"log_level": "a"}, nil })
	made.Annotations = []hooks.Annotation{annotation("colour", func(string) (map[string]any, error) { return values{"a": 1}, nil }), annotation("absent", func(string) (map[string]any, error) { panic("it is not there") })}
	for reason, want := range map[content.Reason]string{
		content.ReasonInvalidSpec: "no\nTranslateValues and Annotation(\"example.com/colour\") of the operator's program made these values of the resource. ",
		content.ReasonFailed:      "no",
	} {
		inner := succeeded()
		inner.refuses = content.Refusal(reason, errors.New("no"))
		if got := attempt(t, inner, made, r); !strings.HasPrefix(got.Message, want) || reason == content.ReasonFailed && got.Message != want || inner.refuses.Message != "no" {
			t.Errorf("got %+v", got)
		}
	}
}

// TestDigest shows when a CR that succeeded runs again after a restart.
func TestDigest(t *testing.T) {
	code := before(func(*unstructured.Unstructured, values) error { return nil })
	versioned, newer := code, code
	versioned.Version, newer.Version = "1.0", "1.1"
	overrides := func(value any) hooks.Hooks {
		h := hooks.Hooks{Version: "1.0"}
		overriding(t, &h, values{"a": value})
		return h
	}
	digest := func(inner string, h hooks.Hooks) string { return wrap(&world{digest: inner}, h).Digest() }
	known := map[string]string{}
	for why, got := range map[string]string{
		"no hooks": digest("d", hooks.Hooks{}), "an override": digest("d", overrides(1)), "another": digest("d", overrides("1")),
		"code": digest("d", versioned), "newer code": digest("d", newer), "other content": digest("e", versioned),
	} {
		if other, twice := known[got]; twice || got == "" {
			t.Errorf("%s has the digest %q, as %s", why, got, other)
		}
		known[got] = why
	}
	if digest("d", overrides(1)) != digest("d", overrides(int64(1))) {
		t.Error("the same override has another digest")
	}
	for why, got := range map[string]string{"code without a version": digest("d", code), "content that does not know": digest("", versioned)} {
		if got != "" {
			t.Errorf("%s has the digest %q", why, got)
		}
	}
}

// What functions make of the CR may change while the CR does not.
func TestTheWorkSaysWhichValuesItHas(t *testing.T) {
	read := "first"
	h := translate(func(v values) (values, error) { return values{"read": read, "text": v["text"]}, nil })
	digest := func(text string) string {
		work, _ := wrap(succeeded(), h).Prepare(t.Context(), request(values{"text": text}))
		return work.ValuesDigest()
	}
	first := digest("a")
	if first == "" || digest("a") != first || digest("b") == first {
		t.Error("the digest is not that of the values")
	}
	if read = "second"; digest("a") == first {
		t.Error("what the function read is not in the digest")
	}
}

func TestTheVersionThatRanHasTheHooksInIt(t *testing.T) {
	inner := succeeded()
	inner.result.Version = content.ShortVersion("1.4", "dddddddddddddddd")
	h := hooks.Hooks{}
	overriding(t, &h, values{"a": 1})
	work, _ := wrap(inner, h).Prepare(t.Context(), request(nil))
	got := work.Run(t.Context(), job()).Version
	if got.Name != "1.4" || got.Digest == inner.result.Version.Digest || len(got.Digest) != len(inner.result.Version.Digest) {
		t.Errorf("got %+v", got)
	}
}

func TestNoValueIsLogged(t *testing.T) {
	var logged strings.Builder
	ctx := logr.NewContext(t.Context(), funcr.New(func(prefix, args string) { logged.WriteString(prefix + args) }, funcr.Options{Verbosity: 10}))
	h := before(func(*unstructured.Unstructured, values) error { panic("by accident") })
	overriding(t, &h, values{"password": "hunter2"})
	h.Translate = translate(func(v values) (values, error) { return values{"password": v["secret"]}, nil }).Translate
	work, _ := wrap(succeeded(), h).Prepare(ctx, request(values{"secret": "hunter2"}))
	work.Run(ctx, job())
	if !strings.Contains(logged.String(), "by accident") || strings.Contains(logged.String(), "hunter2") {
		t.Error(logged.String())
	}
}

func TestOverridesThatAreNoJSON(t *testing.T) {
	if err := (&hooks.Hooks{}).Override(values{"a": make(chan int)}); err == nil {
		t.Error("no error")
	}
}
