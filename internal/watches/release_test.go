package watches

import (
	"errors"
	"strings"
	"testing"
)

func TestReleaseOf(t *testing.T) {
	long := strings.Repeat("x", 54)
	fixed := func(text string) ReleaseText { return ReleaseText{Fixed: text} }
	at := func(path ...string) ReleaseText { return ReleaseText{Path: path} }
	for why, test := range map[string]struct {
		name, namespace ReleaseText
		metadata, spec  map[string]any
		want            string   // namespace/name
		refusal         []string // what the error says
	}{
		"a CR's own name and namespace":         {metadata: object{"namespace": "a", "name": "b"}, want: "a/b"},
		"one for all":                           {name: fixed("c"), namespace: fixed("d"), metadata: object{"namespace": "a", "name": "b"}, want: "d/c"},
		"each its own":                          {name: at("spec", "release"), namespace: at("spec", "to", "namespace"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"release": "c", "to": object{"namespace": "d"}}, want: "d/c"},
		"its own where the spec has none":       {name: at("spec", "release"), namespace: at("spec", "to", "namespace"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"release": ""}, want: "a/b"},
		"or has nothing below":                  {namespace: at("spec", "to", "namespace"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"to": "x"}, want: "a/b"},
		"a namespace called like the CR":        {namespace: at("metadata", "name"), metadata: object{"name": "b"}, want: "b/b"},
		"Helm's longest name":                   {metadata: object{"namespace": "a", "name": long[1:]}, want: "a/" + long[1:]},
		"a name that is longer":                 {metadata: object{"namespace": "a", "name": long}, refusal: []string{"54 characters", "53 at most", "shorten the resource's name", "releaseName"}},
		"a longer one in the spec":              {name: at("spec", "release"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"release": long}, refusal: []string{"53 at most", "shorten spec.release"}},
		"a long name with a shorter one beside": {name: at("spec", "release"), metadata: object{"namespace": "a", "name": long}, spec: object{"release": "c"}, want: "a/c"},
		"a name that is none":                   {name: at("spec", "release"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"release": "../x"}, refusal: []string{`"../x" is not a valid release name`, "spec.release"}},
		"a namespace that is none":              {namespace: at("spec", "to"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"to": ".."}, refusal: []string{`".." is not a valid namespace name`, "spec.to"}},
		"a number":                              {name: at("spec", "release"), metadata: object{"namespace": "a", "name": "b"}, spec: object{"release": int64(3)}, refusal: []string{"spec.release is not a string"}},
		"a cluster-scoped kind":                 {metadata: object{"name": "b"}, refusal: []string{"a chart needs a namespace for its release; the kind Tenant is cluster-scoped: give the watch releaseNamespace"}},
		"one with a namespace for all":          {namespace: fixed("d"), metadata: object{"name": "b"}, want: "d/b"},
		"one whose spec has no namespace":       {namespace: at("spec", "to"), metadata: object{"name": "b"}, refusal: []string{"the kind Tenant is cluster-scoped: set spec.to"}},
	} {
		t.Run(why, func(t *testing.T) {
			c := &Chart{ReleaseName: test.name, ReleaseNamespace: test.namespace}
			namespace, name, err := c.ReleaseOf(object{"kind": "Tenant", "metadata": test.metadata, "spec": test.spec})
			if test.refusal == nil {
				if got := namespace + "/" + name; err != nil || got != test.want {
					t.Errorf("got %s, %v, want %s", got, err, test.want)
				}
				return
			}
			for _, part := range test.refusal {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want an error with %q", err, part)
				}
			}
		})
	}
}

// TestAReleaseDoesNotMove: nothing would uninstall the one that the CR had.
func TestAReleaseDoesNotMove(t *testing.T) {
	c := &Chart{ReleaseName: ReleaseText{Path: Path{"spec", "release"}}, ReleaseNamespace: ReleaseText{Path: Path{"spec", "to"}}}
	cr := func(spec, deployed object) object {
		return object{"metadata": object{"namespace": "a", "name": "b"}, "spec": spec, "status": object{"deployedRelease": deployed}}
	}
	for why, stays := range map[string]object{
		"it is where it was":           cr(object{"to": "d", "release": "c"}, object{"name": "c", "namespace": "d"}),
		"by an older manager":          cr(object{}, object{"name": "b"}),
		"nothing was installed so far": cr(object{"to": "d"}, object{}),
	} {
		if _, _, err := c.ReleaseOf(stays); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	for why, moves := range map[string]object{
		"another namespace":   cr(object{"to": "e", "release": "c"}, object{"name": "c", "namespace": "d"}),
		"another name":        cr(object{"to": "d"}, object{"name": "c", "namespace": "d"}),
		"no name any more":    cr(object{"to": "d", "release": int64(1)}, object{"name": "c", "namespace": "d"}),
		"a name that is none": cr(object{"to": "d", "release": "C"}, object{"name": "c", "namespace": "d"}),
	} {
		_, _, err := c.ReleaseOf(moves)
		moved, ok := errors.AsType[*MovedError](err)
		if !ok || moved.Namespace != "d" || moved.Name != "c" {
			t.Errorf("%s: got %v", why, err)
		}
	}
	attempted := cr(object{"to": "e"}, object{})
	attempted["status"] = object{"attemptedRelease": object{"name": "b", "namespace": "d"}}
	if _, _, err := c.ReleaseOf(attempted); err == nil || !strings.Contains(err.Error(), `"b" in the namespace "d"`) {
		t.Errorf("what a failed installation has left is forgotten: %v", err)
	}
	if _, _, err := c.ReleaseOf(cr(object{"to": "e"}, object{"name": "b"})); err == nil || !strings.Contains(err.Error(), `"b" in the namespace "a"`) {
		t.Errorf("the release of an older manager moves: %v", err)
	}
}
