package ownership_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ensign-operator/ensign/internal/kubeapi/proxy/ownership"
)

// protobufOf encodes an object as typed clients do.
func protobufOf(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

func release() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns", Labels: map[string]string{"a": "b"}},
		Type: "helm.sh/release.v1", Data: map[string][]byte{"release": {0, 1, 255}},
	}
}

func TestProtobufOfKubernetesOwnKindsIsSentAsJSON(t *testing.T) {
	for _, verb := range []string{"create", "update"} {
		write, err := ownership.Parse(verb, runtime.ContentTypeProtobuf, protobufOf(t, release()))
		if err != nil {
			t.Fatal(err)
		}
		body, contentType, err := write.AddOwner(inNamespace(), nil)
		if err != nil || contentType != "application/json" {
			t.Fatalf("want JSON, got %s, %v", contentType, err)
		}
		var got corev1.Secret
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.OwnerReferences) != 1 {
			t.Errorf("want the owner, got %v", got.OwnerReferences)
		}
		got.OwnerReferences = nil
		if diff := cmp.Diff(release(), &got); diff != "" {
			t.Errorf("%s: object (-sent +got):\n%s", verb, diff)
		}
	}
}

// A field with a number that no Kubernetes has: 2047, of three bytes.
const unknownField = "\xfa\x7f\x03new"

func TestProtobufOfANewerKubernetesIsNotRead(t *testing.T) {
	body := protobufOf(t, release())
	// The object stands within the envelope; a longer one has another length there.
	raw, err := release().Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Raw: append(raw, unknownField...)}
	newer, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{"an unknown field": append([]byte("k8s\x00"), newer...), "half an object": body[:len(body)/2]} {
		_, err := ownership.Parse("create", runtime.ContentTypeProtobuf, body)
		if _, unreadable := errors.AsType[*ownership.UnreadableError](err); !unreadable {
			t.Errorf("%s: want it refused, got %v", name, err)
		}
	}
}
