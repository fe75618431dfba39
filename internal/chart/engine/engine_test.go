package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const (
	healthy   = "Deployed=True InstallSuccessful, Initialized=True Initialized"
	upgraded  = "Deployed=True UpgradeSuccessful, Initialized=True Initialized"
	failedFor = "Initialized=True Initialized, ReleaseFailed=True "
	irrecon   = "Initialized=True Initialized, Irreconcilable=True ReconcileError"
)

func TestWhatARunDoesAndShows(t *testing.T) {
	no := content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no"}
	for why, test := range map[string]struct {
		before  func(*world)
		orders  []order.Action
		settled bool
		shown   string
	}{
		"nothing is there":             {orders: []order.Action{order.Install}, shown: healthy},
		"all is as it should be":       {before: func(w *world) { w.has(common.StatusDeployed, w.digest()) }, settled: true, shown: healthy},
		"the values have changed":      {before: func(w *world) { w.has(common.StatusDeployed, "other") }, orders: []order.Action{order.Upgrade}, shown: upgraded},
		"an attempt was killed":        {before: func(w *world) { w.has(common.StatusPendingInstall, w.digest()) }, orders: []order.Action{order.Install}, shown: healthy},
		"the last installation failed": {before: func(w *world) { w.has(common.StatusFailed, w.digest()) }, orders: []order.Action{order.Install}, shown: healthy},
		"another has the name":         {before: func(w *world) { w.found(common.StatusDeployed) }, shown: irrecon},
		"the installation fails":       {before: func(w *world) { w.outcome = no }, orders: []order.Action{order.Install}, shown: failedFor + "InstallError"},
		"a reinstallation fails": {before: func(w *world) {
			w.has(common.StatusFailed, "")
			w.outcome = no
		}, orders: []order.Action{order.Install}, shown: failedFor + "InstallError"},
		"the upgrade fails": {before: func(w *world) {
			w.has(common.StatusDeployed, "other")
			w.outcome = no
		}, orders: []order.Action{order.Upgrade}, shown: failedFor + "UpgradeError"},
		"a success that left nothing is none": {before: func(w *world) { w.idle = true }, orders: []order.Action{order.Install}, shown: irrecon},
		"an object was changed": {before: func(w *world) {
			w.has(common.StatusDeployed, w.digest())
			w.object["data"] = map[string]any{"a": "c"}
		}, shown: healthy},
		"an object was deleted": {before: func(w *world) {
			w.has(common.StatusDeployed, w.digest())
			w.object = nil
		}, shown: healthy},
		"a chart that cannot be loaded is no fault of the CR": {before: (*world).breakChart, shown: irrecon},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t, nil)
			if test.before != nil {
				test.before(w)
			}
			result, settled := w.run(t.Context(), resource(nil, nil), false)
			var actions []order.Action
			for _, o := range w.orders {
				actions = append(actions, o.Action)
				if o.Attempt == "" || o.MaxHistory != 7 || o.Name != "r" || o.Namespace != "ns" {
					t.Errorf("got the order %+v", o)
				}
			}
			if !slices.Equal(actions, test.orders) || settled != test.settled || shownAs(result) != test.shown {
				t.Errorf("got %q, settled %v: %s", actions, settled, shownAs(result))
			}
			healthyNow := strings.Contains(test.shown, "Deployed=True")
			if (result.Outcome.Verdict == content.Succeeded) != healthyNow || slices.Contains(result.Removed, "Irreconcilable") == strings.Contains(test.shown, "Irreconcilable") {
				t.Errorf("got %+v", result)
			}
			if healthyNow && (w.object["data"].(map[string]any)["a"] != "b" || result.Conditions[1].Message != `some \x1b notes`) {
				t.Errorf("the object is %v, the result %+v", w.object, result)
			}
		})
	}
}

// Helm goes on without an error if it cannot mark the former revision.
func TestAnUpgradeEndsWithOneDeployedRecord(t *testing.T) {
	w := newWorld(t, nil)
	w.has(common.StatusDeployed, "old")
	if result, _ := w.run(t.Context(), resource(nil, nil), false); result.Outcome.Verdict != content.Succeeded {
		t.Fatalf("got %+v", result)
	}
	if len(w.releases) != 2 || w.releases[0].Info.Status != common.StatusSuperseded || w.releases[1].Info.Status != common.StatusDeployed {
		t.Errorf("got the states of %d records: %s …", len(w.releases), w.releases[0].Info.Status)
	}
}

func TestWhatDriftDoes(t *testing.T) {
	for drift, want := range map[watches.Drift]struct {
		settled bool
		repairs int
	}{watches.DriftRepair: {false, 1}, watches.DriftWarn: {true, 0}, watches.DriftOff: {true, 0}} {
		w := newWorld(t, func(watch *watches.Watch) { watch.Chart.Drift = drift })
		w.has(common.StatusDeployed, w.digest())
		w.object["data"] = map[string]any{"a": "changed", "added": "by others"}
		result, settled := w.run(t.Context(), resource(nil, nil), false)
		if settled != want.settled || w.repairs != want.repairs || len(w.orders) > 0 || result.Outcome.Verdict != content.Succeeded {
			t.Errorf("%s: settled %v, %d repairs, orders %v, %+v", drift, settled, w.repairs, w.orders, result)
		}
		if w.object["data"].(map[string]any)["added"] != "by others" {
			t.Errorf("%s: the fields of others are %v", drift, w.object["data"])
		}
	}
}

func TestWhatAFinalizerDoes(t *testing.T) {
	const gone, left = "Deployed=False UninstallSuccessful", failedFor + "UninstallError"
	others := func(w *world) { w.object["metadata"].(map[string]any)["annotations"] = nil }
	deleted := func(w *world) {
		w.object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		w.object["metadata"].(map[string]any)["finalizers"] = []any{"example.com/hold"}
	}
	for why, test := range map[string]struct {
		before    func(*world)
		orders    int
		deletions int // by the manager itself
		settled   bool
		shown     string
		message   string
	}{
		"the release is removed":           {before: func(w *world) { w.has(common.StatusDeployed, "") }, orders: 1, shown: gone},
		"one whose attempt was killed too": {before: func(w *world) { w.has(common.StatusPendingUpgrade, "") }, orders: 1, shown: gone},
		"there is none":                    {before: func(*world) {}, shown: gone},
		"another's stays":                  {before: func(w *world) { w.found(common.StatusDeployed) }, shown: gone},
		"also where the chart cannot be loaded": {before: func(w *world) {
			w.has(common.StatusDeployed, "")
			w.breakChart()
		}, orders: 1, shown: gone},
		"a hook fails": {before: func(w *world) {
			w.has(common.StatusDeployed, "")
			w.outcome = content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "no"}
		}, orders: 1, shown: left, message: "no"},
		"an uninstallation that failed is repeated": {before: func(w *world) { w.has("uninstalling", "") }, orders: 1, shown: gone},
		"Helm leaves an object": {before: func(w *world) {
			w.has(common.StatusDeployed, "")
			w.leaves = true
		}, orders: 1, deletions: 1, shown: gone},
		"the record goes in the middle": {before: func(w *world) {
			w.has(common.StatusDeployed, "")
			w.leaves, w.loses = true, true
		}, orders: 1, deletions: 1, shown: gone},
		"the history was kept because an object was left": {before: func(w *world) { w.has(common.StatusUninstalled, "") }, deletions: 1, shown: gone},
		"an object cannot be read": {before: func(w *world) {
			w.has(common.StatusDeployed, "")
			w.forbidden = "any"
		}, orders: 1, shown: left, message: "ConfigMap ns/a (cannot be read: not for you"},
		"an object cannot be deleted": {before: func(w *world) {
			w.has(common.StatusUninstalled, "")
			w.forbidden = "DELETE"
		}, shown: left, message: "ConfigMap ns/a (cannot be deleted: not for you"},
		"the cluster has made an object again that was deleted": {before: func(w *world) {
			r := w.found(common.StatusUninstalled)
			r.Manifest, r.Labels = strings.TrimSuffix(r.Manifest, "\n")+"\naggregationRule: {}\n", map[string]string{order.DigestLabel: ""}
			w.seal(r)
			others(w)
			w.object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "clusterrole-aggregation-controller", "operation": "Apply"}}
		}, deletions: 1, shown: gone},
		"an object is another's by now": {before: func(w *world) {
			w.has(common.StatusUninstalled, "")
			others(w)
		}, shown: gone},
		"one that is no such role stays, whoever is said to have written it": {before: func(w *world) {
			w.has(common.StatusUninstalled, "")
			others(w)
			w.object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "clusterrole-aggregation-controller", "operation": "Apply"}}
		}, shown: gone},
		"an object waits for somebody": {before: func(w *world) {
			w.has(common.StatusUninstalled, "")
			deleted(w)
		}, settled: true, shown: left, message: "ConfigMap ns/a (is being deleted; it waits for example.com/hold)"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel() // What an object waits for is waited for.
			w := newWorld(t, nil)
			test.before(w)
			cr := resource(map[string]any{"size": "not a number"}, map[string]string{"uninstall-wait": "true", "upgrade-force": "perhaps"})
			result, settled := w.run(t.Context(), cr, true)
			if settled != test.settled || len(w.orders) != test.orders || w.deletions != test.deletions || shownAs(result) != test.shown || !strings.Contains(result.Outcome.Message, test.message) {
				t.Errorf("settled %v, %d deletions, orders %v: %+v", settled, w.deletions, w.orders, result)
			}
			if (result.Outcome.Verdict == content.Succeeded) != (test.shown == gone) {
				t.Errorf("got %+v", result.Outcome)
			}
			if waits := result.RequeueAfter > 0; waits != test.settled {
				t.Errorf("the next look is after %s", result.RequeueAfter)
			}
			for _, o := range w.orders {
				if o.Action != order.Uninstall || o.Wait || o.Values != nil || len(o.Seal.Keys) != 1 || string(o.Seal.Keys[0].Secret) == string(testKeys[0].Secret) {
					t.Errorf("got the order %+v", o)
				}
			}
			if _, cleared := result.Fields["deployedRelease"]; cleared != (test.shown == gone) {
				t.Errorf("got the fields %v", result.Fields)
			}
			if foreign := why == "another's stays"; test.shown == gone && (len(w.releases) > 0) != foreign {
				t.Errorf("%d revisions are left", len(w.releases))
			}
		})
	}
}

func TestAnnotationsSteerTheActions(t *testing.T) {
	w := newWorld(t, nil)
	w.has(common.StatusDeployed, "other")
	annotations := map[string]string{
		"upgrade-force": "true", "rollback-force": "1", "upgrade-disable-hooks": "true", "install-disable-hooks": "false",
		"upgrade-description": "why", "install-description": "not this",
	}
	w.run(t.Context(), resource(nil, annotations), false)
	o := w.orders[0]
	if !o.Force || !o.RollbackForce || !o.DisableHooks || o.Description != "why" || o.Timeout != 8*time.Minute {
		t.Errorf("got %+v", o.Settings)
	}
	for name := range annotations {
		if strings.HasSuffix(name, "description") {
			continue
		}
		_, refusal := w.engine.Prepare(t.Context(), content.Request{Object: resource(nil, map[string]string{name: "perhaps\x1b"})})
		if refusal == nil || refusal.Reason != content.ReasonInvalidAnnotation || !strings.Contains(refusal.Message, name) || strings.Contains(refusal.Message, "\x1b") {
			t.Errorf("%s: got %+v", name, refusal)
		}
	}
}

func TestASpecThatTheChartCannotTakeIsRefused(t *testing.T) {
	_, refusal := newWorld(t, nil).engine.Prepare(t.Context(), content.Request{Object: resource(map[string]any{"size": "big"}, nil)})
	if refusal == nil || refusal.Reason != content.ReasonInvalidSpec || !strings.Contains(refusal.Message, "size") {
		t.Errorf("got %+v", refusal)
	}
}

func TestARunThatEndsBeforeItsTimeSaysNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWorld(t, nil)
	result, _ := w.run(ctx, resource(nil, nil), false)
	if result.Outcome.Verdict != content.Canceled || len(result.Conditions) > 0 {
		t.Errorf("got %+v", result)
	}
	w.outcome = content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled}
	if result, _ := w.run(t.Context(), resource(nil, nil), false); result.Outcome.Verdict != content.Canceled || len(result.Conditions) > 0 {
		t.Errorf("got %+v", result)
	}
}

func TestEventsTellOfOverrides(t *testing.T) {
	for suppress, want := range map[bool][]string{
		false: {`Chart value "a.b" overridden to "1,2" by`, `Chart value "list" overridden to "[1,\"x\"]" by`},
		true:  {`Chart value "a.b" overridden to "****" by`, `Chart value "list" overridden to "****" by`},
	} {
		w := newWorld(t, func(watch *watches.Watch) {
			watch.Chart.Overrides = []watches.Override{{Key: "a.b", Value: "1,2"}, {Key: "list", Value: []any{int64(1), "x"}}}
		})
		recorder := events.NewFakeRecorder(10)
		w.engine.Recorder, w.engine.SuppressOverrides = recorder, suppress
		w.run(t.Context(), resource(nil, nil), false)
		if _, settled := w.run(t.Context(), resource(nil, nil), false); !settled {
			t.Error("the release is not settled")
		}
		close(recorder.Events)
		var got []string
		for event := range recorder.Events {
			got = append(got, event)
		}
		if len(got) != len(want) {
			t.Fatalf("got %q", got)
		}
		for i := range want {
			if !strings.HasPrefix(got[i], "Warning OverrideValuesInUse "+want[i]) {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
}

func TestHelmWaitsLessThanTheRun(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{time.Hour: 48 * time.Minute, 10 * time.Second: 8 * time.Second} {
		if got := waits(timeout); got != want {
			t.Errorf("%s: got %s", timeout, got)
		}
	}
	if got := waits(0); got < 1000*time.Hour {
		t.Errorf("without a timeout Helm waits %s", got)
	}
}

func TestACRWithoutASpecHasTheDigestOfAnEmptyOne(t *testing.T) {
	w := newWorld(t, nil)
	empty := w.prepare(resource(map[string]any{}, nil), false).(*work).values.Digest
	if got := fmt.Sprint(w.digest()); got != empty {
		t.Errorf("got %s and %s", got, empty)
	}
}

func TestHooksAreLeftOutWhereTheNamespaceGoes(t *testing.T) {
	for goes, want := range map[bool]string{false: "", true: "Warning HooksSkipped The namespace is being deleted"} {
		w := newWorld(t, nil)
		recorder := events.NewFakeRecorder(10)
		w.engine.Recorder, w.namespaceGoes = recorder, goes
		w.has(common.StatusDeployed, "")
		w.releases[0].Hooks = []*helm.Hook{{Name: "h", Manifest: text, Events: []helm.HookEvent{helm.HookPreDelete}}}
		w.seal(w.releases[0])
		w.run(t.Context(), resource(nil, nil), true)
		if len(w.orders) != 1 || w.orders[0].DisableHooks != goes {
			t.Errorf("going %v: got the orders %+v", goes, w.orders)
		}
		close(recorder.Events)
		if got := <-recorder.Events; !strings.HasPrefix(got, want) || got != "" && want == "" {
			t.Errorf("going %v: got the Event %q", goes, got)
		}
	}
}

func TestAnAbandonedReleaseIsNamedWithItsObjects(t *testing.T) {
	for why, test := range map[string]struct {
		before func(*world)
		want   string
	}{
		"there is none":              {func(*world) {}, "nothing of a release is left"},
		"its objects are there":      {func(w *world) { w.has(common.StatusDeployed, "") }, `the release "r": ConfigMap ns/a`},
		"its objects cannot be read": {func(w *world) { w.has(common.StatusDeployed, ""); w.forbidden = "any" }, `the release "r": ConfigMap ns/a (cannot be read: not for you)`},
	} {
		w := newWorld(t, nil)
		test.before(w)
		if got := w.prepare(resource(nil, nil), true).Abandon(t.Context(), content.Job{Kubeconfig: w.kubeconfig}); got != test.want {
			t.Errorf("%s: got %q", why, got)
		}
		if len(w.orders) > 0 || w.deletions > 0 {
			t.Errorf("%s: it was no look", why)
		}
	}
	if got := newWorld(t, nil).prepare(resource(nil, nil), true).Abandon(t.Context(), content.Job{}); !strings.Contains(got, `the release "r" and its objects may still be there`) {
		t.Errorf("without access: got %q", got)
	}
}

// Whoever may write the status of a CR must not lead its deletion past its release.
func TestADeletionFindsTheReleaseWhateverTheStatusSays(t *testing.T) {
	w := newWorld(t, nil)
	w.has(common.StatusDeployed, w.digest())
	cr := resource(nil, nil)
	cr.Object["status"] = map[string]any{"deployedRelease": map[string]any{"name": "other", "namespace": "elsewhere"}}
	result, _ := w.run(t.Context(), cr, true)
	if result.Outcome.Verdict != content.Succeeded || len(w.orders) != 1 || w.orders[0].Name != "r" || w.orders[0].Namespace != "ns" || len(w.releases) > 0 || w.object != nil {
		t.Errorf("got %+v, orders %+v, %d revisions left", result.Outcome, w.orders, len(w.releases))
	}
}

func TestTheEndOfACRLeavesTheEntryOfAnotherOneOfItsName(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.ledger = &ledger.Store{ConfigMaps: fake.NewClientset().CoreV1().ConfigMaps("op"), Namespace: "op", Prefix: "p"}
	cr := resource(nil, nil)
	other := ownerOf(cr)
	other.UID = "another"
	for _, owner := range []order.Owner{ownerOf(cr), other} {
		if err := w.engine.ledger.Put(t.Context(), &ledger.Entry{Owner: owner, Namespace: "ns", Name: "r", Attempt: "a"}); err != nil {
			t.Fatal(err)
		}
		w.engine.ledger.Forget(owner.UID)
		prepared, _ := w.engine.Prepare(t.Context(), content.Request{Object: cr, Finalizing: true, Gone: true})
		if left := prepared.Abandon(t.Context(), content.Job{Kubeconfig: w.kubeconfig}); left != "" {
			t.Error(left)
		}
		kept, err := w.engine.ledger.Get(t.Context(), owner)
		if err != nil || (kept.Name != "") != (owner == other) {
			t.Errorf("%s: %+v, %v", owner.UID, kept, err)
		}
	}
}
