package backend

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
	"github.com/ensign-operator/ensign/internal/process"
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
	o := config.Of(options.Options{Executable: filepath.Join(dir, "manager")}, logr.Discard())
	root, reaper, err := process.TakeOver(filepath.Join(dir, "runs"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if _, err := newRunner(o, process.Dirs{Root: root, Reaper: reaper}); err == nil || !strings.Contains(err.Error(), "chart-exec") {
		t.Errorf("without the program: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "chart-exec"), []byte(playedChartExec), 0o755); err != nil {
		t.Fatal(err)
	}
	r, err := newRunner(o, process.Dirs{Root: root, Reaper: reaper})
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
	result := (&Agent{r, encoded}).Run(t.Context(), described(spec), said(spec))
	if result.Outcome.Verdict != content.Succeeded || result.Started.IsZero() || result.Ended.IsZero() {
		t.Errorf("got %+v", result)
	}
	if want := []string{"working upgrade", "left ConfigMap a/b"}; !slices.Equal(told, want) {
		t.Errorf("got %q, want %q", told, want)
	}
	if got := resultOf(ansible.Result{Outcome: result.Outcome, Remote: true}); got.Account.Start != jobevent.StartJob || got.Outcome != result.Outcome {
		t.Errorf("got %+v", got)
	}
	if result := (&Agent{r, []byte("no order")}).Run(t.Context(), described(spec), said(spec)); result.Outcome.Reason != content.ReasonRunnerCrashed || result.Ended.IsZero() {
		t.Errorf("got %+v", result)
	}
}
