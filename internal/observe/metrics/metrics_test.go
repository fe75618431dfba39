package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/pkg/content"
)

// kind returns a watched kind.
func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "g", Version: "v1", Kind: name}
}

func TestRunsAreCountedByWatchAndResult(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := metrics.New(registry, metrics.Build{Version: "v1", Commit: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	run := content.Run{Watch: kind("K"), Object: "ns/name"}
	m.InitWatch(kind("K"))
	m.SetWatchReady(kind("K"), true)
	m.SetWatchCold(kind("K"), true)
	m.InitWatch(kind("Missing"))
	for _, verdict := range []content.Verdict{content.Succeeded, content.Failed, content.Canceled, content.Failed} {
		m.RunStarted(run)
		m.JobEvent(run, jobevent.Event{Kind: jobevent.HostOK})
		if verdict == content.Failed {
			m.JobEvent(run, jobevent.Event{Kind: jobevent.HostFailed})
		}
		start := "" // As of content that has one way to start.
		if verdict == content.Succeeded {
			start = jobevent.StartWarm
		}
		m.RunEnded(run, content.Result{Outcome: content.Outcome{Verdict: verdict}, Account: content.Account{Start: start}}, 3*time.Second)
	}
	m.RunStarted(run)

	want := `
# HELP ansible_operator_build_info Build of the manager; always 1.
# TYPE ansible_operator_build_info gauge
ansible_operator_build_info{commit="abc",version="v1"} 1
# HELP ansible_operator_failed_tasks_total Tasks that failed on a host, ignored and rescued ones included.
# TYPE ansible_operator_failed_tasks_total counter
ansible_operator_failed_tasks_total{GVK="g/v1, Kind=K"} 2
ansible_operator_failed_tasks_total{GVK="g/v1, Kind=Missing"} 0
# HELP ansible_operator_live_runs Runs that execute now.
# TYPE ansible_operator_live_runs gauge
ansible_operator_live_runs{GVK="g/v1, Kind=K"} 1
ansible_operator_live_runs{GVK="g/v1, Kind=Missing"} 0
# HELP ansible_operator_reconcile_result Runs by what they came to.
# TYPE ansible_operator_reconcile_result counter
ansible_operator_reconcile_result{GVK="g/v1, Kind=K",result="canceled"} 1
ansible_operator_reconcile_result{GVK="g/v1, Kind=K",result="failed"} 2
ansible_operator_reconcile_result{GVK="g/v1, Kind=K",result="succeeded"} 1
ansible_operator_reconcile_result{GVK="g/v1, Kind=Missing",result="canceled"} 0
ansible_operator_reconcile_result{GVK="g/v1, Kind=Missing",result="failed"} 0
ansible_operator_reconcile_result{GVK="g/v1, Kind=Missing",result="succeeded"} 0
# HELP ansible_operator_runs_total Runs that have ended, by mode: warm ones were forked from servers that have imported Ansible, those of mode job executed in Jobs, and cold ones neither.
# TYPE ansible_operator_runs_total counter
ansible_operator_runs_total{GVK="g/v1, Kind=K",mode="cold"} 3
ansible_operator_runs_total{GVK="g/v1, Kind=K",mode="warm"} 1
ansible_operator_runs_total{GVK="g/v1, Kind=Missing",mode="cold"} 0
ansible_operator_runs_total{GVK="g/v1, Kind=Missing",mode="warm"} 0
# HELP ansible_operator_watch_cold 1 while the runs of the watch stay cold although they may be warm.
# TYPE ansible_operator_watch_cold gauge
ansible_operator_watch_cold{GVK="g/v1, Kind=K"} 1
ansible_operator_watch_cold{GVK="g/v1, Kind=Missing"} 0
# HELP ansible_operator_watch_ready 1 while the watched kind is served and its cache is filled.
# TYPE ansible_operator_watch_ready gauge
ansible_operator_watch_ready{GVK="g/v1, Kind=K"} 1
ansible_operator_watch_ready{GVK="g/v1, Kind=Missing"} 0
`
	names := []string{
		"ansible_operator_build_info", "ansible_operator_failed_tasks_total", "ansible_operator_live_runs",
		"ansible_operator_reconcile_result", "ansible_operator_runs_total", "ansible_operator_watch_cold", "ansible_operator_watch_ready",
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndCount(registry, "ansible_operator_reconciles"); err != nil || problems != 2 {
		t.Errorf("want a series of durations for each watch, got %d, %v", problems, err)
	}
}

func TestRegisteringTwiceIsAnError(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if _, err := metrics.New(registry, metrics.Build{}); err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.New(registry, metrics.Build{}); err == nil {
		t.Error("want an error for names that are taken")
	}
}

func TestTheRunDirectoryIsReadAtEachScrape(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	bytes := int64(0)
	if err := metrics.RegisterRunDirectory(registry, func() int64 { return bytes }); err != nil {
		t.Fatal(err)
	}
	for bytes = range int64(3) {
		want := fmt.Sprintf("# HELP ansible_operator_run_directory_bytes What the artifacts of ended runs take in the run directory, in bytes.\n"+
			"# TYPE ansible_operator_run_directory_bytes gauge\nansible_operator_run_directory_bytes %d\n", bytes)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	if err := metrics.RegisterRunDirectory(registry, func() int64 { return 0 }); err == nil {
		t.Error("want an error for a name that is taken")
	}
}

// The next manager goes on with a run that is detached, and counts it.
func TestARunThatGoesOnIsNotCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(registry, metrics.Build{})
	if err != nil {
		t.Fatal(err)
	}
	run := content.Run{Watch: kind("K")}
	m.RunStarted(run)
	m.RunEnded(run, content.Result{Outcome: content.Outcome{Verdict: content.Canceled}, Detached: true}, time.Second)
	for _, name := range []string{"ansible_operator_runs_total", "ansible_operator_reconcile_result"} {
		if n, err := testutil.GatherAndCount(registry, name); n != 0 || err != nil {
			t.Errorf("%s has %d series, %v", name, n, err)
		}
	}
}
