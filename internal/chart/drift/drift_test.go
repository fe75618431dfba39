package drift

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/watches"
)

func TestIgnoredFieldsHaveTheirLiveValues(t *testing.T) {
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "spec": spec}}
	}
	for why, test := range map[string]struct {
		ignore              []watches.DriftIgnore
		desired, live, want map[string]any
	}{
		"another value":            {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1), "a": "b"}, map[string]any{"replicas": int64(5), "a": "c"}, map[string]any{"replicas": int64(5), "a": "b"}},
		"none":                     {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1)}, map[string]any{}, map[string]any{}},
		"a slash in a name":        {[]watches.DriftIgnore{{Kind: "Deployment", Pointers: []string{"/spec/a~1b~0"}}}, map[string]any{"a/b~": "c"}, map[string]any{"a/b~": "d"}, map[string]any{"a/b~": "d"}},
		"but not of another kind":  {[]watches.DriftIgnore{{Kind: "StatefulSet", Pointers: []string{"/spec/replicas"}}}, map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(5)}, map[string]any{"replicas": int64(1)}},
		"and not without pointers": {nil, map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(5)}, map[string]any{"replicas": int64(1)}},
	} {
		t.Run(why, func(t *testing.T) {
			desired := object(test.desired)
			keepIgnored(desired, object(test.live), test.ignore)
			if diff := cmp.Diff(object(test.want).Object, desired.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
