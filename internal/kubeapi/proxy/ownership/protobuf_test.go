package ownership_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// withField returns an object in Protobuf with a field more, at the end of its message.
func withField(t *testing.T, kind string, object interface{ Marshal() ([]byte, error) }, field []byte) []byte {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	apiVersion, kind, _ := strings.Cut(kind, " ")
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: append(raw, field...)}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), body...)
}

// message returns a field of bytes, such as a message.
func message(number protowire.Number, value ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func varint(number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
}

// unknown is the number of a field that no Kubernetes has. Of metadata, clusterName was 15.
const (
	unknown     = 2047
	clusterName = 15
)

func TestProtobufOfOtherVersionsOfKubernetes(t *testing.T) {
	fixed := protowire.AppendFixed64(protowire.AppendTag(nil, unknown, protowire.Fixed64Type), 0)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.Now()}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("web")}}},
	}}}}
	for name, test := range map[string]struct {
		body []byte
		want bool // that it is read
	}{
		"an object with types of all encodings": {withField(t, "v1 Pod", pod, nil), true},
		"an unknown field":                      {withField(t, "v1 Secret", release(), message(unknown, []byte("new")...)), false},
		"an unknown number":                     {withField(t, "v1 Secret", release(), varint(unknown, 1)), false},
		"an unknown field that is empty":        {withField(t, "v1 Secret", release(), message(unknown)), true},
		"an unknown number that is 0":           {withField(t, "v1 Secret", release(), varint(unknown, 0)), true},
		"an unknown fixed number that is 0":     {withField(t, "v1 Secret", release(), fixed), true},
		"an unknown message of empty fields":    {withField(t, "v1 Secret", release(), message(unknown, append(message(1), varint(2, 0)...)...)), true},
		"an unknown message with a value":       {withField(t, "v1 Secret", release(), message(unknown, append(message(1), varint(2, 1)...)...)), false},
		"an older client's empty clusterName":   {withField(t, "v1 Secret", release(), message(1, message(clusterName)...)), true},
		"an older client's clusterName":         {withField(t, "v1 Secret", release(), message(1, message(clusterName, []byte("a")...)...)), false},
		"a value deep in a list":                {withField(t, "v1 Pod", pod, message(2, message(2, varint(unknown, 1)...)...)), false},
		"an empty one deep in a list":           {withField(t, "v1 Pod", pod, message(2, message(2, varint(unknown, 0)...)...)), true},
		"a value in a mapping's message":        {withField(t, "resource.k8s.io/v1 ResourceSlice", &resourcev1.ResourceSlice{}, message(2, message(6, message(3, append(message(1, 'k'), message(2, varint(unknown, 1)...)...)...)...)...)), false},
		"half an object":                        {protobufOf(t, release())[:40], false},
		"nothing":                               {nil, false},
		"a kind that is not one of Kubernetes":  {withField(t, "x.io/v1 X", release(), nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ownership.Parse("create", runtime.ContentTypeProtobuf, test.body)
			if _, unreadable := errors.AsType[*ownership.UnreadableError](err); err == nil != test.want || !test.want && !unreadable {
				t.Errorf("want it read: %v, got %v", test.want, err)
			}
		})
	}
}
