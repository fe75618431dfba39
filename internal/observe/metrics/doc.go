// Package metrics counts what runs come to. It observes job events and never
// influences a run. No label carries text of a CR's spec or of a task.
//
// It does not serve the metrics and does not count what controller-runtime and
// operator-lib count already.
package metrics
