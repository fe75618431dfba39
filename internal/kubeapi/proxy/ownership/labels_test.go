package ownership_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

const stamped = `"l.io/chart":"c-2"`

func labelled(t ownership.Target) ownership.Target {
	t.Labels = map[string]string{"l.io/chart": "c-2"}
	return t
}

func annotated(t ownership.Target) ownership.Target {
	t.Annotated = true
	return t
}

func definition(t ownership.Target) ownership.Target {
	t.MarkedOnly = true
	return t
}

func TestLabels(t *testing.T) {
	const (
		linked = `"ownerReferences":[` + ours + `]`
		mark   = `"meta.helm.sh/release-name":"r"`
		marked = `"annotations":{` + mark + `}`
	)
	for name, test := range map[string]struct {
		target                  ownership.Target
		verb, contentType, body string
		live                    string // "" where there is none
		want                    string
	}{
		"what is created":                        {inNamespace(), "create", jsonType, `{"metadata":{"name":"c"}}`, "", `{"metadata":{"name":"c","labels":{` + stamped + `},` + linked + `}}`},
		"in another namespace":                   {elsewhere(), "create", jsonType, `{"metadata":{}}`, "", `{"metadata":{"labels":{` + stamped + `},"annotations":{` + notes + `}}}`},
		"what has its owner":                     {inNamespace(), "create", jsonType, `{"metadata":{` + linked + `}}`, "", `{"metadata":{"labels":{` + stamped + `},` + linked + `}}`},
		"what is to be kept":                     {inNamespace(), "create", jsonType, `{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`, "", `{"metadata":{"labels":{` + stamped + `},"annotations":{"helm.sh/resource-policy":"keep"}}}`},
		"what is there already":                  {inNamespace(), "create", jsonType, `{"metadata":{"labels":{` + stamped + `},` + linked + `}}`, "", same},
		"another version":                        {inNamespace(), "update", jsonType, `{"metadata":{"labels":{"l.io/chart":"c-1","a":"b"}}}`, `{"metadata":{}}`, `{"metadata":{"labels":{` + stamped + `,"a":"b"}}}`},
		"an apply of a child":                    {inNamespace(), "patch", applyType, `{"metadata":{` + linked + `}}`, "", `{"metadata":{"labels":{` + stamped + `},` + linked + `}}`},
		"labels that are none":                   {inNamespace(), "create", jsonType, `{"metadata":{"labels":[],` + linked + `}}`, "", same},
		"a release's record":                     {inNamespace(), "create", jsonType, `{"metadata":{"name":"sh.helm.release.v1.r.v1",` + linked + `}}`, "", same},
		"a record that is linked by annotations": {annotated(inNamespace()), "create", jsonType, `{"metadata":{"name":"sh.helm.release.v1.r.v1"}}`, "", `{"metadata":{"name":"sh.helm.release.v1.r.v1","annotations":{` + notes + `}}}`},
		"one that refers to the owner still":     {annotated(inNamespace()), "update", jsonType, `{"metadata":{"name":"sh.helm.release.v1.r.v1",` + linked + `}}`, `{"metadata":{` + linked + `}}`, `{"metadata":{"name":"sh.helm.release.v1.r.v1","annotations":{` + notes + `}}}`},
		"selectors stay":                         {inNamespace(), "create", jsonType, `{"metadata":{` + linked + `},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}}`, "", `{"metadata":{` + linked + `,"labels":{` + stamped + `}},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}}}}}`},

		"a patch of other labels":      {inNamespace(), "patch", mergeType, `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":{` + stamped + `}}}`, same},
		"a patch that removes it":      {inNamespace(), "patch", strategicType, `{"metadata":{"labels":{"l.io/chart":null,"a":"b"}}}`, `{"metadata":{"labels":{` + stamped + `}}}`, `{"metadata":{"labels":{"a":"b"}}}`},
		"one that removes all":         {inNamespace(), "patch", mergeType, `{"metadata":{"labels":null}}`, `{"metadata":{"labels":{"a":"b",` + stamped + `}}}`, `{"metadata":{"labels":{"a":null}}}`},
		"one with another version":     {inNamespace(), "patch", mergeType, `{"metadata":{"labels":{"l.io/chart":"c-1"}}}`, `{"metadata":{}}`, `{"metadata":{"labels":{` + stamped + `}}}`},
		"a directive about labels":     {inNamespace(), "patch", strategicType, `{"metadata":{"labels":{"$patch":"replace","a":"b"}}}`, `{"metadata":{"labels":{"c":"d"}}}`, `{"metadata":{"labels":{"a":"b","c":null,` + stamped + `}}}`},
		"an object that is replaced":   {inNamespace(), "patch", strategicType, `{"$patch":"replace","metadata":{"name":"c"}}`, `{"metadata":{}}`, `{"$patch":"replace","metadata":{"name":"c","labels":{` + stamped + `}}}`},
		"an operation that removes it": {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/labels/l.io~1chart"}]`, `{"metadata":{"labels":{` + stamped + `}}}`, `[{"op":"remove","path":"/metadata/labels/l.io~1chart"},{"op":"add","path":"/metadata/labels/l.io~1chart","value":"c-2"}]`},
		"one that removes them all":    {inNamespace(), "patch", jsonPatchType, `[{"op":"remove","path":"/metadata/labels"}]`, `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"remove","path":"/metadata/labels"},{"op":"add","path":"/metadata/labels","value":{` + stamped + `}}]`},
		"one that moves them away":     {inNamespace(), "patch", jsonPatchType, `[{"op":"move","from":"/metadata/labels","path":"/data"}]`, `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"move","from":"/metadata/labels","path":"/data"},{"op":"add","path":"/metadata/labels","value":{` + stamped + `}}]`},
		"one of another label":         {inNamespace(), "patch", jsonPatchType, `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, `{"metadata":{"labels":{}}}`, same},

		"an apply of what the release has adopted":       {inNamespace(), "patch", applyType, `{"metadata":{` + marked + `}}`, `{"metadata":{"name":"c"}}`, `{"metadata":{` + marked + `,"labels":{` + stamped + `},` + linked + `}}`},
		"one of what is to be kept":                      {inNamespace(), "patch", applyType, `{"metadata":{"annotations":{` + mark + `,` + keep + `}}}`, `{"metadata":{}}`, `{"metadata":{"annotations":{` + mark + `,` + keep + `},"labels":{` + stamped + `}}}`},
		"one of what has no marks":                       {inNamespace(), "patch", applyType, `{"metadata":{}}`, `{"metadata":{` + marked + `}}`, `{"metadata":{"labels":{` + stamped + `}}}`},
		"one of a cluster-scoped object":                 {clusterScoped(), "patch", applyType, `{"metadata":{` + marked + `}}`, `{"metadata":{}}`, `{"metadata":{"annotations":{` + mark + `,` + notes + `},"labels":{` + stamped + `}}}`},
		"a patch that adopts":                            {inNamespace(), "patch", strategicType, `{"metadata":{` + marked + `}}`, `{"metadata":{"resourceVersion":"7"}}`, `{"metadata":{` + marked + `,"labels":{` + stamped + `},` + linked + `}}`},
		"one of something else, of the release's object": {inNamespace(), "patch", mergeType, `{"data":{"a":"b"}}`, `{"metadata":{` + marked + `}}`, `{"data":{"a":"b"},"metadata":{"labels":{` + stamped + `},` + linked + `}}`},
		"a definition of the directory crds":             {definition(ofClusterScoped()), "create", jsonType, `{"metadata":{}}`, "", `{"metadata":{"labels":{` + stamped + `}}}`},
		"the same for an owner with a namespace":         {definition(clusterScoped()), "patch", applyType, `{"metadata":{}}`, "", `{"metadata":{"labels":{` + stamped + `}}}`},
		"a definition among the templates":               {definition(ofClusterScoped()), "create", jsonType, `{"metadata":{` + marked + `}}`, "", `{"metadata":{` + marked + `,"labels":{` + stamped + `},` + linked + `}}`},
		"one of a child":                                 {inNamespace(), "patch", mergeType, `{"data":{"a":"b"}}`, `{"metadata":{` + marked + `,` + linked + `}}`, same},
	} {
		t.Run(name, func(t *testing.T) {
			target := labelled(test.target)
			write, err := ownership.Parse(test.verb, test.contentType, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			var live map[string]any
			if write.Needs(target) != ownership.NeedsNothing && test.live != "" {
				live = decode(t, test.live).(map[string]any)
			}
			got, _, err := write.AddOwner(target, live)
			if err != nil {
				t.Fatal(err)
			}
			want := test.want
			if want == same {
				want = test.body
			}
			if diff := cmp.Diff(decode(t, want), decode(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelsOnly: without owners, nothing is looked up for an object that is written whole.
func TestLabelsOnly(t *testing.T) {
	target := labelled(inNamespace())
	target.LabelsOnly = true
	for verb, contentType := range map[string]string{"create": jsonType, "update": jsonType, "patch": applyType} {
		write, err := ownership.Parse(verb, contentType, []byte(`{"metadata":{"name":"c"}}`))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := write.AddOwner(target, nil)
		if err != nil || write.Needs(target) != ownership.NeedsNothing || !reflect.DeepEqual(decode(t, string(got)), decode(t, `{"metadata":{"name":"c","labels":{`+stamped+`}}}`)) {
			t.Errorf("%s: got %s, %v", verb, got, err)
		}
	}
}

// FuzzLabels tries patches of any kind on an object that has the label. Besides the label, the
// forwarded patch has the result of the role's patch; and the label does not get lost.
func FuzzLabels(f *testing.F) {
	const before = `{"metadata":{"name":"c","labels":{"a":"b",` + stamped + `},"ownerReferences":[` + others + `]},"spec":{"labels":{"l.io/chart":"x"}}}`
	for _, seed := range []string{
		`{"metadata":{"labels":{"l.io/chart":null,"$patch":"merge"}}}`,
		`{"metadata":{"labels":{"$retainKeys":["a"],"a":"c"}}}`,
		`{"metadata":{"labels":{"$patch":"delete"}}}`,
		`{"metadata":{"$patch":"replace","name":"c"}}`,
		`{"metadata":{"labels":{"l.io/chart":{"x":"y"}}}}`,
		`{"metadata":{"labels":[]}}`,
		`{"metadata":{"labels":""}}`,
		`[{"op":"copy","from":"/spec/labels","path":"/metadata/labels"},{"op":"remove","path":"/metadata/labels/l.io~1chart"}]`,
		`[{"op":"replace","path":"/metadata","value":{"labels":null}}]`,
		`[{"op":"move","from":"/metadata","path":"/spec/old"},{"op":"add","path":"/metadata","value":{}}]`,
		`[{"op":"move","from":"/metadata/labels/l.io~1chart","path":"/metadata/labels/b"}]`,
	} {
		for kind := range uint8(3) {
			f.Add(seed, kind)
		}
	}
	f.Fuzz(func(t *testing.T, body string, kind uint8) {
		contentType := []string{mergeType, strategicType, jsonPatchType}[kind%3]
		target := labelled(inNamespace())
		target.LabelsOnly = true
		write, err := ownership.Parse("patch", contentType, []byte(body))
		if err != nil {
			return
		}
		sent, _, err := write.AddOwner(target, decode(t, before).(map[string]any))
		if err != nil {
			return
		}
		want, err := apply(contentType, before, body)
		if err != nil {
			return // The API server refuses it.
		}
		got, err := apply(contentType, before, string(sent))
		if err != nil {
			t.Fatalf("%s applied, and what it became does not: %s: %v", body, sent, err)
		}
		metadata, _ := got["metadata"].(map[string]any)
		labels, ok := metadata["labels"].(map[string]any)
		if (ok || metadata != nil && metadata["labels"] == nil) && labels["l.io/chart"] != "c-2" {
			t.Errorf("%s became %s, which loses the label: %v", body, sent, got)
		}
		if without(got); !reflect.DeepEqual(got, without(want)) {
			t.Errorf("besides the label, %s made %v of it, and %s makes %v", body, want, sent, got)
		}
	})
}

// without removes the label.
func without(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	delete(labels, "l.io/chart")
	if value, has := metadata["labels"]; has && (value == nil || labels != nil && len(labels) == 0) {
		delete(metadata, "labels")
	}
	return object
}
