package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
)

type traceKey struct{}

// tracer is an observer that records traces, and keeps what it is told of.
type tracer struct {
	content.ObserverDefaults

	id   string
	told []string
}

func (o *tracer) Trace(ctx context.Context, run content.Run) (context.Context, string) {
	o.told = append(o.told, "trace"+run.TraceID)
	return context.WithValue(ctx, traceKey{}, true), o.id
}

func (o *tracer) RunStarted(run content.Run) { o.told = append(o.told, "started"+run.TraceID) }

func (o *tracer) RunEnded(run content.Run, _ content.Result, _ time.Duration) {
	o.told = append(o.told, "ended"+run.TraceID)
}

// All observers of a run, and the reader of its Event, learn the ID of its trace. The content runs
// within the trace.
func TestARunHasATrace(t *testing.T) {
	b := newBench(t, finalizerWatch(), widget(), interceptor.Funcs{})
	o := &tracer{id: "-4bf9"}
	b.Observers = append(b.Observers, o)
	b.runner.run = func(ctx context.Context, _ runner.Spec) runner.Result {
		if within, _ := ctx.Value(traceKey{}).(bool); !within {
			t.Error("the content does not run within the trace")
		}
		r := fail(ctx, runner.Spec{})
		r.Outcome.Message = strings.Repeat("€", 1000)
		return r
	}
	b.mustReconcile()
	wantEqual(t, []string{"trace", "started-4bf9", "ended-4bf9"}, o.told)
	event := b.events()[0]
	note := strings.TrimPrefix(event, "Warning Failed ")
	if !strings.HasSuffix(note, "€… (trace -4bf9)") || len(note) > maxNote {
		t.Errorf("%d bytes: %s", len(note), note)
	}

	o.id, b.runner.run = "", succeed
	b.mustReconcileDue()
	wantEqual(t, []string{"started", "ended"}, o.told[len(o.told)-2:])
	wantEqual(t, []string{"Normal Succeeded The last reconciliation succeeded"}, b.events())
}
