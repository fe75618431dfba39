package traces

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/wait"
)

// sender sends spans by OTLP over HTTP. It implements otlptrace.Client.
type sender struct {
	client http.Client
	url    string
	header http.Header
	gzip   bool
	log    logr.Logger
	// retries are the pauses between the attempts to send a batch.
	retries wait.Backoff
	// failing is true while the collector takes no spans.
	failing atomic.Bool
	// ended is done when nothing is sent any more.
	ended context.Context //nolint:containedctx // It is the lifetime of the sender, which outlives every call.
	end   context.CancelFunc
}

// newSender returns a sender to the URL, as the exporter's other variables ask for.
func newSender(address string, log logr.Logger) (*sender, error) {
	to, err := url.Parse(address)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" { // It may have a password.
		return nil, errors.New("the endpoint in OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL such as http://collector:4318")
	}
	s := &sender{url: address, log: log.WithValues("collector", to.Redacted()), retries: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5}}
	s.ended, s.end = context.WithCancel(context.Background())
	if name, value := variable("PROTOCOL"); value != "" && value != "http/protobuf" {
		return nil, invalid(name, value, "http/protobuf, which collectors take at port 4318")
	}
	if s.header, err = headers(); err != nil {
		return nil, err
	}
	compression, value := variable("COMPRESSION")
	if s.gzip = value == "gzip"; !s.gzip && value != "" && value != "none" {
		return nil, invalid(compression, value, "gzip or none")
	}
	timeout, value := variable("TIMEOUT")
	milliseconds, err := strconv.ParseUint(cmp.Or(value, "10000"), 10, 31)
	if err != nil {
		return nil, invalid(timeout, value, "a number of milliseconds")
	}
	s.client.Timeout = time.Duration(milliseconds) * time.Millisecond
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // It is one.
	if transport.TLSClientConfig, err = tlsConfig(); err != nil {
		return nil, err
	}
	s.client.Transport = transport
	// Headers that are secrets would go to another host, and spans nowhere.
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s, nil
}

// headers returns the headers of each request. A message has none of their values: they are secrets.
func headers() (http.Header, error) {
	header := http.Header{}
	name, list := variable("HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		key, value, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if strings.TrimSpace(pair) == "" {
			continue
		}
		if !found || err != nil {
			return nil, fmt.Errorf("environment variable %s: allowed are NAME=VALUE, joined by commas, with values as in a URL", name)
		}
		header.Set(strings.TrimSpace(key), decoded)
	}
	header.Set("Content-Type", "application/x-protobuf")
	return header, nil
}

// tlsConfig returns how the collector's certificate is verified, and the sender's own.
func tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if name, file := variable("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		config.RootCAs = x509.NewCertPool()
		if err != nil || !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.Join(invalid(name, file, "a file with certificates in PEM"), err)
		}
	}
	name, certificate := variable("CLIENT_CERTIFICATE")
	if keyName, key := variable("CLIENT_KEY"); certificate != "" || key != "" {
		if certificate == "" || key == "" {
			return nil, fmt.Errorf("one of the environment variables %s and %s is set, and the other is not: allowed are both or none", name, keyName)
		}
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s, and CLIENT_KEY beside it: %w", name, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Start implements otlptrace.Client.
func (*sender) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (s *sender) Stop(context.Context) error {
	s.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It returns no error, because OpenTelemetry's library would
// log each one: the log says once that the collector takes no spans, and once that it does again.
func (s *sender) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// It has the bytes of an ExportTraceServiceRequest, whose package imports gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		s.report(err)
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ended, cancel)()
	body = s.compress(body)
	ended := wait.ExponentialBackoffWithContext(ctx, s.retries, func(ctx context.Context) (done bool, _ error) {
		var pause time.Duration
		pause, err = s.post(ctx, body)
		return pause < 0 || !sleep(ctx, pause), nil
	})
	s.report(cmp.Or(err, ended)) // Nothing was sent if ctx had ended before.
	return nil
}

func (s *sender) compress(body []byte) []byte {
	if !s.gzip {
		return body
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write(body) // A buffer takes everything.
	_ = w.Close()
	return small.Bytes()
}

// sleep reports whether it was not ended by ctx.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// never is the pause after which there is nothing to repeat, and maxPause the longest that a collector gets.
const (
	never    = -1
	maxPause = 20 * time.Second
)

// post sends once. If the same may succeed later, it returns for how long the collector wants to be left alone,
// otherwise never.
func (s *sender) post(ctx context.Context, body []byte) (pause time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return never, fmt.Errorf("send traces: %w", err)
	}
	request.Header = s.header.Clone()
	if s.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // To its end, so that the connection can be used again.
	if response.StatusCode < 300 {
		return never, rejected(answer)
	}
	err = fmt.Errorf("the collector answered %s", response.Status)
	if !slices.Contains([]int{429, 502, 503, 504}, response.StatusCode) {
		return never, err
	}
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // A date is not a pause.
	return min(time.Duration(seconds)*time.Second, maxPause), err
}

// rejected returns the collector's message about spans that it did not take though it takes others:
// the field 1 of an ExportTraceServiceResponse, whose package imports gRPC. In it are their number,
// field 1, and a message, field 2.
func rejected(response []byte) error {
	partial, _ := protowire.ConsumeBytes(fieldOf(response, 1))
	spans, _ := protowire.ConsumeVarint(fieldOf(partial, 1))
	message, _ := protowire.ConsumeString(fieldOf(partial, 2))
	if spans == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %q", spans, text(message))
}

// fieldOf returns the bytes of a message from the value of a field on; none if it has no such field.
func fieldOf(message []byte, field protowire.Number) []byte {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		value := protowire.ConsumeFieldValue(number, kind, message[max(tag, 0):])
		switch {
		case tag < 0 || value < 0:
			return nil
		case number == field:
			return message[tag:]
		}
		message = message[tag+value:]
	}
	return nil
}

// report logs a change.
func (s *sender) report(err error) {
	switch before := s.failing.Swap(err != nil); {
	case err != nil && !before:
		s.log.Info("WARNING: the collector does not take all traces; what it does not take is lost, and this is logged once", "reason", err.Error())
	case err == nil && before:
		s.log.Info("the collector takes all traces again")
	}
}
