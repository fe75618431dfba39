// Package traces records runs as OpenTelemetry traces: a span for each run, and below it one for
// each task and one for each request that the run sends to the API. All spans are made by the
// manager, also those of runs in Jobs.
//
// FromEnvironment makes the provider that sends spans to a collector, by OTLP over HTTP. A
// collector that is away costs spans: it does not delay a run, and the queue of waiting spans is
// bounded.
//
// A span has the same fields as the lines of the log: the names of a CR, of tasks and of objects.
// It has no value of a CR, no result of a task and no message of a failure.
//
// The package does not influence runs, and sets nothing that is global in OpenTelemetry's library.
//
// # Gotchas
//
//   - OpenTelemetry's own exporter for HTTP imports gRPC, and that an engine of templates, because of
//     which the linker keeps each method of each type: the manager would grow from 44 MB to 73 MB.
//   - One text that is not UTF-8 would cost all spans that are sent with it: see text.
package traces
