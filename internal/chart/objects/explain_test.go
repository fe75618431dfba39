package objects

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsSayWhatMendsThem(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 3000) + `: b"}`
	for why, c := range map[string]struct{ text, want string }{
		"a field that is immutable":    {`Job.batch "a" is invalid: spec.template: Invalid value: ` + long + `: field is immutable`, "…: field is immutable. Fields that cannot be changed: set the annotation helm.sdk.operatorframework.io/upgrade-force: \"true\" on the resource"},
		"a StatefulSet":                {`StatefulSet.apps "a" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`, "upgrade-force"},
		"one that is not replaced":     {`Job.batch "a" is invalid: field is immutable` + NotReplaced + `: x`, NotReplaced + ": x"},
		"a value that is wrong":        {`ConfigMap "A" is invalid: metadata.name: Invalid value: "A": no`, `Invalid value: "A": no`},
		"a value in words":             {`x is invalid: Invalid value: v1.Selector{}: no`, `Invalid value: v1.Selector{}: no`},
		"an object without a name":     {`server-side apply failed for object a/ /v1, Kind=ConfigMap: resource name may not be empty`, "give it a name in the chart"},
		"a webhook that says the word": {`admission webhook denied the request: names are immutable here`, "here"},
	} {
		cause := errors.New(c.text)
		got := Explained(cause)
		if text := got.Error(); !strings.Contains(text, c.want) || len(text) > 500 || strings.HasSuffix(c.text, c.want) && text != c.text {
			t.Errorf("%s: got %s", why, text)
		}
		if !errors.Is(got, cause) {
			t.Errorf("%s: the cause is lost", why)
		}
	}
	if Explained(nil) != nil {
		t.Error("no error is one")
	}
}
