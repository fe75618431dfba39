package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ensign-operator/ensign/internal/author/kinds"
	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	ansible = watches.AnsibleAnnotations
	chart   = watches.ChartAnnotations
	custom  = watches.CustomAnnotations
)

func TestAnnotationsOfAnOrder(t *testing.T) {
	ofChart := store(func(w *watches.Watch) { w.Chart = &watches.Chart{} })
	for name, test := range map[string]struct {
		order            Order
		kind             kinds.Kind
		metadata, status string
		want             map[string]any
	}{
		"a run":                       {Order{Reconcile, "now"}, store(), "", `{}`, map[string]any{ansible + "reconcile-requested-at": "now"}},
		"a pause":                     {Order{Suspend, "now"}, store(), "", `{}`, map[string]any{ansible + "paused": "true"}},
		"its end":                     {Order{Resume, ""}, store(), "", `{}`, map[string]any{ansible + "paused": nil}},
		"its end, with a known run":   {Order{Resume, "now"}, store(), "", `{}`, map[string]any{ansible + "paused": nil, ansible + "reconcile-requested-at": "now"}},
		"a chart":                     {Order{Suspend, ""}, ofChart, "", `{}`, map[string]any{chart + "paused": "true"}},
		"what shows that it is one":   {Order{Suspend, ""}, unknown(), `,"finalizers":["uninstall-helm-release"]`, `{}`, map[string]any{chart + "paused": "true"}},
		"what shows it by its status": {Order{Suspend, ""}, unknown(), "", `{"conditions":[],"deployedRelease":{}}`, map[string]any{chart + "paused": "true"}},
		"what shows that it is none":  {Order{Suspend, ""}, unknown(), "", `{"conditions":[{"type":"Failure","ansibleResult":{"ok":1}}]}`, map[string]any{ansible + "paused": "true"}},
		"what a Go program brings":    {Order{Suspend, ""}, store(func(w *watches.Watch) { w.Custom = &watches.ContentKind{} }), "", `{}`, map[string]any{custom + "paused": "true"}},
		"its own prefix":              {Order{Suspend, ""}, store(func(w *watches.Watch) { w.Custom = &watches.ContentKind{AnnotationPrefix: "a.b/"} }), "", `{}`, map[string]any{"a.b/paused": "true"}},
		"what ran, and shows nothing": {Order{Suspend, ""}, unknown(), "", shows(succeeded), map[string]any{ansible + "paused": "true", chart + "paused": "true", custom + "paused": "true"}},
		"what may be any":             {Order{Suspend, ""}, unknown(), "", `{}`, map[string]any{ansible + "paused": "true", chart + "paused": "true", custom + "paused": "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.order.annotations(test.kind, cr(t, test.metadata, test.status))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrdersWithoutAnEffect(t *testing.T) {
	paused := `,"annotations":{"` + ansible + `paused":"true"}`
	deleted := `,"deletionTimestamp":"2026-11-24T11:00:00Z"`
	selective := store(func(w *watches.Watch) { w.Selector = labels.SelectorFromSet(labels.Set{"a": "b"}) })
	for name, test := range map[string]struct {
		verb     Verb
		kind     kinds.Kind
		metadata string
		want     string // "": none
		status   []string
	}{
		"a run of what is paused":       {Reconcile, store(), paused, "it is paused", nil},
		"a run after a pause":           {Reconcile, store(), strings.Replace(paused, `"true"`, `"false"`, 1), "", nil},
		"a run of what goes":            {Reconcile, store(), deleted, "it is being deleted", nil},
		"a run of what is not selected": {Reconcile, selective, "", "do not match the selector", nil},
		"a second pause":                {Suspend, store(), paused, "", nil},
		"the end of no pause":           {Resume, store(), "", "it is not paused", nil},
		"the end of a pause":            {Resume, store(), paused, "", nil},
		"the end of a run":              {Cancel, store(), "", "", []string{isRunning}},
		"the end of no run":             {Cancel, store(), "", "shows no run", []string{isAwaiting, succeeded}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Order{Verb: test.verb}.check(test.kind, cr(t, test.metadata, shows(test.status...)))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
			if errors.Is(err, ErrUnchanged) != (test.want == "it is not paused" || test.verb == Cancel && test.want != "") {
				t.Errorf("%v: is it a failure?", err)
			}
		})
	}
}

func TestWhenAnOrderIsOver(t *testing.T) {
	paused := `,"annotations":{"` + ansible + `paused":"true"}`
	answered := `{"reconcileRequestedAt":"now","conditions":[` + isRunning + `]}`
	for name, test := range map[string]struct {
		verb             Verb
		metadata, status string
		want, wantErr    bool
	}{
		"a run that was not requested":        {Reconcile, "", shows(isAwaiting, succeeded), false, false},
		"the answer to another request":       {Reconcile, "", strings.Replace(answered, "now", "before", 1), false, false},
		"the answer, while the next one runs": {Reconcile, "", answered, true, false},
		"a pause that came before":            {Reconcile, paused, shows(isPausedNow), false, true},
		"a pause that is over":                {Resume, "", shows(isPausedNow), false, false},
		"a pause that is to be shown":         {Suspend, paused, shows(isRunning), false, false},
		"a pause":                             {Suspend, paused, shows(isPausedNow, failed), true, false},
		"a pause that somebody has ended":     {Suspend, "", shows(isPausedNow), false, true},
		"a run that is to end":                {Cancel, "", shows(isRunning), false, false},
		"a run that was canceled":             {Cancel, "", shows(isCanceled), true, false},
		"one that succeeded before":           {Cancel, "", shows(isAwaiting, succeeded), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Order{Verb: test.verb, Request: "now"}.over(store(), cr(t, test.metadata, test.status))
			if got != test.want || (err != nil) != test.wantErr {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

func TestWhatACacheStillHasIsOlderThanTheOrder(t *testing.T) {
	for name, test := range map[string]struct {
		shown, given string
		want         bool
	}{
		"the pause before":                      {"99", "100", true},
		"the order":                             {"100", "100", false},
		"what came of it":                       {"101", "100", false},
		"versions without an order are no news": {"b", "c", false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := cr(t, "", `{}`)
			shown.SetResourceVersion(test.shown)
			if got := isOlder(shown, test.given); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
