// Package alerts tests the alerts of config/prometheus with promtool on what real managers export,
// and the queries of config/grafana with a real Prometheus that reads a manager.
//
// A suite brings managers into the situations that the alerts are for, and keeps what they export
// there. promtool then sees these series for minutes, hours or a day: nobody waits for an alert.
package alerts
