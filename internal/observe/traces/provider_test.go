package traces

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/test/harness/collector"
)

// newCollector starts a collector to which the variables lead, with others.
func newCollector(t *testing.T, variables ...string) *collector.Collector {
	t.Helper()
	c := collector.Start()
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	return c
}

// journal keeps what is logged.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, line)
	}, funcr.Options{})
}

func (j *journal) all() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// record records so many runs.
func record(ctx context.Context, p *Provider, runs int) {
	traces := New(p)
	for range runs {
		traces.Trace(ctx, aRun)
		traces.RunEnded(aRun, failure, 0)
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	for why, c := range map[string]struct {
		variables    []string
		header, want string
		resource     map[string]any
	}{
		"by default": {resource: map[string]any{"service.name": "ensign", "service.version": "1.2"}},
		"with all that may be said": {
			variables: []string{"OTEL_SERVICE_NAME=mine", "OTEL_RESOURCE_ATTRIBUTES=k8s.pod.name=p", "OTEL_EXPORTER_OTLP_HEADERS=a=b, Authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_TRACES_EXPORTER=otlp", "OTEL_SDK_DISABLED=false"},
			header:    "Authorization", want: "Bearer x", resource: map[string]any{"service.name": "mine", "k8s.pod.name": "p"},
		},
		"what is for traces alone first": {variables: []string{"OTEL_EXPORTER_OTLP_HEADERS=a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=c", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"}, header: "A", want: "c"},
	} {
		t.Run(why, func(t *testing.T) {
			to, log := newCollector(t, c.variables...), &journal{}
			p := FromEnvironment("1.2", log.logger())
			record(t.Context(), p, 3)
			p.Close()
			spans := to.Spans()
			if len(spans) != 3 || spans[0].GetName() != "run Greeting" || spans[0].GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || spans[0].GetStatus().GetMessage() != "Timeout" {
				t.Errorf("got %v; the log: %s", spans, log.all())
			}
			if r := to.Requests(); len(r) != 1 || c.header != "" && r[0].Header.Get(c.header) != c.want {
				t.Errorf("got %d requests, want one with %s: %s", len(r), c.header, c.want)
			}
			for name, want := range c.resource {
				if diff := cmp.Diff(want, to.Resource()[name]); diff != "" {
					t.Errorf("%s (-want +got)\n%s", name, diff)
				}
			}
			if strings.Contains(log.all(), "Bearer") || strings.Contains(log.all(), "WARNING") {
				t.Error(log.all())
			}
		})
	}
}

// The library would end the process for some, and say nothing of the others.
func TestSettingsThatAreNotUsed(t *testing.T) {
	for variable, want := range map[string]string{
		"OTEL_BSP_MAX_QUEUE_SIZE=-1":                "OTEL_BSP_MAX_QUEUE_SIZE",
		"OTEL_BSP_MAX_QUEUE_SIZE=99999999999":       "OTEL_BSP_MAX_QUEUE_SIZE",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=-1":         "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=many":       "from 1 to",
		"OTEL_TRACES_SAMPLER=jaeger_remote":         "all runs are traced, because OTEL_TRACES_SAMPLER has an unknown value; allowed",
		"OTEL_TRACES_SAMPLER=TraceIDRatio,10%":      "OTEL_TRACES_SAMPLER_ARG is not a number",
		"OTEL_TRACES_SAMPLER=traceidratio,1":        "",
		"OTEL_TRACES_SAMPLER=parentbased_always_on": "",
	} {
		t.Run(variable, func(t *testing.T) {
			setting, argument, _ := strings.Cut(variable, ",")
			to, log := newCollector(t, setting, "OTEL_TRACES_SAMPLER_ARG="+argument), &journal{}
			p := FromEnvironment("", log.logger())
			record(t.Context(), p, 2)
			p.Close()
			if n := len(to.Spans()); n != 2 || strings.Contains(log.all(), "WARNING") != (want != "") || !strings.Contains(log.all(), want) {
				t.Errorf("%d spans; the log: %s", n, log.all())
			}
		})
	}
}

// A collector elsewhere would get headers that are secrets.
func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere, to, log := collector.Start(), newCollector(t, "OTEL_EXPORTER_OTLP_HEADERS=X-Api-Key=canary"), &journal{}
	t.Cleanup(elsewhere.Close)
	to.Refuse(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		return true
	})
	p := quick(t, log)
	record(t.Context(), p, 1)
	flush(t, p)
	if len(elsewhere.Requests()) != 0 || !strings.Contains(log.all(), "the collector answered 307") {
		t.Errorf("%d requests elsewhere; the log: %s", len(elsewhere.Requests()), log.all())
	}
}

func TestACollectorSaysWhenToRepeat(t *testing.T) {
	to, log := newCollector(t), &journal{}
	to.Refuse(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	p := quick(t, log)
	if pause, err := p.sender.post(t.Context(), nil); pause != 2*time.Second || err == nil {
		t.Error(pause, err)
	}
}

type roundTrip func() *http.Response

func (r roundTrip) RoundTrip(*http.Request) (*http.Response, error) { return r(), nil }

// The time is a bubble's, which nothing from outside reaches: so the collector is one function.
func TestNothingIsSentBeforeTheCollectorWantsIt(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
	synctest.Test(t, func(t *testing.T) {
		var requests []time.Time
		p := FromEnvironment("", logr.Discard())
		p.sender.client.Transport = roundTrip(func() *http.Response {
			requests = append(requests, time.Now())
			answer := &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}
			if len(requests) == 1 {
				answer.StatusCode, answer.Header = http.StatusTooManyRequests, http.Header{"Retry-After": {"15"}}
			}
			return answer
		})
		_ = p.sender.UploadTraces(t.Context(), nil)
		if len(requests) != 2 || requests[1].Sub(requests[0]) < 15*time.Second {
			t.Error(requests)
		}
		p.Close()
	})
}

func TestTheEndpointOfTracesIsTakenAsItIs(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/base/")
	if got := endpoint(); got != "http://a:4318/base/v1/traces" {
		t.Error(got)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/traces")
	if got := endpoint(); got != "http://b/traces" {
		t.Error(got)
	}
}

// No operator stays down because of its traces, and no message has a secret.
func TestSettingsWithoutTraces(t *testing.T) {
	for why, c := range map[string]struct {
		variables []string
		want      string
	}{
		"nothing is set":         {},
		"nothing but a name":     {[]string{"OTEL_SERVICE_NAME=a"}, ""},
		"switched off":           {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_SDK_DISABLED=True"}, ""},
		"metrics alone":          {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_TRACES_EXPORTER=none"}, ""},
		"another exporter":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_TRACES_EXPORTER=zipkin"}, "OTEL_TRACES_EXPORTER"},
		"gRPC":                   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"no scheme":              {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=me:canary@a:4318"}, "http://collector:4318"},
		"no host":                {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http:///canary"}, "http://collector:4318"},
		"headers":                {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_HEADERS=canary"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		"an escape of a header":  {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=%zcanary"}, "OTEL_EXPORTER_OTLP_TRACES_HEADERS"},
		"compression":            {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd"}, "gzip or none"},
		"a timeout":              {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, "milliseconds"},
		"no file":                {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca"}, "/nowhere/ca"},
		"no certificates":        {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_CERTIFICATE=" + textFile}, "PEM"},
		"no certificate of ours": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://a", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=" + textFile}, "CLIENT_KEY"},
	} {
		t.Run(why, func(t *testing.T) {
			for _, v := range c.variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, strings.ReplaceAll(value, textFile, plainFile(t)))
			}
			log := &journal{}
			if p := FromEnvironment("", log.logger()); p != nil {
				p.Close()
				t.Error("traces are on")
			}
			if got := log.all(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Contains(got, "canary") {
				t.Errorf("the log: %q", got)
			}
		})
	}
}

// textFile stands for the path of a file that has no certificate.
const textFile = "FILE"

func plainFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// quick returns a provider that repeats without a pause.
func quick(t *testing.T, log *journal) *Provider {
	t.Helper()
	p := FromEnvironment("", log.logger())
	p.sender.retries.Duration = time.Microsecond
	t.Cleanup(p.Close)
	return p
}

// flush sends what is there.
func flush(t *testing.T, p *Provider) {
	t.Helper()
	if err := p.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatMaySucceedLaterIsSentAgain(t *testing.T) {
	for _, c := range []struct{ code, attempts int }{{429, 2}, {502, 2}, {503, 2}, {504, 2}, {400, 1}, {500, 1}} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			to, log := newCollector(t), &journal{}
			var attempts atomic.Int64
			to.Refuse(func(w http.ResponseWriter, _ *http.Request) bool {
				if attempts.Add(1) == 1 {
					http.Error(w, "canary", c.code)
					return true
				}
				return false
			})
			p := quick(t, log)
			record(t.Context(), p, 1)
			flush(t, p)
			if n := int(attempts.Load()); n != c.attempts || len(to.Spans()) != c.attempts-1 {
				t.Errorf("%d attempts, %d spans", n, len(to.Spans()))
			}
			if lost := c.attempts == 1; lost != strings.Contains(log.all(), fmt.Sprint(c.code)) || strings.Contains(log.all(), "canary") {
				t.Errorf("the log: %s", log.all())
			}
		})
	}
}

// A collector may say 200 and take some spans only.
func TestACollectorThatRejectsSpans(t *testing.T) {
	to, log := newCollector(t), &journal{}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "too\nold")
	answers := map[string][]byte{
		"all":     nil,
		"some":    protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial),
		"none":    protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil),
		"garbage": {0x0a, 0xff},
	}
	p := quick(t, log)
	for _, answer := range []string{"all", "none", "garbage", "some", "all"} {
		to.Refuse(func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write(answers[answer])
			return true
		})
		record(t.Context(), p, 1)
		flush(t, p)
	}
	if got := log.all(); strings.Count(got, "the collector rejected 3 spans") != 1 || strings.Count(got, "WARNING") != 1 || !strings.Contains(got, "takes all traces again") {
		t.Errorf("the log:\n%s", got)
	}
}

// A collector that takes nothing is in the log once, however often spans are sent to it, and so is its
// return.
func TestACollectorThatIsAwayIsLoggedOnce(t *testing.T) {
	to, log := newCollector(t), &journal{}
	p := quick(t, log)
	refuse := func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "", http.StatusServiceUnavailable)
		return true
	}
	for range 2 {
		to.Refuse(refuse)
		for range 5 {
			record(t.Context(), p, 1)
			flush(t, p)
		}
		to.Refuse(nil)
		for range 5 {
			record(t.Context(), p, 1)
			flush(t, p)
		}
	}
	if len(to.Spans()) != 10 {
		t.Errorf("got %d spans, want those that were taken", len(to.Spans()))
	}
	if got := log.all(); strings.Count(got, "WARNING") != 2 || strings.Count(got, "takes all traces again") != 2 || strings.Count(got, "\n") != 4 {
		t.Errorf("the log:\n%s", got)
	}
}

// While a collector does not answer, runs go on, and what waits for it is bounded. The end of the
// manager does not wait for long either.
func TestACollectorThatHangs(t *testing.T) {
	to, log := newCollector(t, "OTEL_BSP_SCHEDULE_DELAY=1"), &journal{}
	gone := make(chan struct{}, 9)
	to.Refuse(func(_ http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // Until then, the server does not notice that its client goes.
		<-r.Context().Done()
		gone <- struct{}{}
		return true
	})
	p := FromEnvironment("", log.logger())
	record(t.Context(), p, 5_000) // It would hang if a run waited for the collector.
	p.Close()
	<-gone
	if got := log.all(); strings.Count(got, "WARNING") != 1 {
		t.Errorf("the log:\n%s", got)
	}
}

func TestOfWhatWaitsMuchIsDropped(t *testing.T) {
	to, log := newCollector(t, "OTEL_BSP_SCHEDULE_DELAY=1"), &journal{}
	release := make(chan struct{})
	to.Refuse(func(http.ResponseWriter, *http.Request) bool {
		<-release
		return false
	})
	p := quick(t, log)
	record(t.Context(), p, 5_000)
	close(release)
	flush(t, p)
	const most = 2048 + 2*512 // The queue's, those of a batch that is sent, and those of the next one.
	if n := len(to.Spans()); n == 0 || n > most {
		t.Errorf("%d spans were kept, want %d at most", n, most)
	}
}

// BenchmarkARun is what traces add to a run of 20 tasks and 60 requests: 0.8 ms of processor time, with
// that of the collector, which is in the same process.
func BenchmarkARun(b *testing.B) {
	to := collector.Start()
	b.Cleanup(to.Close)
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	p := FromEnvironment("", logr.Discard())
	traces := New(p)
	event := jobevent.Event{Kind: jobevent.HostOK, Role: "greeting", Task: "Write the greeting", Host: "localhost", ResolvedAction: "kubernetes.core.k8s", TaskPath: "/opt/ansible/roles/greeting/tasks/main.yml:9"}
	request := &apirequest.RequestInfo{IsResourceRequest: true, Verb: "patch", APIGroup: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}
	b.ReportAllocs()
	for b.Loop() {
		traces.Trace(b.Context(), aRun)
		for range 20 {
			traces.JobEvent(aRun, event)
			for range 3 {
				traces.Request(greeting, aRun.Object, request)(200)
			}
		}
		traces.RunEnded(aRun, failure, 0)
	}
	p.Close()
}
