package helmclient

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

func TestOfAnObjectThatComesTwiceTheLastOneCounts(t *testing.T) {
	var all kube.ResourceList
	for _, text := range []string{"A a 1", "A b 2", "B a 3", "A a 4", "A  5", "A  6"} {
		part := strings.Split(text, " ")
		all.Append(&resource.Info{Name: part[1], ResourceVersion: part[2], Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Kind: part[0]}}})
	}
	got := ""
	for _, one := range lastOnes(all) {
		got += one.ResourceVersion
	}
	if got != "23456" {
		t.Errorf("got %s", got)
	}
}

func TestWhatDoesNotDecodeIsNamed(t *testing.T) {
	bad := errors.New("cannot unmarshal bool")
	const key = ". metadata.labels: the value of x is not a string: quote it in the chart"
	for why, test := range map[string]struct{ manifest, want string }{
		"nothing is wrong":      {"---\n# Source: c/templates/a.yaml\nkind: A\nmetadata: {name: a}\n", ""},
		"one of two":            {"---\n# Source: c/templates/a.yaml\nkind: A\nmetadata: {name: a}\n---\n# Source: c/templates/b.yaml\nkind: B\nmetadata: {name: b, labels: {x: y}}\n", "B b of c/templates/b.yaml: cannot unmarshal bool" + key},
		"both":                  {"kind: A\nmetadata: {name: a, labels: {x: y}}\n---\nkind: B\nmetadata: {labels: {x: y}}\n", "A a: cannot unmarshal bool" + key + "\nB: cannot unmarshal bool" + key},
		"a hook has no comment": {"kind: A\nmetadata: {name: hook, labels: {x: y}}\n", "A hook: cannot unmarshal bool" + key},
		"what is no object":     {"labels: {x: y}\n", "an object: cannot unmarshal bool"},
	} {
		err := locate([]byte(test.manifest), func(document []byte) error {
			if bytes.Contains(document, []byte("x: y")) {
				return bad
			}
			return nil
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want || err != nil && !errors.Is(err, bad) {
			t.Errorf("%s: got %q", why, got)
		}
	}
}
