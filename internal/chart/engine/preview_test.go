package engine

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	libhandler "github.com/operator-framework/operator-lib/handler"
	"helm.sh/helm/v4/pkg/release/common"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/objects"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

// renders is a chart-exec that renders a text for previews.
type renders struct {
	*world

	text string
}

// Preview implements Renderer.
func (r renders) Preview(_ context.Context, o order.Order, _ []byte) (order.Rendered, error) {
	r.orders = append(r.orders, o)
	return order.Rendered{Manifests: [2]string{r.text, r.text}, Hooks: []order.Hook{{Event: "pre-upgrade", Name: "Job a"}}}, nil
}

// preview returns what a run would do for a CR.
func (w *world) preview(cr *unstructured.Unstructured) (made *Preview, outcome content.Outcome) {
	w.t.Helper()
	p := &Previews{Engine: w.engine, Show: func(p Preview) { made = &p }}
	prepared, refusal := p.Prepare(w.t.Context(), content.Request{Object: cr})
	if refusal != nil {
		return nil, *refusal
	}
	return made, prepared.Run(w.t.Context(), content.Job{Kubeconfig: w.kubeconfig}).Outcome
}

func TestWhatARunWouldDo(t *testing.T) {
	ours := map[string]string{libhandler.TypeAnnotation: "K", libhandler.NamespacedNameAnnotation: "ns/r"}
	changed := strings.Replace(text, "a: b", "a: c", 1)
	hooks := []order.Hook{{Event: "pre-upgrade", Name: "Job a"}}
	for why, test := range map[string]struct {
		has         bool
		digest      string
		annotations map[string]string
		text, live  string
		want        *Preview
		message     string
	}{
		"nothing is there": {
			text: text, want: &Preview{Release: "ns/r", Action: "install", Revision: 1, Hooks: hooks, Changes: []objects.Change{{Name: "ConfigMap ns/a", Kind: "create"}}},
		},
		"all is as it should be": {has: true, annotations: ours, text: changed, want: &Preview{Release: "ns/r"}},
		"another client has changed an object": {
			has: true, annotations: ours, live: "theirs", want: &Preview{Release: "ns/r", Action: "repair", Changes: []objects.Change{{Name: "ConfigMap ns/a", Kind: "update", Fields: []string{"/data/a"}}}},
		},
		"another chart": {
			has: true, annotations: ours, digest: "another", text: changed,
			want: &Preview{Release: "ns/r", Action: "upgrade", Revision: 2, Hooks: hooks, Changes: []objects.Change{{Name: "ConfigMap ns/a", Kind: "update", Fields: []string{"/data/a"}}}},
		},
		"one that has lost an object": {
			has: true, annotations: ours, digest: "another", text: "", want: &Preview{Release: "ns/r", Action: "upgrade", Revision: 2, Hooks: hooks, Changes: []objects.Change{{Name: "ConfigMap ns/a", Kind: "delete"}}},
		},
		"a release of somebody else": {has: true, message: "duplicate release name"},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t, nil)
			w.engine.Runner, w.annotations = renders{w, test.text}, test.annotations
			if test.has {
				r := w.found(common.StatusDeployed)
				r.Labels = map[string]string{order.DigestLabel: test.digest}
				if test.digest == "" {
					r.Labels[order.DigestLabel] = w.digest()
				}
			}
			if test.live != "" {
				w.object["data"] = map[string]any{"a": test.live}
			}
			got, outcome := w.preview(resource(nil, nil))
			if !strings.Contains(outcome.Message, test.message) || (got == nil) != (test.want == nil) {
				t.Fatalf("got %+v, %+v", got, outcome)
			}
			if got != nil {
				for i := range got.Changes {
					got.Changes[i] = objects.Change{Name: got.Changes[i].Name, Kind: got.Changes[i].Kind, Fields: got.Changes[i].Fields}
				}
				if diff := cmp.Diff(*test.want, *got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if w.repairs+w.deletions > 0 {
				t.Error("something was changed")
			}
		})
	}
}

func TestAnObjectThatCannotBeComparedIsNoObjectWithoutDifferences(t *testing.T) {
	w := newWorld(t, nil)
	w.annotations = map[string]string{libhandler.TypeAnnotation: "K", libhandler.NamespacedNameAnnotation: "ns/r"}
	w.found(common.StatusDeployed).Labels = map[string]string{order.DigestLabel: w.digest()}
	w.forbidden = http.MethodPatch
	got, outcome := w.preview(resource(nil, nil))
	if got == nil || len(got.Changes) != 1 || got.Changes[0].Name != "ConfigMap ns/a" || !strings.Contains(got.Changes[0].Error, "not for you") {
		t.Errorf("got %+v, %+v", got, outcome)
	}
}

func TestAnObjectOfNobodyIsTakenOverOnlyIfTheWatchSaysSo(t *testing.T) {
	for adopt, want := range map[bool]string{false: "adopt: true in the watch takes it over", true: ""} {
		w := newWorld(t, func(watch *watches.Watch) { watch.Chart.Adopt = adopt })
		w.found(common.StatusDeployed)
		w.releases = nil
		w.object["metadata"] = map[string]any{"name": "a", "namespace": "ns"}
		w.engine.Runner = renders{w, text}
		got, _ := w.preview(resource(nil, nil))
		if got == nil || len(got.Changes) != 1 || !strings.HasSuffix(got.Changes[0].Error, want) || (want == "") != (got.Changes[0].Error == "") {
			t.Errorf("adopt: %t: got %+v", adopt, got)
		}
	}
}

func TestAfterAFailedInstallationAnObjectOfAnotherReleaseIsItsStill(t *testing.T) {
	w := newWorld(t, nil)
	w.annotations = map[string]string{libhandler.TypeAnnotation: "K", libhandler.NamespacedNameAnnotation: "ns/r"}
	w.found(common.StatusFailed)
	w.object["metadata"].(map[string]any)["annotations"] = map[string]any{"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "ns"}
	w.engine.Runner = renders{w, text}
	got, outcome := w.preview(resource(nil, nil))
	if got == nil || got.Action != "install" || got.Revision != 2 || len(got.Changes) != 1 || got.Changes[0].Error != "it belongs to the release ns/other" {
		t.Errorf("got %+v, %+v", got, outcome)
	}
}

func TestADiffHasNoValueOfASecret(t *testing.T) {
	secret := func(data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "Secret", "data": data, "status": map[string]any{}, "metadata": map[string]any{"name": "a", "managedFields": []any{}, "uid": "1", "labels": map[string]any{"a": "b"}},
		}}
	}
	same := func(text string) string { return text }
	got := diffOf(secret(map[string]any{"same": "hunter1", "other": "hunter2", "gone": "hunter3"}), secret(map[string]any{"same": "hunter1", "other": "hunter4", "new": "hunter5"}), same)
	want := "--- live\n+++ after\n@@ -1,6 +1,6 @@\n data:\n-  gone: (redacted)\n-  other: (redacted)\n+  new: (redacted)\n+  other: (redacted, another value)\n   same: (redacted)\n kind: Secret\n metadata:\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if got := diffOf(nil, secret(map[string]any{"new": "hunter5"}), same); strings.Contains(got, "hunter") || !strings.Contains(got, "+  new: (redacted)\n") {
		t.Errorf("got\n%s", got)
	}
	text := secret(nil)
	text.Object["stringData"] = map[string]any{"a": "hunter6"}
	if got := diffOf(nil, text, same); strings.Contains(got, "hunter") {
		t.Errorf("got\n%s", got)
	}
}

func TestADiffHasNoPartOfAValueThatYAMLBreaksOrEscapes(t *testing.T) {
	config := func(dsn string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"dsn": "url " + dsn, "port": "http"}}}
	}
	const long, now = "host=db.example.com port=5432 user=application sslmode=require connect_timeout=10 password=hunter7", "http://hunter8 \U0001F511"
	mask := values.NewMask(long, now)
	got := mask.Text(diffOf(config(long), config(now), mask.Text))
	want := "--- live\n+++ after\n@@ -1,4 +1,4 @@\n data:\n-  dsn: url (redacted)\n+  dsn: url (redacted) (another value)\n   port: http\n kind: ConfigMap\n"
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
