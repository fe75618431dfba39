// Package collector takes traces by OTLP over HTTP, as a collector of OpenTelemetry does, and keeps
// their spans.
package collector

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a server at URL until it is closed.
type Collector struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*http.Request
	resource map[string]any
	spans    []*tracepb.Span
	refuse   func(http.ResponseWriter, *http.Request) bool
}

// Start starts a Collector.
func Start() *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(c)
	return c
}

// Refuse makes the Collector ask f first, which has answered where it returns true.
func (c *Collector) Refuse(f func(http.ResponseWriter, *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = f
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	refuse := c.refuse
	c.mu.Unlock()
	if refuse != nil && refuse(w, r) {
		return
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	traces := &tracepb.TracesData{}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(text, traces) != nil {
		http.Error(w, "this is no export of traces", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	for _, of := range traces.GetResourceSpans() {
		c.resource = Attributes(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
}

// Spans returns the spans that have come, in this order.
func (c *Collector) Spans() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*tracepb.Span{}, c.spans...)
}

// Requests returns the requests that brought them.
func (c *Collector) Requests() []*http.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*http.Request{}, c.requests...)
}

// Resource returns the attributes of the process that has sent the last spans.
func (c *Collector) Resource() map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}

// Attributes returns texts, numbers and truth values by their names.
func Attributes(list []*commonpb.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch value := a.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.GetKey()] = value.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.GetKey()] = value.IntValue
		case *commonpb.AnyValue_BoolValue:
			all[a.GetKey()] = value.BoolValue
		}
	}
	return all
}
