package traces

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// closeTimeout bounds how long the end of the manager waits for the collector.
const closeTimeout = 2 * time.Second

// Provider makes spans, and sends them to a collector.
type Provider struct {
	*sdktrace.TracerProvider

	sender *sender
}

// FromEnvironment returns the provider that OpenTelemetry's standard variables ask for; nil if they
// name no collector, or switch traces off. Settings with which nothing can be sent are in the log: no
// operator stays down for its traces. The variables are those of the process, because
// OpenTelemetry's library reads some of them itself.
func FromEnvironment(version string, log logr.Logger) *Provider {
	exporter := os.Getenv("OTEL_TRACES_EXPORTER")
	address := endpoint()
	if address == "" || exporter == "none" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil
	}
	if exporter != "" && exporter != "otlp" {
		log.Info("WARNING: no traces are sent: OTEL_TRACES_EXPORTER names an exporter other than otlp and none", "exporter", exporter)
		return nil
	}
	s, err := newSender(address, log)
	if err != nil {
		log.Info("WARNING: no traces are sent", "reason", err.Error())
		return nil
	}
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", "ensign"), attribute.String("service.version", version)), resource.WithFromEnv()) // The last one wins.
	if err != nil {
		log.Info("WARNING: invalid OTEL_RESOURCE_ATTRIBUTES", "reason", err.Error())
	}
	checkSampler(log)
	s.log.Info("runs are traced")
	return &Provider{sdktrace.NewTracerProvider(sdktrace.WithBatcher(otlptrace.NewUnstarted(s), sizes(log)...), sdktrace.WithResource(about)), s}
}

// checkSampler logs an error that the library does not report: it traces every run then.
func checkSampler(log logr.Logger) {
	sampler := strings.ToLower(strings.TrimSpace(os.Getenv("OTEL_TRACES_SAMPLER")))
	ratio, err := strconv.ParseFloat(strings.TrimSpace(cmp.Or(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), "1")), 64)
	switch sampler {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
	case "traceidratio", "parentbased_traceidratio":
		if err != nil || ratio < 0 || ratio > 1 {
			log.Info("WARNING: all runs are traced: OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1", "value", os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
		}
	default:
		log.Info("WARNING: all runs are traced, because OTEL_TRACES_SAMPLER has an unknown value; allowed are always_on, always_off, traceidratio and the same with the prefix parentbased_", "value", sampler)
	}
}

// maxSize is far beyond the spans that a manager should keep.
const maxSize = 1 << 20

// sizes returns the sizes of the queue and of batches. The library takes them from the environment too, but ends
// the process for some numbers.
func sizes(log logr.Logger) []sdktrace.BatchSpanProcessorOption {
	size := func(variable string, usual int) int {
		value := os.Getenv(variable)
		if value == "" {
			return usual
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxSize {
			log.Info("WARNING: a setting of traces is not used: allowed is a number from 1 to "+strconv.Itoa(maxSize), "variable", variable, "value", value)
			return usual
		}
		return n
	}
	queue := size("OTEL_BSP_MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize)
	batch := size("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize)
	return []sdktrace.BatchSpanProcessorOption{sdktrace.WithMaxQueueSize(queue), sdktrace.WithMaxExportBatchSize(min(batch, queue))}
}

// Close sends the remaining spans, for a short time.
func (p *Provider) Close() {
	late := time.AfterFunc(closeTimeout, p.sender.end)
	defer late.Stop()
	_ = p.Shutdown(context.Background()) // The sender has logged failures, and its end ends this too.
	p.sender.end()
}

// endpoint returns the URL to which spans are sent; "" if none is set.
func endpoint() string {
	if address := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); address != "" {
		return address
	}
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); base != "" {
		return strings.TrimRight(base, "/") + "/v1/traces"
	}
	return ""
}

// variable returns the value of a setting of the exporter, and the name of the variable that has it.
// That for traces alone goes first.
func variable(setting string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + setting
	if value = os.Getenv(name); value == "" {
		name = "OTEL_EXPORTER_OTLP_" + setting
		value = os.Getenv(name)
	}
	return name, value
}

// invalid is the error of a variable.
func invalid(name, value, allowed string) error {
	return fmt.Errorf("environment variable %s=%s: allowed is %s", name, value, allowed)
}
