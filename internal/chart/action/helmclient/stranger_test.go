package helmclient

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ensign-operator/ensign/internal/chart/objects"
)

func TestAHookTakesThePlaceOfNoStranger(t *testing.T) {
	const hook = "helm.sh/hook"
	of := func(namespace, name string) map[string]string {
		return map[string]string{"meta.helm.sh/release-namespace": namespace, "meta.helm.sh/release-name": name}
	}
	for why, test := range map[string]struct {
		annotations map[string]string
		own, adopt  bool
		owners      string
		want        string
	}{
		"of the CR":                             {nil, true, false, "Hello a/b", ""},
		"of this release":                       {of("a", "b"), false, false, "", ""},
		"of another release":                    {of("a", "c"), false, true, "", "belongs to the release a/c"},
		"a hook of another owner":               {map[string]string{hook: "pre-install"}, false, true, "Hello a/c", "belongs to Hello a/c"},
		"a hook that nobody owns":               {map[string]string{hook: "pre-install"}, false, false, "", ""},
		"an object that nobody owns":            {nil, false, false, "", "belongs to no release"},
		"an object that nobody owns, and adopt": {nil, false, true, "", ""},
	} {
		c := &Client{
			Applier: objects.Applier{Namespace: "a", Name: "b"}, Adopt: test.adopt,
			Own: func(metav1.Object) bool { return test.own }, Owners: func(metav1.Object) string { return test.owners },
		}
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetAnnotations(test.annotations)
		got := ""
		if err := c.refuseStranger(live); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: got %q, want %q in it", why, got, test.want)
		}
	}
}
