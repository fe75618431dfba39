package traces

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

var (
	greeting = schema.GroupVersionKind{Group: "demo.example.com", Version: "v1", Kind: "Greeting"}
	aRun     = content.Run{ID: "r1", Watch: greeting, Object: "shop/hello", Generation: 3, Trigger: "changed"}
	failure  = content.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: "Timeout", Message: "canary"}, Account: content.Account{Start: "warm", Numbers: []content.Number{{Name: "ok", Value: 2}}}}
)

// recorded returns Traces, and what it has recorded.
func recorded(options ...sdktrace.TracerProviderOption) (*Traces, func() []sdktrace.ReadOnlySpan) {
	recorder := tracetest.NewSpanRecorder()
	return New(sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(recorder))...)), recorder.Ended
}

// line shows a span: its name, status, what it belongs to, and its attributes.
func line(s sdktrace.ReadOnlySpan) string {
	text := fmt.Sprintf("%s [%s %s]", s.Name(), s.Status().Code, s.Status().Description)
	for _, a := range s.Attributes() {
		text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
	}
	return text
}

func TestARunItsTasksAndItsRequests(t *testing.T) {
	traces, ended := recorded()
	ctx, id := traces.Trace(t.Context(), aRun)
	if within := trace.SpanContextFromContext(ctx).TraceID().String(); id == "" || within != id {
		t.Errorf("the work's own spans belong to %s, the run's trace is %s", within, id)
	}
	traces.RunStarted(aRun)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, e := range []jobevent.Event{
		{Kind: jobevent.TaskStart, Task: "Write"},
		{Kind: jobevent.HostOK, Role: "greeting", Task: "Write", Host: "localhost", ResolvedAction: "kubernetes.core.k8s", TaskPath: "main.yml:1", Result: map[string]any{"changed": true, "msg": "canary"}, Stdout: "canary", Created: at, Duration: 2 * time.Second},
		{Kind: jobevent.ItemFailed, Task: "Loop", Result: map[string]any{"_ansible_item_label": "canary"}},
		{Kind: jobevent.HostSkipped, Task: "Skip"},
		{Kind: jobevent.HostFailed, Task: "Try", IgnoreErrors: true, Result: map[string]any{"msg": "canary"}},
		{Kind: jobevent.HostFailed, Task: "Judge", Result: map[string]any{"msg": "canary"}},
		{Kind: jobevent.HostUnreachable, Host: "far"},
	} {
		traces.JobEvent(aRun, e)
	}
	resource := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "patch", APIGroup: "apps", Resource: "deployments", Subresource: "scale", Namespace: "other", Name: "web"}
	traces.Request(greeting, aRun.Object, resource)(201)
	traces.Request(greeting, aRun.Object, &apirequest.RequestInfo{Verb: "get", Path: "/apis"})(503)
	watching := traces.Request(greeting, aRun.Object, &apirequest.RequestInfo{IsResourceRequest: true, Verb: "watch", Resource: "pods"})
	traces.RunEnded(aRun, failure, time.Minute)
	watching(0) // Its token ends with the run.

	spans := ended()
	var got []string
	for _, s := range spans {
		got = append(got, line(s))
		if s.SpanContext().TraceID().String() != id {
			t.Errorf("%s is in another trace", s.Name())
		}
		if root := s.Name() == "run Greeting"; root == s.Parent().IsValid() || !root && s.Parent().SpanID() != trace.SpanContextFromContext(ctx).SpanID() {
			t.Errorf("%s does not belong to the run", s.Name())
		}
	}
	want := []string{
		"greeting : Write [Unset ] ensign.host=localhost ensign.outcome=changed ensign.module=kubernetes.core.k8s ensign.path=main.yml:1",
		"Skip [Unset ] ensign.outcome=skipped",
		"Try [Unset ] ensign.outcome=ignored",
		"Judge [Error failed] ensign.outcome=failed",
		"task [Error unreachable] ensign.host=far ensign.outcome=unreachable",
		"patch deployments/scale.apps [Unset ] k8s.namespace.name=other ensign.resource=deployments/scale.apps ensign.name=web http.response.status_code=201",
		"get /apis [Error ] url.path=/apis http.response.status_code=503",
		"run Greeting [Error Timeout] k8s.namespace.name=shop ensign.cr=shop/hello ensign.watch=demo.example.com/v1, Kind=Greeting ensign.trigger=changed ensign.run=r1 ensign.generation=3 ensign.outcome=Failed ensign.reason=Timeout ensign.mode=warm ensign.ok=2 error.type=Timeout",
		"watch pods [Unset ] ensign.resource=pods",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if task := spans[0]; !task.EndTime().Equal(at) || task.EndTime().Sub(task.StartTime()) != 2*time.Second {
		t.Errorf("a task's span has the times %s to %s", task.StartTime(), task.EndTime())
	}
}

func TestAFinalizersRunOfACRWithoutANamespace(t *testing.T) {
	traces, ended := recorded()
	run := content.Run{Watch: greeting, Object: "hello", Finalizer: true}
	traces.Trace(t.Context(), run)
	traces.RunEnded(run, content.Result{Outcome: content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}}, 0)
	want := "finalizer run Greeting [Unset ] ensign.cr=hello ensign.watch=demo.example.com/v1, Kind=Greeting ensign.generation=0 ensign.outcome=Canceled ensign.reason=Canceled"
	if got := line(ended()[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWhatBelongsToNoRunHasNoSpan(t *testing.T) {
	traces, ended := recorded()
	look := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "pods"}
	traces.Request(greeting, aRun.Object, look)(200)
	traces.JobEvent(aRun, jobevent.Event{Kind: jobevent.HostOK, Task: "t"})
	traces.RunEnded(aRun, failure, 0)
	traces.Trace(t.Context(), aRun)
	traces.Request(greeting, "shop/other", look)(200)
	traces.RunEnded(aRun, failure, 0)
	traces.Request(greeting, aRun.Object, look)(200)
	if spans := ended(); len(spans) != 1 {
		t.Errorf("got %d spans, want that of the run", len(spans))
	}
	if len(traces.live) > 0 {
		t.Error("a run that has ended is kept")
	}
}

func TestARunThatIsNotSampledHasNoID(t *testing.T) {
	traces, ended := recorded(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	if _, id := traces.Trace(t.Context(), aRun); id != "" {
		t.Errorf("the log would name the trace %s, which nobody has", id)
	}
	traces.JobEvent(aRun, jobevent.Event{Kind: jobevent.HostOK, Task: "t"})
	traces.RunEnded(aRun, failure, 0)
	if spans := ended(); len(spans) > 0 {
		t.Errorf("got %d spans", len(spans))
	}
}

func TestTextsOfRunsAreFitForSpans(t *testing.T) {
	traces, ended := recorded()
	traces.Trace(t.Context(), aRun)
	for _, name := range []string{"a\xffb", "a\nb\x1b[2J", strings.Repeat("€", 1000)} {
		traces.JobEvent(aRun, jobevent.Event{Kind: jobevent.HostOK, Task: name, Host: name})
		traces.Request(greeting, aRun.Object, &apirequest.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "pods", Name: name})(200)
		traces.Request(greeting, aRun.Object, &apirequest.RequestInfo{Verb: "get", Path: name})(200)
	}
	for _, s := range ended() {
		texts := []string{s.Name()}
		for _, a := range s.Attributes() {
			texts = append(texts, a.Value.String())
		}
		for _, text := range texts {
			if s.Status().Code == codes.Error || !utf8.ValidString(text) || len(text) > 256 || strings.ContainsAny(text, "\n\x1b") {
				t.Errorf("%q", text)
			}
		}
	}
}
