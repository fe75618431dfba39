package operator

import (
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/pkg/options"
)

// Where nobody asks for traces, nothing is called at a run or a request. The provider of a program is
// taken before one of the environment, and the manager does not end it.
func TestWhoMakesSpans(t *testing.T) {
	with := func(o options.Options) *components {
		c := &components{Manager: &Manager{options: config.Options{Options: o}}}
		c.traceRuns()
		return c
	}
	if c := with(options.Options{}); c.traces != nil || c.observeRequest() != nil || len(c.observers)+len(c.undo) > 0 {
		t.Errorf("without any setting: %+v", c)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	c := with(options.Options{})
	if c.traces == nil || c.observeRequest() == nil || len(c.observers) != 1 || len(c.undo) != 1 {
		t.Errorf("with an endpoint: %+v", c)
	}
	c.undo[0]()
	if c := with(options.Options{TracerProvider: noop.NewTracerProvider()}); c.traces == nil || c.observeRequest() == nil || len(c.observers) != 1 || len(c.undo) > 0 {
		t.Errorf("with a provider of the program: %+v", c)
	}
}
