package watches

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const valuesWatch = chartHead + `  valuesFrom:
  - {kind: ConfigMap, name: sizes}
  - {kind: Secret, name: spec.auth.secret, key: password, targetPath: 'auth.a\.b', optional: true}
  valuesFromInSpec: spec.valuesFrom
`

func resourceWith(namespace string, spec map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "cr", "namespace": namespace}, "spec": spec}
}

func TestValuesSourcesOf(t *testing.T) {
	chart := mustLoad(t, chartOperator(t), valuesWatch)[0].Chart
	sizes := ValuesSource{ConfigMapKind, "sizes", ValuesAt{Key: "values.yaml"}}
	listed := func(entries ...any) map[string]any { return map[string]any{"valuesFrom": entries} }
	entry := func(more map[string]any) map[string]any {
		e := map[string]any{"kind": "Secret", "name": "mine"}
		maps.Copy(e, more)
		return e
	}
	var many []any
	for range maxValuesSources + 1 {
		many = append(many, entry(nil))
	}
	for why, test := range map[string]struct {
		namespace string
		spec      map[string]any
		want      []ValuesSource
		wantErr   string
	}{
		"an optional path may lead nowhere": {namespace: "ns", want: []ValuesSource{sizes}},
		"a path leads to the name": {
			namespace: "ns", spec: map[string]any{"auth": map[string]any{"secret": "db"}},
			want: []ValuesSource{sizes, {SecretKind, "db", ValuesAt{Key: "password", TargetPath: []string{"auth", "a.b"}, Optional: true}}},
		},
		"what the resource lists is stronger than what the watch has": {
			namespace: "ns", spec: listed(entry(map[string]any{"key": "k", "targetPath": "a.b", "optional": true})),
			want: []ValuesSource{sizes, {SecretKind, "mine", ValuesAt{"k", []string{"a", "b"}, true}}},
		},
		"the key has a default":                    {namespace: "ns", spec: listed(entry(nil)), want: []ValuesSource{sizes, {SecretKind, "mine", ValuesAt{Key: "values.yaml"}}}},
		"no list":                                  {namespace: "ns", spec: map[string]any{"valuesFrom": "a"}, wantErr: "spec.valuesFrom is not a list"},
		"no mapping":                               {namespace: "ns", spec: listed("a"), wantErr: "spec.valuesFrom[0]: it is not a mapping"},
		"another namespace is not to be had":       {namespace: "ns", spec: listed(entry(map[string]any{"namespace": "kube-system"})), wantErr: `"namespace" is not a field of it`},
		"a name cannot lead to another path":       {namespace: "ns", spec: listed(entry(map[string]any{"name": "../../kube-system/secrets/a"})), wantErr: "is not a valid name of a Secret"},
		"a name of the watch's path cannot either": {namespace: "ns", spec: map[string]any{"auth": map[string]any{"secret": "a/b"}}, wantErr: "spec.auth.secret: \"a/b\" is not a valid name of a Secret"},
		"the word of others for the key":           {namespace: "ns", spec: listed(entry(map[string]any{"valuesKey": "a"})), wantErr: `"valuesKey" is not a field of it`},
		"another kind":                             {namespace: "ns", spec: listed(entry(map[string]any{"kind": "Pod"})), wantErr: "neither Secret nor ConfigMap"},
		"an element of a list":                     {namespace: "ns", spec: listed(entry(map[string]any{"targetPath": "a[4].b"})), wantErr: "an element of a list cannot be set"},
		"an empty path":                            {namespace: "ns", spec: listed(entry(map[string]any{"targetPath": ""})), wantErr: "is not a path"},
		"a path without end":                       {namespace: "ns", spec: listed(entry(map[string]any{"targetPath": strings.Repeat("a.", 40) + "a"})), wantErr: "30 names at most"},
		"a key that leads elsewhere":               {namespace: "ns", spec: listed(entry(map[string]any{"key": "../a"})), wantErr: "is not a valid key of a Secret"},
		"text for a truth value":                   {namespace: "ns", spec: listed(entry(map[string]any{"optional": "yes"})), wantErr: "optional is neither true nor false"},
		"too many":                                 {namespace: "ns", spec: listed(many...), wantErr: "has 33 entries, and may have 32"},
		"a resource without a namespace":           {wantErr: "a cluster-scoped resource has none"},
	} {
		t.Run(why, func(t *testing.T) {
			got, err := chart.ValuesSourcesOf(resourceWith(test.namespace, test.spec))
			if diff := cmp.Diff(test.want, got); diff != "" || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got %v: %s", err, diff)
			}
		})
	}
}

func TestAPathThatIsNeededMustLeadToAName(t *testing.T) {
	chart := mustLoad(t, chartOperator(t), chartHead+"  valuesFrom: [{kind: Secret, name: spec.secret}]\n")[0].Chart
	for _, spec := range []map[string]any{nil, {"secret": ""}, {"secret": int64(3)}} {
		if got, err := chart.ValuesSourcesOf(resourceWith("ns", spec)); err == nil || got != nil {
			t.Errorf("%v: got %v", spec, got)
		}
	}
}

func TestWhatValuesComeFromIsReferredTo(t *testing.T) {
	watch := mustLoad(t, chartOperator(t), valuesWatch)[0]
	cr := resourceWith("ns", map[string]any{
		"auth": map[string]any{"secret": "db"},
		"valuesFrom": []any{
			map[string]any{"kind": "Secret", "name": "mine"}, map[string]any{"kind": "ConfigMap", "name": "also"}, map[string]any{"kind": "Pod", "name": "no"}, "nothing", nil,
		},
	})
	resolved := func(cr map[string]any) (found []string) {
		for _, reference := range watch.References {
			for _, name := range reference.Resolve(cr) {
				found = append(found, fmt.Sprint(reference.GVK.Kind, " ", name))
			}
		}
		slices.Sort(found)
		return found
	}
	if diff := cmp.Diff([]string{"ConfigMap ns/also", "ConfigMap ns/sizes", "Secret ns/db", "Secret ns/mine"}, resolved(cr)); diff != "" {
		t.Error(diff)
	}
	if got := resolved(resourceWith("", nil)); got != nil {
		t.Errorf("without a namespace: got %q", got)
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Secret"}, watch.Chart.ValuesKinds()); diff != "" {
		t.Error(diff)
	}
}
