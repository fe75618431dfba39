package engine

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/release/common"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/content"
)

const secret = "quite-secret"

// fromObjects is a watch whose releases take values from the Secret "login", a ConfigMap that need
// not be there, and what the CR lists.
func fromObjects(watch *watches.Watch) {
	watch.Chart.ValuesFrom = []watches.ValuesFrom{
		{Kind: "ConfigMap", Name: watches.ReleaseText{Fixed: "sizes"}, ValuesAt: watches.ValuesAt{Key: "values.yaml", Optional: true}},
		{Kind: "Secret", Name: watches.ReleaseText{Path: watches.Path{"spec", "login"}}, ValuesAt: watches.ValuesAt{Key: "password", TargetPath: []string{"auth", "password"}}},
	}
	watch.Chart.ValuesFromInSpec = watches.Path{"spec", "valuesFrom"}
}

func secretWith(data map[string]string) map[string]any {
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "login"}, "data": encoded}
}

func configMapWith(values string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "sizes"}, "data": map[string]any{"values.yaml": values}}
}

func TestValuesComeFromObjects(t *testing.T) {
	login := map[string]any{"login": "login"}
	listed := map[string]any{"login": "login", "valuesFrom": []any{map[string]any{"kind": "ConfigMap", "name": "mine", "key": "values.yaml"}}}
	for why, test := range map[string]struct {
		spec    map[string]any
		sources map[string]map[string]any
		want    map[string]any // the values of the order; nil: there is none
		says    string
	}{
		"the Secret alone": {
			spec: login, sources: map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": secret})},
			want: map[string]any{"login": "login", "auth": map[string]any{"password": secret}},
		},
		"the spec is stronger, and the rest is merged": {
			spec:    map[string]any{"login": "login", "size": int64(3), "auth": map[string]any{"user": "a"}},
			sources: map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": secret}), "configmaps/sizes": configMapWith("size: 1\nauth: {user: b, more: c}")},
			want:    map[string]any{"login": "login", "size": int64(3), "auth": map[string]any{"user": "a", "more": "c", "password": secret}},
		},
		"what the CR lists is stronger than what the watch has, and no value itself": {
			spec: listed,
			sources: map[string]map[string]any{
				"secrets/login": secretWith(map[string]string{"password": secret}), "configmaps/sizes": configMapWith("size: 1"), "configmaps/mine": configMapWith("size: 2"),
			},
			want: map[string]any{"login": "login", "size": int64(2), "auth": map[string]any{"password": secret}},
		},
		"an object that is not there":       {spec: login, says: `Secret "login" not found in the namespace ns`},
		"a key that is not there":           {spec: login, sources: map[string]map[string]any{"secrets/login": secretWith(map[string]string{"other": secret})}, says: `the Secret "login" has no key "password"`},
		"one of the CR's that is not there": {spec: listed, sources: map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": secret})}, says: `ConfigMap "mine" not found`},
		"an object that makes no values":    {spec: login, sources: map[string]map[string]any{"configmaps/sizes": configMapWith("- a"), "secrets/login": secretWith(map[string]string{"password": secret})}, says: "ConfigMap sizes, key values.yaml: it is not a YAML mapping"},
		"more than is parsed":               {spec: login, sources: map[string]map[string]any{"configmaps/sizes": configMapWith("- a" + strings.Repeat("\n-", 100_000)), "secrets/login": secretWith(map[string]string{"password": secret})}, says: "more than 100000 lines, commas and brackets together"},
		"what the chart's schema refuses":   {spec: login, sources: map[string]map[string]any{"configmaps/sizes": configMapWith("size: none"), "secrets/login": secretWith(map[string]string{"password": secret})}, says: "at '/size': got string, want integer"},
	} {
		t.Run(why, func(t *testing.T) {
			w := newWorld(t, fromObjects)
			w.addTemplate(`{{ tpl "a" . }}`)
			w.sources = test.sources
			result, settled := w.run(t.Context(), resource(test.spec, nil), false)
			if test.want == nil {
				if len(w.orders) > 0 || !settled || !result.WaitingForObject || result.Outcome.Reason != "InvalidValues" || !strings.Contains(result.Outcome.Message, test.says) || shownAs(result) != irrecon {
					t.Errorf("settled %v, orders %v: %+v", settled, w.orders, result)
				}
			} else if diff := cmp.Diff(test.want, w.orders[0].Values); diff != "" || len(w.orders) != 1 || settled || result.WaitingForObject {
				t.Errorf("orders %v, %+v: %s", w.orders, result, diff)
			}
			if strings.Contains(fmt.Sprint(result), secret) {
				t.Errorf("the result shows the Secret: %+v", result)
			}
		})
	}
}

// chart-exec decides what of it the chart may have.
func TestTextOfObjectsIsHandedOverAsUntrusted(t *testing.T) {
	w := newWorld(t, fromObjects)
	w.addTemplate(`{{ tpl "a" . }}`)
	w.sources = map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": "{{ " + secret + " }}"})}
	w.run(t.Context(), resource(map[string]any{"login": "login", "own": "{{ 1 }}"}, nil), false)
	want := order.Templates{Secret: true, Untrusted: []order.Text{{Path: "spec.auth.password", Text: "{{ " + secret + " }}", OfObject: true}, {Path: "spec.own", Text: "{{ 1 }}"}}}
	if diff := cmp.Diff(want, w.orders[0].Templates); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatComesFromASecretIsNotShown(t *testing.T) {
	w := newWorld(t, fromObjects)
	w.sources = map[string]map[string]any{"secrets/login": secretWith(map[string]string{"password": secret})}
	cr := resource(map[string]any{"login": "login"}, nil)
	result, _ := w.run(t.Context(), cr, false)
	shown := result.Fields[deployedRelease].(map[string]any)
	if result.Outcome.Verdict != content.Succeeded || shown["manifest"] != redacted || shown["name"] != "r" || !strings.HasPrefix(result.Conditions[1].Message, "# Not shown") {
		t.Errorf("got %+v", result)
	}
	again, settled := w.run(t.Context(), cr, false)
	if diff := cmp.Diff(result.Conditions, again.Conditions); diff != "" || !settled || cmp.Diff(result.Fields, again.Fields) != "" {
		t.Errorf("the status changes at rest: %s", diff)
	}

	w.sources["secrets/login"] = secretWith(map[string]string{"password": "another-one"})
	w.releases[0].Config = map[string]any{"login": "login", "auth": map[string]any{"password": secret}}
	w.seal(w.releases[0])
	w.outcome = content.Outcome{Verdict: content.Failed, Reason: content.ReasonFailed, Message: "bad another-one, and no way back to " + secret + " of login"}
	result, _ = w.run(t.Context(), cr, false)
	if got := result.Outcome.Message; got != "bad (redacted), and no way back to (redacted) of login" || result.Conditions[1].Message != got || !result.WaitingForObject {
		t.Errorf("a failure shows: %+v", result)
	}
	if last := w.orders[len(w.orders)-1]; last.Action != order.Upgrade {
		t.Errorf("a changed Secret makes %s", last.Action)
	}

	delete(w.sources, "secrets/login")
	w.outcome.Message = "the hook says " + secret
	result, _ = w.run(t.Context(), cr, true)
	if result.Outcome.Message != "the hook says (redacted)" {
		t.Errorf("a deletion shows: %+v", result)
	}
}

// Without Secrets nothing is kept from people.
func TestWhatComesFromConfigMapsIsShown(t *testing.T) {
	w := newWorld(t, func(watch *watches.Watch) {
		fromObjects(watch)
		watch.Chart.ValuesFrom = watch.Chart.ValuesFrom[:1]
	})
	w.sources = map[string]map[string]any{"configmaps/sizes": configMapWith("size: 3")}
	result, _ := w.run(t.Context(), resource(nil, nil), false)
	if shown := result.Fields[deployedRelease].(map[string]any); !strings.Contains(fmt.Sprint(shown["manifest"]), "ConfigMap") || result.Conditions[1].Message != `some \x1b notes` {
		t.Errorf("got %+v", result)
	}
}

func TestALookAtValuesThatIsRefusedIsRepeated(t *testing.T) {
	w := newWorld(t, fromObjects)
	w.forbidden = "any"
	result, settled := w.run(t.Context(), resource(map[string]any{"login": "login"}, nil), false)
	if settled || result.WaitingForObject || result.Outcome.Reason != content.ReasonFailed || !strings.Contains(result.Outcome.Message, `read the ConfigMap "sizes": not for you`) {
		t.Errorf("settled %v: %+v", settled, result)
	}
}

func TestASpecThatNamesNoSourceIsRefused(t *testing.T) {
	w := newWorld(t, fromObjects)
	for _, spec := range []map[string]any{nil, {"login": "a/b"}, {"login": "login", "valuesFrom": "all"}} {
		if _, refusal := w.engine.Prepare(t.Context(), content.Request{Object: resource(spec, nil)}); refusal == nil || refusal.Reason != content.ReasonInvalidSpec {
			t.Errorf("%v: got %+v", spec, refusal)
		}
	}
	w.has(common.StatusDeployed, "")
	if result, _ := w.run(t.Context(), resource(nil, nil), true); result.Outcome.Verdict != content.Succeeded {
		t.Errorf("such a CR cannot be deleted: %+v", result)
	}
}
