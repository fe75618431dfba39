package usermetrics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// post is a metric that a role posts.
type post struct {
	name, description string
	change            change
}

// change is the change of a metric that a post asks for. Each kind of metric has a type for it.
type change interface {
	// kind returns the kind's name in posts.
	kind() string
	// check returns an error if the change is invalid for every metric of the kind.
	check() error
	// collector returns a new metric of the kind.
	collector(name, description string) prometheus.Collector
	// series returns the names of a metric's series. A histogram has several.
	series(name string) []string
	// apply makes the change, which must have passed check, to a metric made by collector.
	apply(metric prometheus.Collector)
}

// parse reads a post. A null member counts as absent. Unknown members of the post are ignored;
// unknown members of its change are errors.
func parse(body io.Reader) (post, error) {
	var read struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Counter     json.RawMessage `json:"counter"`
		Gauge       json.RawMessage `json:"gauge"`
		Histogram   json.RawMessage `json:"histogram"`
		Summary     json.RawMessage `json:"summary"`
	}
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(&read); err != nil {
		return post{}, fmt.Errorf("the body is not a JSON object with a metric: %w", inJSONTerms(err))
	}
	if err := decoder.Decode(new(json.RawMessage)); !errors.Is(err, io.EOF) {
		return post{}, errors.New("the body goes on after its JSON object")
	}
	p := post{name: read.Name, description: read.Description}
	var named []string
	for _, kind := range []struct {
		change change
		body   json.RawMessage
	}{{&counter{}, read.Counter}, {&gauge{}, read.Gauge}, {&observation{metricKind: "histogram"}, read.Histogram}, {&observation{metricKind: "summary"}, read.Summary}} {
		if len(kind.body) == 0 || string(kind.body) == "null" {
			continue
		}
		named = append(named, kind.change.kind())
		if err := decodeStrictly(kind.body, kind.change); err != nil {
			return post{}, fmt.Errorf("%s: %w", kind.change.kind(), err)
		}
		p.change = kind.change
	}
	if len(named) != 1 {
		return post{}, fmt.Errorf("exactly one of counter, gauge, histogram and summary is needed, and there are %d: %s", len(named), strings.Join(named, ", "))
	}
	if err := p.change.check(); err != nil {
		return post{}, fmt.Errorf("%s: %w", p.change.kind(), err)
	}
	return p, nil
}

func decodeStrictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return inJSONTerms(decoder.Decode(into))
}

// inJSONTerms replaces an error about a wrong type by one that names JSON types instead of Go's.
func inJSONTerms(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := map[reflect.Kind]string{reflect.Float64: "a number", reflect.Bool: "true or false", reflect.String: "a string"}[wrong.Type.Kind()]
	if want == "" {
		want = "an object"
	}
	return fmt.Errorf("%s is %s, and has to be %s", cmp.Or(wrong.Field, "it"), wrong.Value, want)
}

// counter is the change of a counter. An empty change only creates the metric.
type counter struct {
	Increment bool     `json:"increment"`
	Add       *float64 `json:"add"`
}

func (*counter) kind() string { return "counter" }

func (c *counter) check() error {
	if c.Add != nil && *c.Add < 0 {
		return fmt.Errorf("add is %v, and a counter can't become less: a gauge can", *c.Add)
	}
	return nil
}

func (*counter) collector(name, description string) prometheus.Collector {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: description})
}

func (*counter) series(name string) []string { return []string{name} }

func (c *counter) apply(metric prometheus.Collector) {
	m, ok := metric.(prometheus.Counter)
	if !ok {
		return // The registry never passes a metric of another kind.
	}
	if c.Increment {
		m.Inc()
	}
	if c.Add != nil {
		m.Add(*c.Add)
	}
}

// gauge is the change of a gauge. Several changes in one post are made in the order of the
// fields. Sub means the same as Subtract.
type gauge struct {
	Increment        bool     `json:"increment"`
	Decrement        bool     `json:"decrement"`
	Add              *float64 `json:"add"`
	Subtract         *float64 `json:"subtract"`
	Sub              *float64 `json:"sub"`
	Set              *float64 `json:"set"`
	SetToCurrentTime bool     `json:"set_to_current_time"`
}

func (*gauge) kind() string { return "gauge" }

func (*gauge) check() error { return nil }

func (*gauge) collector(name, description string) prometheus.Collector {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: description})
}

func (*gauge) series(name string) []string { return []string{name} }

func (g *gauge) apply(metric prometheus.Collector) {
	m, ok := metric.(prometheus.Gauge)
	if !ok {
		return
	}
	if g.Increment {
		m.Inc()
	}
	if g.Decrement {
		m.Dec()
	}
	for _, step := range []struct {
		value *float64
		do    func(float64)
	}{{g.Add, m.Add}, {g.Subtract, m.Sub}, {g.Sub, m.Sub}, {g.Set, m.Set}} {
		if step.value != nil {
			step.do(*step.value)
		}
	}
	if g.SetToCurrentTime {
		m.SetToCurrentTime()
	}
}

// observation is a value for a histogram, which has Prometheus' default buckets, or for a summary,
// which has no quantiles. The value is 0 if the post has none.
type observation struct {
	Observe    float64 `json:"observe"`
	metricKind string
}

func (o *observation) kind() string { return o.metricKind }

func (*observation) check() error { return nil }

func (o *observation) collector(name, description string) prometheus.Collector {
	if o.metricKind == "summary" {
		return prometheus.NewSummary(prometheus.SummaryOpts{Name: name, Help: description})
	}
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: description, Buckets: prometheus.DefBuckets})
}

func (o *observation) series(name string) []string {
	parts := []string{name, name + "_sum", name + "_count"}
	if o.metricKind == "histogram" {
		parts = append(parts, name+"_bucket")
	}
	return slices.Clip(parts)
}

func (o *observation) apply(metric prometheus.Collector) {
	if m, ok := metric.(prometheus.Observer); ok {
		m.Observe(o.Observe)
	}
}
