package ensign

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness/scratch"
)

func noValues(string) (map[string]any, error) { return map[string]any{}, nil }

var widget = Kind{Group: "g.io", Version: "v1", Kind: "Widget"}

// managerIn returns a manager whose directory has the files. It reaches no API server.
func managerIn(t *testing.T, files map[string]string) *Manager {
	t.Helper()
	dir := t.TempDir()
	scratch.Write(t, dir, files)
	m, err := NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}},
		Options{Dir: dir, RunDir: t.TempDir(), Environ: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const everyField = `
- group: g.io
  version: v1
  kind: Widget
  playbook: play.yml
  reconcilePeriod: 1h
  timeout: 0s
  maxConcurrentReconciles: 3
  selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: In, values: [d, e]}]}
  references: [{version: v1, kind: Secret, name: spec.secret, namespace: spec.home, statusFields: [ready]}]
  watchDependentResources: false
  confineToNamespace: true
  ready: manager
  serviceAccountName: deployer
  serviceAccountNamePath: spec.account
  manageStatus: false
  watchClusterScopedResources: true
  blacklist: [{group: apps, kind: Deployment}]
  watchAnnotationsChanges: true
  vars: {size: 3, names: [a]}
  finalizer: {name: g.io/finalizer, playbook: play.yml, vars: {state: absent}}
  snakeCaseParameters: false
  markUnsafe: false
  maxRunnerArtifacts: 0
  verbosity: 0
  warm: false
  executor: job
  job: {podTemplate: {metadata: {}, spec: {priorityClassName: low, containers: null}}, labels: {a: b}, annotations: {c: d}}
- group: h.io
  version: v1
  kind: Chart
  chart: chart
  maxHistory: 0
  wait: true
  drift: warn
  driftIgnore: [{kind: Deployment, pointers: [/spec/replicas]}]
  adopt: true
  crds: skip
  templatesInSpec: [spec.config]
  releaseName: spec.name
  releaseNamespace: there
  valuesFrom: [{kind: Secret, name: spec.secret, key: k, targetPath: a.b, optional: true}, {kind: ConfigMap, name: sizes}]
  valuesFromInSpec: spec.valuesFrom
`

var chartFiles = map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}

// inGo are the watches of everyField.
func inGo() []Watch {
	return []Watch{
		Playbook{
			Kind: widget, Playbook: "play.yml",
			Settings: Settings{
				ReconcilePeriod: time.Hour, Timeout: -1, MaxConcurrentReconciles: 3, WatchDependentResources: new(false), WatchClusterScopedResources: new(true), ConfineToNamespace: true, Ready: "manager", ServiceAccountName: "deployer", ServiceAccountNamePath: "spec.account",
				Selector: &metav1.LabelSelector{
					MatchLabels:      map[string]string{"a": "b"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpIn, Values: []string{"d", "e"}}},
				},
				References: []Reference{{Version: "v1", Kind: "Secret", Name: "spec.secret", Namespace: "spec.home", StatusFields: []string{"ready"}}},
			},
			Triggers: Triggers{ManageStatus: new(false), Blacklist: []GroupKind{{"apps", "Deployment"}}, WatchAnnotationsChanges: true},
			AnsibleSettings: AnsibleSettings{
				Vars:                map[string]any{"size": 3, "names": []string{"a"}},
				Finalizer:           &Finalizer{Name: "g.io/finalizer", Playbook: "play.yml", Vars: map[string]any{"state": "absent"}},
				SnakeCaseParameters: new(false), MarkUnsafe: new(false), MaxRunnerArtifacts: -1, Verbosity: new(0), Warm: new(false), Executor: "job",
				Job: &Job{PodTemplate: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{PriorityClassName: "low"}}, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
			},
		},
		Chart{
			Kind: Kind{Group: "h.io", Version: "v1", Kind: "Chart"}, Chart: "chart", MaxHistory: -1, Wait: true, Drift: "warn",
			DriftIgnore: []DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}, Adopt: true, CRDs: "skip", TemplatesInSpec: []string{"spec.config"},
			ReleaseName: "spec.name", ReleaseNamespace: "there", ValuesFrom: []ValuesFrom{{"Secret", "spec.secret", "k", "a.b", true}, {Kind: "ConfigMap", Name: "sizes"}},
			ValuesFromInSpec: "spec.valuesFrom",
		},
	}
}

func TestAWatchInGoIsThatOfTheFile(t *testing.T) {
	files := map[string]string{"play.yml": "[]", "watches.yaml": everyField, "chart/Chart.yaml": chartFiles["chart/Chart.yaml"]}
	m := managerIn(t, files)
	list, err := watches.Load("watches.yaml", watches.Search{Dir: directoryOf(t, m)})
	if err != nil {
		t.Fatal(err)
	}
	for i, made := range inGo() {
		got, err := made.resolve(m.inner)
		if err != nil {
			t.Fatal(err)
		}
		list[i].Line = 0
		asText := cmp.Transformer("text", func(s labels.Selector) string { return s.String() })
		if diff := cmp.Diff(list[i], got.Watch, asText, cmpopts.IgnoreFields(watches.Watch{}, "Paused")); diff != "" {
			t.Errorf("%T (-file +Go):\n%s", made, diff)
		}
	}
}

// directoryOf is where the manager's relative paths begin.
func directoryOf(t *testing.T, m *Manager) string {
	t.Helper()
	made, err := Playbook{Kind: widget, Playbook: "play.yml"}.resolve(m.inner)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(made.Content.Playbook)
}

// TestEveryFieldOfTheFileIsThereInGo reads the schema of the file.
func TestEveryFieldOfTheFileIsThereInGo(t *testing.T) {
	var schema struct {
		Definitions struct {
			Watch struct {
				Properties map[string]any `json:"properties"`
			} `json:"watch"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(watches.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	elsewhere := []string{
		"group", "version", "kind", // Kind
		"overrideValues", // the option, which other content has too
		"dryRunOption",   // It has no effect.
	}
	inGo := elsewhere
	for _, one := range []any{Role{}, Playbook{}, Chart{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(one)) {
			inGo = append(inGo, f.Tag.Get("watch"))
		}
	}
	if len(schema.Definitions.Watch.Properties) < 30 {
		t.Errorf("the schema has %d fields", len(schema.Definitions.Watch.Properties))
	}
	for field := range schema.Definitions.Watch.Properties {
		if !slices.Contains(inGo, field) {
			t.Errorf("no field of a watch in Go is %s", field)
		}
	}
}

func TestWhatIsWrongWithAWatchInGo(t *testing.T) {
	m := managerIn(t, chartFiles)
	for why, test := range map[string]struct {
		watch Watch
		opts  []WatchOption
		want  []string
	}{
		"fields":          {Chart{Kind: Kind{Version: "v1"}, Chart: "nowhere", Drift: "wrong", Settings: Settings{ReconcilePeriod: -1}}, nil, []string{"ensign.Chart: Kind.Kind: ", "ensign.Chart: Chart: \"nowhere\" was not found", "ensign.Chart: Drift: ", "ensign.Chart: ReconcilePeriod: "}},
		"no content":      {Playbook{Kind: widget}, nil, []string{"ensign.Playbook", "no playbook"}},
		"no engine":       {Custom{Kind: widget}, nil, []string{"ensign.Custom: Engine"}},
		"a finalizer":     {Custom{Kind: widget, Engine: engine{}, Finalizer: "kubernetes"}, nil, []string{"ensign.Custom: Finalizer"}},
		"all the options": {Chart{Kind: widget, Chart: "chart"}, []WatchOption{OverrideValues(map[string]any{"a": func() {}}), ReconcilePeriod(-1), MaxHistory(-2), Annotation("a b", noValues), Annotation(watches.ChartAnnotations+"mine", noValues), Selector(metav1.LabelSelector{MatchLabels: map[string]string{"a": "?"}})}, []string{"watch g.io/v1, Kind=Widget: OverrideValues: ", "ReconcilePeriod: -1ns is less than 0", "MaxHistory: -2", "invalid name of an annotation: \"a b\"", "choose another prefix", "Selector: "}},
		"a history of no": {Custom{Kind: widget, Engine: engine{}}, []WatchOption{MaxHistory(1)}, []string{"MaxHistory: the watch has no chart"}},
	} {
		t.Run(why, func(t *testing.T) {
			err := m.AddWatch(test.watch, test.opts...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in\n%s", want, err)
				}
			}
			if strings.Contains(err.Error(), ":0:") || strings.Contains(err.Error(), "line ") {
				t.Errorf("there is no line in Go: %s", err)
			}
		})
	}
}

// engine is a kind of content that does nothing.
type engine struct {
	content.EngineDefaults
	content.WorkDefaults
}

func (e engine) Prepare(context.Context, content.Request) (content.Work, *content.Outcome) {
	return e, nil
}

func (e engine) Run(ctx context.Context, _ content.Job) content.Result {
	return content.ResultOf(ctx, nil)
}

func TestOptions(t *testing.T) {
	no := func(*unstructured.Unstructured) bool { return false }
	yes := func(*unstructured.Unstructured) bool { return true }
	m := managerIn(t, chartFiles)
	w, err := Chart{Kind: widget, Chart: "chart"}.resolve(m.inner)
	if err != nil {
		t.Fatal(err)
	}
	before := w.Watch.Chart
	for _, opt := range []WatchOption{
		Selector(metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}), ReconcilePeriod(time.Hour), Timeout(time.Minute), MaxConcurrentReconciles(2), MaxHistory(3), MaxRunnerArtifacts(4),
		OverrideValues(map[string]any{"a": map[string]any{"b": 1}}), OverrideValues(map[string]any{"a": map[string]any{"c": 2}}), CodeVersion("1"), Annotation("g.io/size", noValues),
		Paused(no), Paused(yes), Paused(no), Watches(source.Func(nil)),
	} {
		if err := opt(&w); err != nil {
			t.Fatal(err)
		}
	}
	if before.MaxHistory != 10 {
		t.Error("the chart of another watch changed")
	}
	got := []any{w.Watch.Selector.String(), w.ReconcilePeriod, w.Timeout, w.MaxConcurrentReconciles, w.Watch.Chart.MaxHistory, w.MaxRunnerArtifacts, w.Hooks.Overrides, w.Hooks.Version, w.TriggerAnnotations, w.Watch.Paused(&unstructured.Unstructured{}), len(w.Sources)}
	want := []any{"a=b", time.Hour, time.Minute, 2, 3, 4, map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}}, "1", []string{"g.io/size"}, true, 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNilIsNamed(t *testing.T) {
	m := managerIn(t, nil)
	err := m.AddWatch(Custom{Kind: widget, Engine: engine{}}, TranslateValues(nil), PreHook(nil), PostHook(nil), Annotation("g.io/size", nil), Paused(nil), Watches(nil), nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"TranslateValues", "PreHook", "PostHook", "Annotation", "Paused", "Watches", "an option is nil"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in: %v", name, err)
		}
	}
}

func TestAKindIsWatchedOnce(t *testing.T) {
	m := managerIn(t, nil)
	other := widget
	other.Version = "v2"
	if err := m.AddWatch(Custom{Kind: widget, Engine: engine{}}); err != nil {
		t.Fatal(err)
	}
	if err := m.AddWatch(Custom{Kind: other, Engine: engine{}}); err == nil {
		t.Error("no error")
	}
}
