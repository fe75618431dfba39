package traces

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/terminal"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Traces is a content.Observer that also records tasks and requests. It is safe for concurrent use.
type Traces struct {
	content.ObserverDefaults

	tracer trace.Tracer

	mu   sync.Mutex
	live map[subject]trace.Span
}

// subject names a CR by the fields of content.Run. A CR has at most one run at a time.
type subject struct {
	watch  schema.GroupVersionKind
	object string
}

// New returns Traces that makes its spans by the provider.
func New(provider trace.TracerProvider) *Traces {
	return &Traces{tracer: provider.Tracer("github.com/ensign-operator/ensign"), live: map[subject]trace.Span{}}
}

// Trace implements content.Observer: it begins the span of a run.
func (t *Traces) Trace(ctx context.Context, run content.Run) (traced context.Context, id string) {
	name := "run " + run.Watch.Kind
	if run.Finalizer {
		name = "finalizer " + name
	}
	namespace, _ := path.Split(run.Object)
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(texts(
		"k8s.namespace.name", strings.TrimSuffix(namespace, "/"), "ensign.cr", run.Object, "ensign.watch", run.Watch.String(), "ensign.trigger", run.Trigger, "ensign.run", run.ID,
	)...), trace.WithAttributes(attribute.Int64("ensign.generation", run.Generation)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[subject{run.Watch, run.Object}] = span
	if !span.SpanContext().IsSampled() { // It is not sent.
		return ctx, ""
	}
	return ctx, span.SpanContext().TraceID().String()
}

// below returns a context in which spans belong to the CR's current run; false if there is none.
func (t *Traces) below(watch schema.GroupVersionKind, object string) (context.Context, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	span, lives := t.live[subject{watch, object}]
	if !lives {
		return nil, false
	}
	return trace.ContextWithSpan(context.Background(), span), true
}

// RunEnded implements content.Observer: it ends the span of the run.
func (t *Traces) RunEnded(run content.Run, result content.Result, _ time.Duration) {
	t.mu.Lock()
	span, lives := t.live[subject{run.Watch, run.Object}]
	delete(t.live, subject{run.Watch, run.Object})
	t.mu.Unlock()
	if !lives {
		return
	}
	reason := string(result.Outcome.Reason)
	span.SetAttributes(texts("ensign.outcome", string(result.Outcome.Verdict), "ensign.reason", reason, "ensign.mode", result.Account.Start, "ensign.version", result.Version.Name)...)
	for _, n := range result.Account.Numbers {
		span.SetAttributes(attribute.Int("ensign."+n.Name, n.Value))
	}
	if result.Outcome.Verdict == content.Failed {
		span.SetStatus(codes.Error, reason) // The message may have results of tasks.
		span.SetAttributes(attribute.String("error.type", reason))
	}
	span.End()
}

// JobEvent implements engine.Observer: it records a task that has ended on a host.
func (t *Traces) JobEvent(run content.Run, e jobevent.Event) {
	outcome := eventlog.TaskOutcome(e)
	ctx, lives := t.below(run.Watch, run.Object)
	if outcome == "" || !lives {
		return
	}
	ended := e.Created
	if ended.IsZero() {
		ended = time.Now()
	}
	_, span := t.tracer.Start(ctx, cmp.Or(text(e.TaskName()), "task"), trace.WithTimestamp(ended.Add(-e.Duration)), trace.WithAttributes(texts(
		"ensign.host", e.Host, "ensign.outcome", outcome, "ensign.module", e.ResolvedAction, "ensign.path", e.TaskPath,
	)...))
	if e.Kind == jobevent.HostUnreachable || e.Kind == jobevent.HostFailed && !e.IgnoreErrors {
		span.SetStatus(codes.Error, outcome)
	}
	span.End(trace.WithTimestamp(ended))
}

// Request begins the span of a request that a run of a CR sends to the API. ended ends it,
// with the status code of the response; 0 if that is not known.
func (t *Traces) Request(watch schema.GroupVersionKind, object string, q *apirequest.RequestInfo) (ended func(code int)) {
	ctx, lives := t.below(watch, object)
	if !lives { // Content looks whether there is anything to do.
		return func(int) {}
	}
	resource := schema.GroupResource{Group: q.APIGroup, Resource: strings.TrimSuffix(q.Resource+"/"+q.Subresource, "/")}.String()
	about := texts("k8s.namespace.name", q.Namespace, "ensign.resource", resource, "ensign.name", q.Name)
	if !q.IsResourceRequest {
		resource, about = q.Path, texts("url.path", q.Path)
	}
	_, span := t.tracer.Start(ctx, text(q.Verb+" "+resource), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(about...))
	return func(code int) {
		if code != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", code))
		}
		if code >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// texts returns attributes of their names and values, without those that have none.
func texts(pairs ...string) (attributes []attribute.KeyValue) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			attributes = append(attributes, attribute.String(pair[0], text(pair[1])))
		}
	}
	return attributes
}

// text returns a text of a run fit for a span: on one line, in UTF-8, and not long.
func text(of string) string {
	const most = 256
	of = terminal.OneLine(of)
	return strings.ToValidUTF8(of[:min(len(of), most)], "")
}
