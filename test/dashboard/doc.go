// Package dashboard reads Grafana's dashboards. Prometheus' own parser checks their
// queries; the package says which series they ask for. It evaluates nothing.
package dashboard
