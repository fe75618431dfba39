package operator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	ansible "github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/options"
)

// playedChartExec is a chart-exec that says what it does and leaves, and that it is through.
const playedChartExec = `#!/bin/sh
nonce=$(sed -n 's/.*"nonce":\([0-9]*\).*/\1/p' "$1")
for said in '"working":"'"$(sed -n 's/.*"action":"\([a-z]*\)".*/\1/p' "$1")"'"' '"left":"ConfigMap a/b"' '"done":true'; do
  echo "{\"nonce\":$nonce,$said}" >&3
done
`

// What chart-exec says in the pod reaches the run in the manager by way of job events.
func TestAnAgentCarriesOutTheOrderOfAChart(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	o := config.Of(options.Options{Executable: filepath.Join(dir, "manager"), RunDir: filepath.Join(dir, "runs")}, logr.Discard())
	dirs, err := openRunDirs(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dirs.close() }()
	if _, err := newChartRunner(o, dirs); err == nil || !strings.Contains(err.Error(), "chart-exec") {
		t.Errorf("without the program: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chart-exec"), []byte(playedChartExec), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := newChartRunner(o, dirs)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	spec := runner.Spec{
		UID: "u", ID: "r", CR: "ns/cr", Kubeconfig: []byte("config"), Order: order.Order{Action: order.Upgrade}, Timeout: time.Minute,
		Working: func(step string) { told = append(told, "working "+step) }, Left: func(what string) { told = append(told, "left "+what) },
	}
	encoded, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	result := chartAgent{r, encoded}.Run(t.Context(), described(spec), said(spec))
	if result.Outcome.Verdict != content.Succeeded || result.Started.IsZero() || result.Ended.IsZero() {
		t.Errorf("got %+v", result)
	}
	if want := []string{"working upgrade", "left ConfigMap a/b"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	if got := chartResult(ansible.Result{Outcome: result.Outcome, Remote: true}); got.Account.Start != jobevent.StartJob || got.Outcome != result.Outcome {
		t.Errorf("got %+v", got)
	}
	if result := (chartAgent{r, []byte("no order")}).Run(t.Context(), described(spec), said(spec)); result.Outcome.Reason != content.ReasonRunnerCrashed || result.Ended.IsZero() {
		t.Errorf("got %+v", result)
	}
}

// A pod whose image has no chart-exec says so, and leaves nothing.
func TestAnAgentWithoutChartExecSaysSo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, _, err := newAgentRunner(t.Context(), wire.Assignment{Settings: jobSettings(config.Of(options.Options{Dir: t.TempDir()}, logr.Discard()), false), Chart: []byte("{}")}, nil, logr.Discard())
	if err == nil || !strings.Contains(err.Error(), "chart-exec") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
