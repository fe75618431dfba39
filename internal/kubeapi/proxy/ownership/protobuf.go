package ownership

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// readProtobuf reads an object of one of Kubernetes' own kinds. Clients with Go types send
// Protobuf, such as Helm for its Secrets. An object with fields that only a newer version of
// Kubernetes knows is an UnreadableError, because these fields would be lost.
func readProtobuf(body []byte) (map[string]any, error) {
	format := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	object, kind, err := format.Decode(body, nil, nil)
	if err != nil {
		return nil, &UnreadableError{runtime.ContentTypeProtobuf}
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	var known bytes.Buffer
	if err := format.Encode(object, &known); err != nil || known.Len() < len(body) {
		return nil, &UnreadableError{runtime.ContentTypeProtobuf}
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("read the object as Protobuf: %w", err)
	}
	return readJSON(plain)
}
