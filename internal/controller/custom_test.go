package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ensign-operator/ensign/internal/controller/status"
	"github.com/ensign-operator/ensign/internal/observe/eventlog"
	"github.com/ensign-operator/ensign/internal/observe/metrics"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// manifests is a kind of content that neither the controller nor its observers know: both the
// engine and the work of a CR.
type manifests struct {
	content.EngineDefaults
	content.WorkDefaults

	result content.Result
}

func (m *manifests) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return m, nil
}

func (m *manifests) Run(context.Context, content.Job) content.Result {
	if m.result.Outcome.Verdict == "" {
		panic("a defect")
	}
	return m.result
}

// TestAKindOfContentThatNobodyKnows: what it says of its runs is in the log, the metrics and the
// status. Its CRs have the annotations of every kind below its prefix.
func TestAKindOfContentThatNobodyKnows(t *testing.T) {
	watch := plainWatch()
	watch.Content = watches.Content{}
	watch.Custom = &watches.ContentKind{Heading: "Manifests"}
	good := content.Result{
		Outcome: content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful, Message: "All is there"},
		Version: content.ShortVersion("1.2", "abcdef"),
		Account: content.Account{Start: "fast", Numbers: []content.Number{{Name: "applied", Value: 3}}},
	}
	bad := content.Result{Outcome: content.Outcome{Verdict: content.Failed, Reason: "Conflict", Message: "two managers"}}
	for why, test := range map[string]struct {
		result        content.Result
		log           string
		block         string
		mode, verdict string
		version       content.Version
		conditions    map[string]string
	}{
		"a success": {
			good, `"msg"="run succeeded" "cr"="ns/w" "watch"="g.io/v1, Kind=Widget" "outcome"="Succeeded" "reason"="Successful" "seconds"=0 "applied"=3 "message"="All is there"`,
			"", "fast", "succeeded", good.Version,
			map[string]string{"Running": "True/Successful", "Successful": "True/Successful", "Failure": "False/Successful", "Ready": "True/Successful"},
		},
		"a failure": {
			bad, `"msg"="run failed" "error"=null "cr"="ns/w" "watch"="g.io/v1, Kind=Widget" "outcome"="Failed" "reason"="Conflict" "message"="two managers\na right is missing" "seconds"=0`,
			" Manifests ------------------------------------\nns/w | two managers\nns/w | a right is missing\n", "cold", "failed",
			content.Version{}, map[string]string{"Running": "False/Failed", "Successful": "False/Failed", "Failure": "True/Conflict", "Ready": "False/Conflict", "Reconciling": "True/Retrying"},
		},
		"a defect": {
			content.Result{}, `"msg"="run failed" "error"=null "cr"="ns/w" "watch"="g.io/v1, Kind=Widget" "outcome"="Failed" "reason"="RunnerCrashed"`,
			" Manifests ------------------------------------\nns/w | internal error of the manager", "cold", "failed",
			content.Version{}, map[string]string{"Running": "False/Failed", "Successful": "False/Failed", "Failure": "True/RunnerCrashed", "Ready": "False/RunnerCrashed", "Reconciling": "True/Retrying"},
		},
	} {
		t.Run(why, func(t *testing.T) {
			b := newBench(t, watch, widget(withAnnotations(map[string]string{watches.CustomAnnotations + "reconcile-period": "30m"})), interceptor.Funcs{})
			var lines, blocks strings.Builder
			registry := prometheus.NewPedanticRegistry()
			counters, err := metrics.New(registry, metrics.Build{})
			if err != nil {
				t.Fatal(err)
			}
			log := eventlog.New(eventlog.Options{
				Logger: funcr.New(func(_, args string) { lines.WriteString(args + "\n") }, funcr.Options{}), Blocks: &blocks, Level: eventlog.Tasks,
			})
			b.Content, b.Observers = &manifests{result: test.result}, []content.Observer{log, counters}
			b.Access = lacking{b.Access}
			if next := b.mustReconcile(); test.verdict == "succeeded" && next.RequeueAfter != 30*time.Minute {
				t.Errorf("the next run is in %s", next.RequeueAfter)
			}
			if !strings.Contains(lines.String(), test.log) {
				t.Errorf("want %s\nin the log\n%s", test.log, lines.String())
			}
			if !strings.Contains(blocks.String(), test.block) || test.block == "" && blocks.Len() > 0 {
				t.Errorf("want the block\n%s\ngot\n%s", test.block, blocks.String())
			}
			const gvk = `{GVK="g.io/v1, Kind=Widget"`
			wantMetrics := "# HELP ansible_operator_live_runs Runs that execute now.\n# TYPE ansible_operator_live_runs gauge\nansible_operator_live_runs" + gvk + "} 0\n" +
				"# HELP ansible_operator_reconcile_result Runs by what they came to.\n# TYPE ansible_operator_reconcile_result counter\nansible_operator_reconcile_result" + gvk + `,result="` + test.verdict + "\"} 1\n" +
				"# HELP ansible_operator_runs_total Runs that have ended, by mode: warm ones were forked from servers that have imported Ansible, those of mode job executed in Jobs, and cold ones neither.\n# TYPE ansible_operator_runs_total counter\nansible_operator_runs_total" + gvk + `,mode="` + test.mode + "\"} 1\n"
			if err := testutil.GatherAndCompare(registry, strings.NewReader(wantMetrics), "ansible_operator_live_runs", "ansible_operator_reconcile_result", "ansible_operator_runs_total"); err != nil {
				t.Error(err)
			}
			wantEqual(t, test.conditions, b.conditions())
			wantEqual(t, test.version, status.ReadRun(b.stored()).Version)
		})
	}
}

// refusing is content that calls its refusal a success, with a message that a terminal would obey.
type refusing struct{ manifests }

func (*refusing) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return nil, &content.Outcome{Verdict: content.Succeeded, Reason: "TooLarge", Message: "no\x1b[2J"}
}

func TestARefusalIsAFailureThatCanBeShown(t *testing.T) {
	b := newBench(t, plainWatch(), widget(), interceptor.Funcs{})
	b.Content = &refusing{}
	b.mustReconcile()
	wantEqual(t, content.Outcome{Verdict: content.Failed, Reason: "TooLarge", Message: `no\x1b[2J`}, status.Last(b.stored()))
}

// lacking is access whose account lacks a right.
type lacking struct{ Access }

func (l lacking) Grant(cr *unstructured.Unstructured, username string, labels map[string]string) (Grant, error) {
	grant, err := l.Access.Grant(cr, username, labels)
	grant.Denied = func() string { return "a right is missing" }
	return grant, err
}
