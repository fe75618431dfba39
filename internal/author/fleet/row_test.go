package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/watches"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func store(change ...func(*watches.Watch)) kinds.Kind {
	watch := watches.Watch{GVK: schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Store"}, Selector: labels.Everything(), ManageStatus: true}
	for _, c := range change {
		c(&watch)
	}
	return kinds.Kind{Watch: watch, Known: true}
}

func unknown() kinds.Kind {
	kind := store()
	kind.Known = false
	return kind
}

// cr returns a CR with further metadata, which begin with a comma, and a status, both as JSON.
func cr(t *testing.T, metadata, status string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := `{"apiVersion":"shop.example.com/v1","kind":"Store","metadata":{"namespace":"shop","name":"a","generation":3` + metadata + `},"status":` + status + `}`
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

// The conditions that the manager writes.
const (
	isRunning   = `{"type":"Running","status":"True","reason":"Running","message":"Running reconciliation: task \"t\""}`
	isAwaiting  = `{"type":"Running","status":"True","reason":"Successful","message":"Awaiting next reconciliation","ansibleResult":{"completion":"2026-11-24T11:50:00.5+00:00"}}`
	isPausedNow = `{"type":"Running","status":"False","reason":"Paused","message":"Nothing is run while the resource is paused"}`
	isCanceled  = `{"type":"Running","status":"False","reason":"Canceled","message":"Reconciliation was canceled"}`
	isRefused   = `{"type":"Running","status":"False","reason":"StatusRefused","message":"The schema"}`
	hasEnded    = `{"type":"Running","status":"False","reason":"Failed","message":"Last reconciliation failed"}`
	succeeded   = `{"type":"Successful","status":"True","reason":"Successful","lastTransitionTime":"2026-11-24T11:00:00Z"}`
	failed      = `{"type":"Failure","status":"True","reason":"Timeout","message":"too \u001b[2Jlate","lastTransitionTime":"2026-11-24T11:30:00Z"}`
	unhealthy   = `{"type":"Ready","status":"False","reason":"Unhealthy","message":"Deployment web: Available: 1/3"}`
	noFailure   = `{"type":"Failure","status":"False","reason":"Successful"}`
)

// isSlowed has the condition of a CR that is triggered too often.
const isSlowed = `{"type":"SlowedDown","status":"True","reason":"TriggeredTooOften","message":"Runs are slowed down: related: Secret a/\u001b[2Jb changed"}`

func TestARowSaysWhoIsSlowedDownAndByWhat(t *testing.T) {
	const want = `Runs are slowed down: related: Secret a/\x1b[2Jb changed`
	for name, test := range map[string]struct{ status, slowed, message string }{
		"a success":             {shows(isAwaiting, succeeded, noFailure, isSlowed), want, want},
		"a run that is at work": {shows(isRunning, succeeded, noFailure, isSlowed), want, `Running reconciliation: task "t"`},
		"one that is not":       {shows(isAwaiting, succeeded, noFailure), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			row := RowOf(store(), time.Hour, cr(t, "", test.status))
			if row.SlowedDown != test.slowed || row.Message != test.message || row.Failed {
				t.Errorf("got %+v", row)
			}
		})
	}
}

// ran returns a status with conditions and what it says of the last run, as JSON.
func ran(run string, conditions ...string) string {
	return strings.TrimSuffix(shows(conditions...), "}") + `,"contentRun":` + run + "}"
}

func shows(conditions ...string) string {
	return `{"observedGeneration":3,"conditions":[` + strings.Join(conditions, ",") + `]}`
}

func TestOutcomes(t *testing.T) {
	type shown struct {
		Outcome         Outcome
		Reason, Message string
		Failed          bool
	}
	for name, test := range map[string]struct {
		kind             kinds.Kind
		metadata, status string
		want             shown
	}{
		"no status":                             {store(), "", `{}`, shown{Pending, "", "no run has been reported", false}},
		"a status that others wrote":            {store(), "", `{"conditions":"many"}`, shown{Pending, "", "no run has been reported", false}},
		"the first run":                         {store(), "", shows(isRunning), shown{Running, "", `Running reconciliation: task "t"`, false}},
		"a success":                             {store(), "", shows(isAwaiting, succeeded, noFailure), shown{Successful, "", "", false}},
		"a failure":                             {store(), "", shows(hasEnded, failed), shown{Failed, "Timeout", `too \x1b[2Jlate`, true}},
		"a failure that is tried again":         {store(), "", shows(isRunning, failed), shown{Running, "Timeout", `Running reconciliation: task "t"`, true}},
		"a result that the schema refuse":       {store(), "", shows(isRefused), shown{Failed, "StatusRefused", "The schema", true}},
		"a success, and a child is not healthy": {store(), "", shows(isAwaiting, succeeded, noFailure, unhealthy, isSlowed), shown{Successful, "", "Deployment web: Available: 1/3", false}},
		"a success, and children that do not count": {store(), "", shows(isAwaiting, succeeded, noFailure, `{"type":"Ready","status":"True","message":"Last reconciliation succeeded; not watched: ConfigMap (blacklist)"}`),
			shown{Successful, "", "not watched: ConfigMap (blacklist)", false}},
		"a Ready of the content":       {store(), "", shows(isAwaiting, succeeded, noFailure, `{"type":"Ready","status":"True","message":"the shop is open"}`), shown{Successful, "", "", false}},
		"a run that somebody canceled": {store(), "", shows(isCanceled, `{"type":"Ready","status":"False","reason":"Canceled","message":"canceled by its annotation"}`), shown{Canceled, "", "canceled by its annotation", false}},
		"a manager that stopped":       {store(), "", shows(isCanceled, succeeded), shown{Canceled, "", "Reconciliation was canceled", false}},
		"a pause":                      {store(), "", shows(isPausedNow, succeeded, noFailure), shown{Paused, "", "Nothing is run while the resource is paused", false}},
		"a pause after a failure":      {store(), "", shows(isPausedNow, failed), shown{Paused, "Timeout", `too \x1b[2Jlate`, true}},
		"a deletion":                   {store(), `,"deletionTimestamp":"2026-11-24T11:00:00Z"`, shows(isRunning), shown{Deleting, "", `Running reconciliation: task "t"`, false}},
		"a finalizer that fails":       {store(), `,"deletionTimestamp":"2026-11-24T11:00:00Z"`, shows(hasEnded, failed), shown{Deleting, "Timeout", `too \x1b[2Jlate`, true}},
		"a finalizer of a former operator": {store(), `,"deletionTimestamp":"2026-11-24T11:00:00Z","finalizers":["a/old","b"]`, shows(isAwaiting, succeeded, noFailure),
			shown{Deleting, "", "it waits for finalizers that are not those of the watch: a/old, b", false}},
		"one beside the watch's own": {store(func(w *watches.Watch) { w.Finalizer = &watches.Finalizer{Name: "a/new"} }), `,"deletionTimestamp":"2026-11-24T11:00:00Z","finalizers":["a/old","a/new"]`, shows(isRunning),
			shown{Deleting, "", `Running reconciliation: task "t"`, false}},
		"finalizers of a watch that is not known": {unknown(), `,"deletionTimestamp":"2026-11-24T11:00:00Z","finalizers":["a/old"]`, shows(isRunning),
			shown{Deleting, "", `Running reconciliation: task "t"`, false}},
		"labels that do not match": {store(func(w *watches.Watch) { w.Selector = labels.SelectorFromSet(labels.Set{"a": "b"}) }), "", shows(isAwaiting, succeeded),
			shown{Ignored, "", "its labels do not match the selector of the watch", false}},
		"no status is managed": {store(func(w *watches.Watch) { w.ManageStatus = false }), "", shows(), shown{Unreported, "", "manageStatus of the watch is false", false}},
	} {
		t.Run(name, func(t *testing.T) {
			row := RowOf(test.kind, time.Hour, cr(t, test.metadata, test.status))
			if diff := cmp.Diff(test.want, shown{row.Outcome, row.Reason, row.Message, row.Failed}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	at := func(text string) string { return "2026-11-24T" + text + "Z" }
	good := shows(isAwaiting, succeeded, noFailure)
	release := `,"finalizers":["helm.sdk.operatorframework.io/uninstall-release"]`
	annotated := func(prefix string) string { return `,"annotations":{"` + prefix + `reconcile-period":"30m"}` }
	for name, test := range map[string]struct {
		kind             kinds.Kind
		metadata, status string
		last, next       string
	}{
		"the flag's period":                 {store(), "", good, at("11:50:00.5"), at("12:50:00.5")},
		"the watch's":                       {store(func(w *watches.Watch) { w.ReconcilePeriod = time.Minute }), "", good, at("11:50:00.5"), at("11:51:00.5")},
		"the annotation's":                  {store(), annotated(watches.AnsibleAnnotations), good, at("11:50:00.5"), at("12:20:00.5")},
		"one below another prefix":          {store(), annotated(watches.ChartAnnotations), good, at("11:50:00.5"), at("12:20:00.5")},
		"none for a kind that is not known": {unknown(), "", good, at("11:50:00.5"), ""},
		"but the annotation's":              {unknown(), annotated(watches.AnsibleAnnotations), good, at("11:50:00.5"), at("12:20:00.5")},
		"none after a chart's success, whose period leads to a look": {unknown(), release + annotated(watches.ChartAnnotations), good, at("11:50:00.5"), ""},
		"what a Go program brings": {
			store(func(w *watches.Watch) { w.Custom = &watches.ContentKind{} }), annotated(watches.CustomAnnotations), good, at("11:50:00.5"), at("12:20:00.5"),
		},
		"what a Go program brings and looks first": {
			store(func(w *watches.Watch) { w.Custom = &watches.ContentKind{ChecksEachPeriod: true} }), "", good, at("11:50:00.5"), "",
		},
		"an annotation that does not parse":        {store(), strings.Replace(annotated(watches.AnsibleAnnotations), "30m", "often", 1), good, at("11:50:00.5"), ""},
		"0s is never":                              {store(), strings.Replace(annotated(watches.AnsibleAnnotations), "30m", "0s", 1), good, at("11:50:00.5"), ""},
		"a failure of which nothing else is known": {store(), "", shows(hasEnded, failed), at("11:30:00"), ""},
		"a failure again, of which the schema keeps no more than the conditions": {
			store(), "", shows(strings.Replace(hasEnded, `"message"`, `"lastTransitionTime":"2026-11-24T11:58:00Z","message"`, 1), failed), at("11:58:00"), "",
		},
		"a failure again, which no condition tells":  {store(), "", ran(`{"endedAt":"2026-11-24T11:58:00Z","nextAt":"2026-11-24T12:03:00Z"}`, hasEnded, failed), at("11:58:00"), at("12:03:00")},
		"a failure of which no kind is known":        {unknown(), "", ran(`{"endedAt":"2026-11-24T11:58:00Z","nextAt":"2026-11-24T12:03:00Z"}`, hasEnded, failed), at("11:58:00"), at("12:03:00")},
		"a finalizer's failure":                      {store(), `,"deletionTimestamp":"2026-11-24T11:00:00Z"`, ran(`{"endedAt":"2026-11-24T11:58:00Z","nextAt":"2026-11-24T12:03:00Z"}`, hasEnded, failed), at("11:58:00"), at("12:03:00")},
		"no retry while a run is at work":            {store(), "", ran(`{"endedAt":"2026-11-24T11:58:00Z","nextAt":"2026-11-24T11:59:00Z"}`, isRunning, failed), at("11:58:00"), ""},
		"what a role asked for":                      {store(), "", ran(`{"endedAt":"2026-11-24T11:50:00Z","nextAt":"2026-11-24T12:01:00Z"}`, isAwaiting, succeeded), at("11:50:00"), at("12:01:00")},
		"the period of a success":                    {store(), "", ran(`{"endedAt":"2026-11-24T11:50:01Z"}`, isAwaiting, succeeded), at("11:50:01"), at("12:50:01")},
		"a pause":                                    {store(), "", ran(`{"endedAt":"2026-11-24T11:58:00Z","nextAt":"2026-11-24T12:03:00Z"}`, isPausedNow, failed), at("11:58:00"), ""},
		"without a completion nobody knows":          {store(), "", shows(succeeded, noFailure), at("11:00:00"), ""},
		"a generation that is to come runs any time": {store(), "", strings.Replace(good, `tion":3`, `tion":2`, 1), at("11:50:00.5"), ""},
		"nothing ran":                                {store(), "", `{}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			row := RowOf(test.kind, time.Hour, cr(t, test.metadata, test.status))
			text := func(at *time.Time) string {
				if at == nil {
					return ""
				}
				return at.Format(time.RFC3339Nano)
			}
			if diff := cmp.Diff([]string{test.last, test.next}, []string{text(row.LastRun), text(row.NextRun)}); diff != "" {
				t.Errorf("last and next run (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheTable(t *testing.T) {
	row := RowOf(store(), time.Hour, cr(t, "", shows(isAwaiting, succeeded, noFailure)))
	late := RowOf(store(func(w *watches.Watch) { w.ReconcilePeriod = time.Minute }), 0, cr(t, "", shows(isAwaiting, succeeded, noFailure)))
	bad := RowOf(store(), time.Hour, cr(t, "", strings.Replace(shows(hasEnded, failed), `tion":3`, `tion":2`, 1)))
	row.Ready, late.Ready = "True", "True"
	bad.SlowedDown, bad.Version, bad.Digest = "by a Secret", "1.4\t0", "3f2a9c1d0b12"
	bad.Namespace, bad.Message = "", "a\tlong\nmessage "+strings.Repeat("x", 80)
	for name, test := range map[string]struct {
		width int
		wide  bool
		want  string
	}{
		"for a terminal": {100, false, `
KIND   NAMESPACE  NAME  READY  OUTCOME     REASON   GENERATION  LAST   NEXT  SLOWED  MESSAGE
Store  shop       a     True   Successful  -        3           9m59s  50m   -
Store  shop       a     True   Successful  -        3           9m59s  due   -
Store  -          a     -      Failed      Timeout  2/3         30m    -     yes     a long message…
`},
		"wide": {100, true, `
KIND   NAMESPACE  NAME  READY  OUTCOME     REASON   GENERATION  LAST   NEXT  SLOWED  PERIOD  VERSION               MESSAGE
Store  shop       a     True   Successful  -        3           9m59s  50m   -       1h0m0s  -
Store  shop       a     True   Successful  -        3           9m59s  due   -       1m0s    -
Store  -          a     -      Failed      Timeout  2/3         30m    -     yes     1h0m0s  1.4 0 (3f2a9c1d0b12)  a long message ` + strings.Repeat("x", 80) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			table := NewTable(&out, test.width, test.wide)
			for _, rows := range [][]Row{{row, late, bad}} {
				if err := table.Print(rows, noon); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(test.want, "\n"+out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATableThatGoesOnKeepsItsColumns(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out, 0, false)
	row := RowOf(store(), time.Hour, cr(t, "", `{}`))
	row.Name = "a-name-that-is-long"
	first := table.Print([]Row{row}, noon)
	row.Name = "short"
	if err := table.Print([]Row{row}, noon); first != nil || err != nil {
		t.Fatal(first, err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 4 || strings.Index(lines[1], "Pending") != strings.Index(lines[2], "Pending") || strings.Contains(lines[2], "KIND") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestGenerations(t *testing.T) {
	for status, want := range map[string]string{`{}`: "0/3", `{"observedGeneration":-1}`: "0/3", `{"observedGeneration":2}`: "2/3", `{"observedGeneration":3}`: "3"} {
		if got := RowOf(store(), 0, cr(t, "", status)).generations(); got != want {
			t.Errorf("%s: want %q, got %q", status, want, got)
		}
	}
}

func TestReady(t *testing.T) {
	ready := func(status, generation string) string {
		return `{"conditions":[{"type":"Ready","status":"` + status + `"` + generation + `}]}`
	}
	for status, want := range map[string]string{
		ready("True", `,"observedGeneration":3`): "True", ready("True", ""): "True", ready("True", `,"observedGeneration":2`): "Unknown",
		ready("False", `,"observedGeneration":2`): "False", `{}`: "",
	} {
		if got := RowOf(store(), 0, cr(t, "", status)).Ready; got != want {
			t.Errorf("%s: want %q, got %q", status, want, got)
		}
	}
}
