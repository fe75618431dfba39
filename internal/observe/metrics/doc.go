// Package metrics has the manager's own Prometheus metrics, most of them about runs and their
// outcomes. It observes job events and does not influence runs. No label has text of a CR's spec
// or of a task.
//
// The package does not serve the metrics. It does not repeat metrics that controller-runtime and
// operator-lib have.
package metrics
