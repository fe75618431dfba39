package metrics

import (
	"cmp"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/pkg/content"
)

// The names of labels are those of the ansible-operator base image.
const (
	labelGVK    = "GVK"
	labelResult = "result"
	labelMode   = "mode"
	labelBy     = "by"
	labelState  = "state"
)

// The values of labelBy.
const (
	byBackoff = "backoff"
	byBucket  = "bucket"
)

// runBuckets are in seconds, from the duration of content that is a function of a Go program to the
// longest default timeout.
var runBuckets = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300, 600, 1800, 3600} //nolint:gochecknoglobals // A constant that Go cannot write as one.

// waitBuckets are in seconds, from no wait to the duration of a run with the longest default
// timeout.
var waitBuckets = []float64{0.01, 0.1, 1, 5, 15, 60, 300, 1800, 3600} //nolint:gochecknoglobals // A constant that Go cannot write as one.

// Metrics has the manager's collectors. It is an observer of runs and of their job events.
type Metrics struct {
	content.ObserverDefaults

	results     *prometheus.CounterVec
	runs        *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	live        *prometheus.GaugeVec
	failedTasks *prometheus.CounterVec
	watchReady  *prometheus.GaugeVec
	watchCold   *prometheus.GaugeVec
	waits       *prometheus.HistogramVec
	followed    *prometheus.GaugeVec
	unknown     *prometheus.CounterVec
	throttled   *prometheus.CounterVec
	slowed      *prometheus.GaugeVec
	unselected  *prometheus.GaugeVec
	registry    prometheus.Registerer
}

// Build is the manager's version and Git commit.
type Build struct{ Version, Commit string }

// New returns Metrics whose collectors are registered with registry.
func New(registry prometheus.Registerer, build Build) (*Metrics, error) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ansible_operator_build_info", Help: "Build of the manager; always 1.",
	}, []string{"commit", "version"})
	info.WithLabelValues(build.Commit, build.Version).Set(1)
	m := &Metrics{
		registry: registry,
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_reconcile_result", Help: "Runs by what they came to.",
		}, []string{labelGVK, labelResult}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_runs_total", Help: "Runs that have ended, by mode: warm ones were forked from servers that have imported Ansible, those of mode job executed in Jobs, and cold ones neither.",
		}, []string{labelGVK, labelMode}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ansible_operator_reconciles", Help: "Duration of whole runs in seconds.", Buckets: runBuckets,
		}, []string{labelGVK}),
		live: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ansible_operator_live_runs", Help: "Runs that execute now.",
		}, []string{labelGVK}),
		failedTasks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ansible_operator_failed_tasks_total", Help: "Tasks that failed on a host, ignored and rescued ones included.",
		}, []string{labelGVK}),
		watchReady: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ansible_operator_watch_ready", Help: "1 while the watched kind is served and its cache is filled.",
		}, []string{labelGVK}),
		watchCold: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ansible_operator_watch_cold", Help: "1 while the runs of the watch stay cold although they may be warm.",
		}, []string{labelGVK}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ansible_operator_slot_wait_seconds", Help: "How long runs waited for a slot, in seconds.", Buckets: waitBuckets,
		}, []string{labelGVK}),
		followed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ansible_operator_watched_kind", Help: "Kinds of children and references that are watched, by state; always 1.",
		}, []string{"purpose", "resource", "namespace", labelState}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ensign_operator_unknown_writes_total", Help: "Writes of runs whose result is not known, by cause.",
		}, []string{"cause"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "ensign_operator_throttled_triggers_total", Help: "How often a resource began to wait with a trigger of its next run: for the pause after a failure (backoff), or because it was triggered too often (bucket).",
		}, []string{labelGVK, labelBy}),
		slowed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ensign_operator_slowed_resources", Help: "Resources whose runs are slowed down because of too many triggers.",
		}, []string{labelGVK}),
		unselected: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ensign_operator_unselected_resources", Help: "Resources that no shard selects, as one of the shards counts them each minute.",
		}, []string{labelGVK}),
	}
	return m, register(registry, m.unselected, m.throttled, m.slowed, info, m.results, m.runs, m.durations, m.live, m.failedTasks, m.watchReady, m.watchCold, m.waits, m.followed, m.unknown)
}

// register registers collectors until one cannot be.
func register(registry prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			return fmt.Errorf("register a metric: %w", err)
		}
	}
	return nil
}

// InitWatch creates the series of a watch before its first run. So a missing kind is shown as not
// ready, and the first run as an increase from 0.
func (m *Metrics) InitWatch(watch schema.GroupVersionKind) {
	m.SetWatchReady(watch, false)
	m.SetWatchCold(watch, false)
	for _, v := range []content.Verdict{content.Succeeded, content.Failed, content.Canceled} {
		m.results.WithLabelValues(watch.String(), resultOf(v))
	}
	m.runs.WithLabelValues(watch.String(), jobevent.StartCold)
	m.runs.WithLabelValues(watch.String(), jobevent.StartWarm)
	m.durations.WithLabelValues(watch.String())
	m.live.WithLabelValues(watch.String())
	m.failedTasks.WithLabelValues(watch.String())
	m.waits.WithLabelValues(watch.String())
	m.throttled.WithLabelValues(watch.String(), byBackoff)
	m.throttled.WithLabelValues(watch.String(), byBucket)
	m.SetSlowed(watch, 0)
	m.SetUnselected(watch, 0)
}

// SetWatchReady sets whether the watched kind is served and its cache is filled.
func (m *Metrics) SetWatchReady(watch schema.GroupVersionKind, ready bool) {
	m.watchReady.WithLabelValues(watch.String()).Set(boolValue(ready))
}

// SetWatchCold sets whether the runs of a watch stay cold although warm runs are enabled.
func (m *Metrics) SetWatchCold(watch schema.GroupVersionKind, cold bool) {
	m.watchCold.WithLabelValues(watch.String()).Set(boolValue(cold))
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// RunStarted implements content.Observer.
func (m *Metrics) RunStarted(run content.Run) {
	m.live.WithLabelValues(run.Watch.String()).Inc()
}

// JobEvent implements engine.Observer.
func (m *Metrics) JobEvent(run content.Run, event jobevent.Event) {
	if event.Kind == jobevent.HostFailed || event.Kind == jobevent.HostUnreachable {
		m.failedTasks.WithLabelValues(run.Watch.String()).Inc()
	}
}

// RunEnded implements content.Observer.
func (m *Metrics) RunEnded(run content.Run, result content.Result, elapsed time.Duration) {
	watch := run.Watch.String()
	m.live.WithLabelValues(watch).Dec()
	if result.Detached { // The next manager counts it.
		return
	}
	m.runs.WithLabelValues(watch, cmp.Or(result.Account.Start, jobevent.StartCold)).Inc()
	m.results.WithLabelValues(watch, resultOf(result.Outcome.Verdict)).Inc()
	m.durations.WithLabelValues(watch).Observe(elapsed.Seconds())
}

func resultOf(v content.Verdict) string {
	switch v {
	case content.Succeeded:
		return "succeeded"
	case content.Canceled:
		return "canceled"
	default:
		return "failed"
	}
}
