// Package dashboard reads Grafana's dashboards and the PromQL in them: is it well-formed,
// and which series does it ask for?
//
// It knows as much of PromQL as the dashboards below config/ use, and refuses what it
// does not know. It does not evaluate anything.
package dashboard
