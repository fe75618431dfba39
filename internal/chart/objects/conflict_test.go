package objects

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

const head = "apiVersion: v1\nkind: Service\n"

// changed is a Service of which somebody has changed a port's number, added others, and set more.
const changed = head + `
metadata:
  name: a
  resourceVersion: "7"
  managedFields:
  - {manager: helm, operation: Apply, apiVersion: v1, fieldsV1: {f:spec: {f:ports: {'k:{"port":90,"protocol":"TCP"}': {.: {}, f:name: {}, f:port: {}}}}}}
  - manager: somebody
    operation: Update
    apiVersion: v1
    fieldsV1:
      f:metadata: {f:labels: {f:x: {}}}
      f:spec:
        f:sessionAffinity: {}
        f:ports:
          'k:{"port":9999,"protocol":"TCP"}': {.: {}, f:name: {}, f:port: {}}
          'k:{"port":7000,"protocol":"TCP"}': {.: {}, f:name: {}, f:port: {}}
          'k:{"port":90,"protocol":"TCP"}': {f:targetPort: {}}
  - {manager: scaler, operation: Update, apiVersion: v1, subresource: scale, fieldsV1: {f:spec: {f:ports: {'k:{"port":7000,"protocol":"TCP"}': {.: {}}}}}}
spec:
  sessionAffinity: ClientIP
  ports:
  - {name: http, port: 9999, protocol: TCP, nodePort: 1}
  - {name: extra, port: 7000, protocol: TCP}
  - {name: metrics, port: 90, protocol: TCP, targetPort: 5, nodePort: 2}
`

const chart = head + "metadata: {name: a}\nspec: {ports: [{name: http, port: 80}, {name: metrics, port: 90, targetPort: 90}]}"

func names(object *unstructured.Unstructured) (all []string) {
	ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
	for _, port := range ports {
		one, _ := port.(map[string]any)
		all = append(all, fmt.Sprintf("%v %v %v", one["name"], one["port"], one["nodePort"]))
	}
	slices.Sort(all)
	return all
}

// invalid is a refusal of the API server.
func invalid(at *field.Path) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "a", field.ErrorList{field.Duplicate(at, "http")})
}

// given returns the managed fields of each manager after what goes was given to the applier.
func given(t *testing.T, live *unstructured.Unstructured, found *resolution) (texts []string) {
	t.Helper()
	entries, err := giveFields(live, fieldsAt(live, found.going))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		texts = append(texts, entry.Manager+": "+string(entry.FieldsV1.GetRawBytes()))
	}
	return texts
}

func TestWhatStandsInTheChartsPlaceGoesAndNothingElse(t *testing.T) {
	tries := 0
	oneName := func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		tries++
		if strings.Count(fmt.Sprint(names(object)), "http") > 1 {
			return nil, invalid(field.NewPath("spec"))
		}
		return object, nil
	}
	found, err := (&conflict{read(t, changed), read(t, chart), read(t, chart), oneName}).resolve(nil, invalid(field.NewPath("spec", "ports").Index(1).Child("name")))
	if err != nil || found == nil {
		t.Fatalf("got %v, %v", found, err)
	}
	if got := names(found.applied); !slices.Equal(got, []string{"extra 7000 <nil>", "http 80 <nil>", "metrics 90 2"}) {
		t.Errorf("got the ports %q", got)
	}
	entries := given(t, read(t, changed), found)
	for i, want := range map[int]struct{ moved, extra bool }{0: {true, false}, 1: {false, true}, 2: {false, true}} {
		text := entries[i]
		if strings.Contains(text, "9999") != want.moved || strings.Contains(text, "7000") != want.extra {
			t.Errorf("the fields of manager %d are %s", i, text)
		}
	}
	if tries > 3 {
		t.Errorf("asked the API server %d times about two ports", tries)
	}
}

// rolling is a Deployment whose strategy nobody holds, because the API server has set it.
const rolling = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  resourceVersion: "7"
  managedFields:
  - {manager: helm, operation: Apply, apiVersion: apps/v1, fieldsV1: {f:spec: {f:selector: {}}}}
  - {manager: autoscaler, operation: Update, apiVersion: apps/v1, subresource: scale, fieldsV1: {f:spec: {f:replicas: {}}}}
spec:
  replicas: 3
  revisionHistoryLimit: 10
  selector: {matchLabels: {a: b}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
`

const recreated = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, strategy: {type: Recreate}}}"

func TestADefaultThatNobodyHoldsGoes(t *testing.T) {
	at := field.NewPath("spec", "strategy", "rollingUpdate")
	try := func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if _, there, _ := unstructured.NestedMap(object.Object, "spec", "strategy", "rollingUpdate"); there {
			return nil, invalid(at)
		}
		return object, nil
	}
	found, err := (&conflict{read(t, rolling), read(t, recreated), read(t, recreated), try}).resolve(nil, invalid(at))
	if err != nil || found == nil {
		t.Fatalf("got %v, %v", found, err)
	}
	spec, _, _ := unstructured.NestedMap(found.applied.Object, "spec")
	if got := fmt.Sprint(spec["strategy"], spec["replicas"], spec["revisionHistoryLimit"]); got != "map[type:Recreate] 3 10" {
		t.Errorf("got %s", got)
	}
	if text := strings.Join(given(t, read(t, rolling), found), "\n"); !strings.Contains(text, `"f:rollingUpdate":{}`) || strings.Contains(text, "revisionHistoryLimit") || strings.Count(text, "f:replicas") != 1 {
		t.Errorf("got %s", text)
	}
	elsewhere := strings.Replace(rolling, "manager: autoscaler, operation: Update, apiVersion: apps/v1", "manager: autoscaler, operation: Update, apiVersion: apps/v1beta1", 1)
	if found, err := (&conflict{read(t, elsewhere), read(t, recreated), read(t, recreated), try}).resolve(nil, invalid(at)); found != nil || err != nil {
		t.Errorf("who holds it by another version is not known: got %v, %v", found, err)
	}
}

func TestNothingGoes(t *testing.T) {
	accept := func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) { return object, nil }
	ports := field.NewPath("spec", "ports").Index(1).Child("name")
	for why, test := range map[string]struct {
		live, chart string
		refusal     error
		try         tryUpdate
	}{
		"if it was not refused":                      {changed, chart, nil, accept},
		"for another refusal":                        {changed, chart, apierrors.NewBadRequest("no"), accept},
		"if the refusal is about something else":     {changed, chart, invalid(field.NewPath("spec", "type")), accept},
		"if the refusal is about what the chart has": {changed, chart, invalid(field.NewPath("metadata", "labels")), accept},
		"if that would not help": {changed, chart, invalid(ports), func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return nil, invalid(ports)
		}},
		"if the API server accepts the update with all of it": {changed, chart, invalid(ports), accept},
		"of a kind whose lists are not known":                 {strings.Replace(changed, "apiVersion: v1\n", "apiVersion: example.com/v1\n", 1), strings.Replace(chart, "apiVersion: v1\n", "apiVersion: example.com/v1\n", 1), invalid(ports), accept},
	} {
		found, err := (&conflict{read(t, test.live), read(t, test.chart), read(t, test.chart), test.try}).resolve(nil, test.refusal)
		if found != nil || err != nil {
			t.Errorf("%s: got %v, %v", why, found, err)
		}
	}
	stale := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed"))
	if _, err := (&conflict{read(t, changed), read(t, chart), read(t, chart), func(*unstructured.Unstructured) (*unstructured.Unstructured, error) { return nil, stale }}).resolve(nil, invalid(ports)); !apierrors.IsConflict(err) {
		t.Errorf("an object that has changed meanwhile is looked at again, not %v", err)
	}
}
