package operator

import (
	"cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/observe/traces"
	"github.com/ensign-operator/ensign/internal/runapi"
)

// traceRuns makes the traces of runs, if the program or the environment says where they go.
func (c *components) traceRuns() {
	provider := c.options.TracerProvider
	if provider == nil {
		own := traces.FromEnvironment(cmp.Or(c.options.Env.OperatorVersion(), c.options.Version), c.options.Logger.WithName("traces"))
		if own == nil {
			return
		}
		c.undo = append(c.undo, own.Close)
		provider = own
	}
	c.traces = traces.New(provider)
	c.observers = append(c.observers, c.traces)
}

// observeRequest returns the function that traces the requests of runs; nil if tracing is off.
func (c *components) observeRequest() proxy.RequestObserver {
	if c.traces == nil {
		return nil
	}
	return runapi.TraceRequests(c.traces)
}
