package ownership_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

// standing are objects as they may stand when a patch comes.
var standing = []string{
	`{"metadata":{"name":"c","uid":"c1","labels":{"l":"m"},"ownerReferences":[` + oursOld + `,` + others + `],"annotations":{"a":"b"}},"spec":{"x":[1,2]}}`,
	`{"metadata":{"name":"c","ownerReferences":[` + others + `],"annotations":{"a":"b",` + notes + `}},"spec":{"annotations":{}}}`,
	`{"metadata":{"name":"c","ownerReferences":[` + others + `]},"spec":{}}`,
}

// FuzzPatch tries patches of any kind on objects that are linked to the owner, or not. The
// patch that the proxy forwards has the same result as the patch of the role, but for the link:
// the result has it if the object had it, or if the role's patch adds it.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`[{"op":"remove","path":"/metadata/ownerReferences/0"}]`,
		`[{"op":"move","from":"/metadata/annotations","path":"/spec/y"},{"op":"copy","from":"/spec/x","path":"/metadata/ownerReferences"}]`,
		`[{"op":"replace","path":"/metadata","value":{"name":"c"}}]`,
		`[{"op":"add","path":"/metadata/ownerReferences/-","value":` + ours + `}]`,
		`[{"op":"remove","path":"/metadata/annotations/operator-sdk~1primary-resource"},{"op":"replace","path":"","value":{"metadata":{}}}]`,
		`[{"op":"copy","from":"/metadata/none","path":"/metadata/ownerReferences"},{"op":"copy","from":"/none","path":"/metadata/annotations"}]`,
		`[{"op":"replace","path":"/spec/none","value":1},{"op":"remove","path":"/metadata/ownerReferences"}]`,
		`[{"op":"replace","path":""}]`,
		`{"metadata":{"ownerReferences":null,"annotations":{"$patch":"replace"}}}`,
		`{"metadata":{"ownerReferences":[{"$patch":"delete","uid":"u1"}],"$setElementOrder/ownerReferences":[{"uid":"u2"}]}}`,
		`{"metadata":{"$retainKeys":["name"],"name":"c"}}`,
		`{"$patch":"replace","metadata":{"annotations":{}}}`,
		`{"metadata":null}`,
		`{"metadata":{"annotations":{"operator-sdk/primary-resource":"x/y"},"labels":{"$patch":"delete"}}}`,
	} {
		for i := range uint8(len(standing)) {
			for kind := range uint8(3) {
				f.Add(seed, i, kind, i%2 == 1)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body string, which, kind uint8, foreign bool) {
		contentType := []string{mergeType, strategicType, jsonPatchType}[kind%3]
		target := inNamespace()
		if foreign {
			target = elsewhere()
		}
		before := standing[int(which)%len(standing)]
		write, err := ownership.Parse("patch", contentType, []byte(body))
		if err != nil {
			return
		}
		var live map[string]any
		if write.Needs(target) != ownership.NeedsNothing {
			live = decode(t, before).(map[string]any)
		}
		sent, _, err := write.AddOwner(target, live)
		if err != nil {
			return
		}
		want, err := apply(contentType, before, body)
		if err != nil {
			return // The API server refuses it.
		}
		if value, _, _ := unstructured.NestedString(want, "metadata", "annotations", "helm.sh/resource-policy"); strings.EqualFold(strings.TrimSpace(value), "keep") {
			return // It is to have no link.
		}
		got, err := apply(contentType, before, string(sent))
		if err != nil {
			t.Fatalf("%s applied, and what it became does not: %s: %v", body, sent, err)
		}
		checkMark(t, got, want, decode(t, before).(map[string]any), foreign)
		if forget(got); !reflect.DeepEqual(tidy(got), tidy(forget(want))) {
			t.Errorf("besides the link, %s made %v of it, and %s makes %v", body, want, sent, got)
		}
	})
}

// apply does what the API server does, with the library and the limits of k8s.io/apiserver,
// which takes a panic of the library for an error.
func apply(contentType, before, patch string) (object map[string]any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the API server fails: %v", panicked)
		}
	}()
	var after []byte
	switch contentType {
	case mergeType:
		after, err = jsonpatch.MergePatch([]byte(before), []byte(patch))
	case strategicType:
		after, err = strategicpatch.StrategicMergePatch([]byte(before), []byte(patch), metav1.PartialObjectMetadata{})
	default:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch([]byte(patch)); err == nil {
			after, err = operations.Apply([]byte(before))
		}
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(after, &object)
	return object, err
}

func own(object map[string]any) (references int, annotated bool) {
	metadata, _ := object["metadata"].(map[string]any)
	list, _ := metadata["ownerReferences"].([]any)
	for _, r := range list {
		if m, ok := r.(map[string]any); ok && m["uid"] == "u1" {
			references++
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	return references, annotations["operator-sdk/primary-resource"] == "ns/cr" && annotations["operator-sdk/primary-resource-type"] == "K.g.io"
}

func checkMark(t *testing.T, got, want, before map[string]any, foreign bool) {
	t.Helper()
	if _, ok := got["metadata"].(map[string]any); !ok {
		return // The API server refuses an object without metadata.
	}
	had, annotatedBefore := own(before)
	brought, annotatedByRole := own(want)
	has, annotated := own(got)
	switch {
	case foreign && has > 0 && brought > had:
		t.Errorf("a reference that deletes the object was let in: %v", got)
	case !foreign && had > 0 && has == 0:
		t.Errorf("the reference was lost: %v", got)
	case !foreign && had == 0 && has != brought:
		t.Errorf("it was adopted: %v", got)
	case annotatedBefore && !annotated:
		t.Errorf("the annotations were lost: %v", got)
	case !annotatedBefore && annotated && !annotatedByRole && brought == 0:
		t.Errorf("it was adopted by annotations: %v", got)
	}
}

// forget removes the link to the owner.
func forget(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	if list, ok := metadata["ownerReferences"].([]any); ok || metadata["ownerReferences"] == nil {
		list = slices.DeleteFunc(list, func(r any) bool {
			m, ok := r.(map[string]any)
			return ok && m["uid"] == "u1"
		})
		if metadata["ownerReferences"] = list; len(list) == 0 {
			delete(metadata, "ownerReferences")
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok || metadata["annotations"] == nil {
		delete(annotations, "operator-sdk/primary-resource")
		delete(annotations, "operator-sdk/primary-resource-type")
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return object
}

// FuzzApply makes sure that the API server reads in an apply what the client wrote, and
// the owner besides.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		"metadata: {name: c}\ndata: {a: \"\\x7f\\u0085\\ufeff\\U0001F600\\uffff\"}",
		`{"metadata":{"name":"c","annotations":{"a":"\ud83d\ude00  "}},"n":12345678901234567890,"f":1.50}`,
		"metadata:\n  name: c\ndata:\n  yes: no\n  0777: 1e3\n  ~: .inf",
		"---\nmetadata: {}\n---\nmetadata: {}\n",
		"0: a\n! 0: b\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		write, err := ownership.Parse("patch", applyType, []byte(body))
		if err != nil {
			return
		}
		sent, _, err := write.AddOwner(inNamespace(), nil)
		if err != nil {
			return
		}
		var want, got map[string]any
		if yaml.Unmarshal([]byte(body), &want) != nil {
			return // JSON that is no YAML: the API server would have refused it.
		}
		if err := yaml.Unmarshal(sent, &got); err != nil {
			t.Fatalf("%q became %q: %v", body, sent, err)
		}
		if references, _ := own(got); references == 0 {
			t.Errorf("%q has no owner", sent)
		}
		if forget(got); !reflect.DeepEqual(tidy(got), tidy(forget(want))) && !isAmbiguous(body) {
			t.Errorf("%q became %q", body, sent)
		}
	})
}

// isAmbiguous reports whether the API server would read sometimes this and sometimes that:
// keys that are different in YAML may be one in JSON.
func isAmbiguous(body string) bool {
	var first map[string]any
	_ = yaml.Unmarshal([]byte(body), &first) // It has been read before.
	for range 100 {
		var again map[string]any
		if yaml.Unmarshal([]byte(body), &again) != nil || !reflect.DeepEqual(first, again) {
			return true
		}
	}
	return false
}

// tidy takes away metadata that says nothing.
func tidy(object map[string]any) map[string]any {
	if metadata, ok := object["metadata"].(map[string]any); ok && len(metadata) == 0 || object["metadata"] == nil {
		delete(object, "metadata")
	}
	return object
}
