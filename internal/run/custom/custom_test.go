package custom

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// engine is one of a Go program, whose work calls do.
type engine struct {
	content.EngineDefaults

	do      func(ctx context.Context, r content.Request, job content.Job) content.Result
	removed []string
}

func (e *engine) Prepare(_ context.Context, r content.Request) (content.Work, *content.Outcome) {
	if r.Spec()["bad"] != nil {
		return nil, content.Refusal(content.ReasonInvalidSpec, errors.New("bad"))
	}
	return &itsWork{engine: e, request: r}, nil
}

func (e *engine) Remove(uid string) error {
	e.removed = append(e.removed, uid)
	return nil
}

type itsWork struct {
	content.WorkDefaults

	engine  *engine
	request content.Request
}

func (w *itsWork) Run(ctx context.Context, job content.Job) content.Result {
	return w.engine.do(ctx, w.request, job)
}

func (*itsWork) Settled(context.Context, content.Job) (content.Result, bool) {
	return content.Result{}, true
}

func (*itsWork) UpToDate() (content.Result, bool) { return content.Result{}, true }

// elsewhere is an Executor that has a run of an earlier manager, or none.
type elsewhere struct {
	run.Program

	earlier bool
	stored  []string
}

func (x *elsewhere) IsResumable(context.Context, string, run.Attempt) bool { return x.earlier }

func (x *elsewhere) ResultStored(uid string) { x.stored = append(x.stored, uid) }

func someRequest() content.Request {
	cr := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g/v1", "kind": "K", "spec": map[string]any{"size": int64(1<<53 + 1)}}}
	cr.SetUID("u")
	return content.Request{Object: cr, Values: map[string]any{"whole": int64(1<<53 + 1), "part": 1.5}, Overrides: map[string]any{"a": []any{int64(2)}}, Requested: true}
}

// The request reaches the engine elsewhere, and its result the manager, as they were.
func TestARunElsewhereIsARunHere(t *testing.T) {
	want := content.Result{
		Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful, Message: "done"}, Version: content.Version{Name: "1"}, RequeueAfter: time.Minute,
		Conditions: []metav1.Condition{{Type: "Fed", Status: "True", Reason: "Fed"}}, Fields: map[string]any{"dishes": int64(3), "gone": nil},
		Account: content.Account{Numbers: []content.Number{{Name: "dishes", Value: 3}}},
	}
	there := &engine{do: func(_ context.Context, r content.Request, job content.Job) content.Result {
		if r.Values["whole"] != int64(1<<53+1) || r.Values["part"] != 1.5 || r.Overrides["a"].([]any)[0] != int64(2) || !r.Requested || r.Object.GetUID() != "u" {
			t.Errorf("got %+v", r)
		}
		if string(job.Kubeconfig) != "config" || job.Run.ID != "r" || job.Run.Trigger != "why" {
			t.Errorf("got %+v", job)
		}
		job.Working("cook")
		job.Located("", "")
		return want
	}}
	x := &elsewhere{Program: Program(there)}
	here := &engine{}
	e := &Engine{Engine: here, Executor: x}
	w, refusal := e.Prepare(t.Context(), someRequest())
	if refusal != nil {
		t.Fatal(*refusal)
	}
	var tasks []string
	got := w.Run(t.Context(), content.Job{Run: content.Run{ID: "r", Trigger: "why"}, Kubeconfig: []byte("config"), Working: func(task string) { tasks = append(tasks, task) }})
	_, gone := got.Fields["gone"]
	if got.Outcome != want.Outcome || got.Version != want.Version || got.RequeueAfter != want.RequeueAfter || got.Fields["dishes"] != int64(3) || !gone ||
		len(got.Conditions) != 1 || len(got.Account.Numbers) != 1 || !slices.Equal(tasks, []string{"cook"}) {
		t.Errorf("got %+v and %q", got, tasks)
	}
	w.ResultStored()
	if err := e.Remove("u"); err != nil || !slices.Equal(x.stored, []string{"u"}) || !slices.Equal(here.removed, []string{"u"}) {
		t.Errorf("%v, stored %q, removed %q", err, x.stored, here.removed)
	}
}

// A run of an earlier manager comes before a look, and a refusal before a run.
func TestTheOrderOfLookAndRun(t *testing.T) {
	x := &elsewhere{}
	e := &Engine{Engine: &engine{}, Executor: x}
	for _, x.earlier = range []bool{false, true} {
		w, _ := e.Prepare(t.Context(), someRequest())
		_, settled := w.Settled(t.Context(), content.Job{})
		if _, upToDate := w.UpToDate(); settled == x.earlier || upToDate == x.earlier || w.Resumable() != x.earlier {
			t.Errorf("earlier %t: settled %t, up to date %t", x.earlier, settled, upToDate)
		}
	}
	bad := someRequest()
	bad.Values["bad"] = true
	if _, refusal := e.Prepare(t.Context(), bad); refusal == nil || refusal.Reason != content.ReasonInvalidSpec {
		t.Errorf("got %+v", refusal)
	}
}

func TestARunElsewhereFailsInItsOwnWords(t *testing.T) {
	const request = `{"Request":{"Object":{"apiVersion":"v1","kind":"K"}}}`
	for why, test := range map[string]struct {
		spec run.Spec
		do   func(ctx context.Context) content.Result
		want content.Reason
	}{
		"no request": {spec: run.Spec{Payload: []byte("{")}, want: content.ReasonRunnerCrashed},
		"it takes too long": {spec: run.Spec{Payload: []byte(request), Timeout: time.Millisecond}, do: func(ctx context.Context) content.Result {
			<-ctx.Done()
			return content.ResultOf(ctx, ctx.Err())
		}, want: content.ReasonTimeout},
		"no form in JSON": {spec: run.Spec{Payload: []byte(request)}, do: func(context.Context) content.Result {
			return content.Result{Outcome: content.Outcome{Verdict: content.Succeeded}, Fields: map[string]any{"f": func() {}}}
		}, want: content.ReasonRunnerCrashed},
	} {
		p := Program(&engine{do: func(ctx context.Context, _ content.Request, _ content.Job) content.Result { return test.do(ctx) }})
		if got := p(t.Context(), test.spec, func([]byte) {}); got.Outcome.Reason != test.want || got.Outcome.Verdict != content.Failed {
			t.Errorf("%s: got %+v", why, got)
		}
	}
}
