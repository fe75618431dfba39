package objects

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// deployment has a container with these variables and a sidecar, if any.
func deployment(t *testing.T, env, more string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {spec: {containers: [{name: main, image: a, env: " + env + "}" + more + "]}}}"
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestPatchesOfListsInWhichAKeyStandsTwice(t *testing.T) {
	for why, c := range map[string]struct{ original, target, live, more, want string }{
		"the second entry is changed": {
			"[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}, {name: A, value: c}]", "[{name: A, value: a}, {name: A, value: b}]", "",
			"[{name: A, value: a}, {name: A, value: c}]",
		},
		"the second entry is dropped": {
			"[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}]", "[{name: A, value: a}, {name: A, value: b}]", "",
			"[{name: A, value: a}]",
		},
		"a second entry comes": {
			"[{name: A, value: a}]", "[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}]", "",
			"[{name: A, value: a}, {name: A, value: b}]",
		},
		"somebody changed one, and added a sidecar that stays": {
			"[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: x}, {name: A, value: b}]", ", {name: sidecar, image: s}",
			"[{name: A, value: a}, {name: A, value: b}]",
		},
		"without such a key, what others have added stays": {
			"[{name: A, value: a}, {name: B, value: b}]", "[{name: A, value: c}]", "[{name: A, value: a}, {name: B, value: b}, {name: X, value: x}]", "",
			"[{name: A, value: c}, {name: X, value: x}]",
		},
		"somebody dropped the second entry, and the chart sets another field": {
			"[{name: A, value: a}, {name: A, value: b}]", "[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]", "[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}]", ", {name: sidecar, image: s}",
			"[{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
		},
		"nothing is to be changed": {
			"[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}, {name: A, value: b}]", "[{name: A, value: a}, {name: A, value: b}]", "",
			"[{name: A, value: a}, {name: A, value: b}]",
		},
	} {
		t.Run(why, func(t *testing.T) {
			live := deployment(t, c.live, c.more)
			patch, _, err := threeWayPatch(deployment(t, c.original, ""), deployment(t, c.target, ""), live)
			if err != nil {
				t.Fatal(err)
			}
			before, err := json.Marshal(live.Object)
			if err != nil {
				t.Fatal(err)
			}
			after, err := strategicpatch.StrategicMergePatch(before, patch, appsv1.Deployment{})
			if err != nil {
				t.Fatal(err)
			}
			got := &unstructured.Unstructured{}
			if err := json.Unmarshal(after, &got.Object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(deployment(t, c.want, c.more).Object, got.Object); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", patch, diff)
			}
			if same := cmp.Equal(live.Object, got.Object); same != (string(patch) == empty) {
				t.Errorf("the patch %s, and same is %v", patch, same)
			}
		})
	}
}

func TestAKindThatIsNotKnownHasAMergePatch(t *testing.T) {
	object := func(spec string) *unstructured.Unstructured {
		one := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: g/v1\nkind: K\nspec: "+spec), &one.Object); err != nil {
			t.Fatal(err)
		}
		return one
	}
	patch, kind, err := threeWayPatch(object("{a: 1, dropped: 1}"), object("{a: 1}"), object("{a: 2, dropped: 1, added: 1}"))
	if want := `{"spec":{"a":1,"dropped":null}}`; err != nil || string(patch) != want || kind != "application/merge-patch+json" {
		t.Errorf("got %s, %s, %v", patch, kind, err)
	}
}
