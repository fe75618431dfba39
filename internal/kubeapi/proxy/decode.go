package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	k8sjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ensign-operator/ensign/internal/boundedyaml"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
)

// decode reads an object with the API server's own code for the content type. No content type
// means JSON. kind is for a body that does not name its kind.
func decode(kinds *runtime.Scheme, contentType string, body []byte, kind *schema.GroupVersionKind) (runtime.Object, error) {
	mediaType := runtime.ContentTypeJSON
	if contentType != "" {
		var err error
		if mediaType, _, err = mime.ParseMediaType(contentType); err != nil {
			return nil, fmt.Errorf("read the content type %q: %w", contentType, err)
		}
	}
	var format runtime.Decoder
	switch mediaType {
	case runtime.ContentTypeYAML:
		var err error
		if body, err = boundedyaml.RequestToJSON(body); err != nil { // It bounds aliases.
			return nil, err
		}
		fallthrough
	case runtime.ContentTypeJSON:
		format = k8sjson.NewSerializerWithOptions(k8sjson.DefaultMetaFactory, kinds, kinds, k8sjson.SerializerOptions{})
	case runtime.ContentTypeProtobuf:
		format = protobuf.NewSerializer(kinds, kinds)
	case runtime.ContentTypeCBOR:
		format = cbor.NewSerializer(kinds, kinds)
	default:
		return nil, fmt.Errorf("unknown content type %q", mediaType)
	}
	object, _, err := format.Decode(body, kind, nil)
	return object, err
}

// readDeleteOptions reads the body of a deletion, or the options in that of an eviction.
func readDeleteOptions(contentType string, body []byte, eviction bool) (metav1.DeleteOptions, error) {
	kinds, kind := metainternalversion.Scheme, metav1.SchemeGroupVersion.WithKind("DeleteOptions")
	if eviction {
		kinds, kind = scheme.Scheme, policyv1.SchemeGroupVersion.WithKind("Eviction")
	}
	object, err := decode(kinds, contentType, body, &kind)
	if err != nil {
		return metav1.DeleteOptions{}, err
	}
	var options *metav1.DeleteOptions
	switch object := object.(type) {
	case *metav1.DeleteOptions:
		options = object
	case *policyv1.Eviction:
		options = object.DeleteOptions
	case *policyv1beta1.Eviction:
		options = object.DeleteOptions
	default:
		return metav1.DeleteOptions{}, fmt.Errorf("%T has no options of a deletion", object)
	}
	if options == nil {
		return metav1.DeleteOptions{}, nil
	}
	return *options, nil
}

// decodeResponse reads the objects in a response's body, or the UID in a Status, into response.
// It fails where the body is incomplete, or in a format that it cannot read.
func decodeResponse(verb, contentType string, body []byte, response *access.Response) error {
	plain, err := asJSON(contentType, body)
	if err != nil {
		return err
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(plain); err != nil {
		return err
	}
	meta := strings.HasPrefix(object.GetAPIVersion(), metav1.GroupName+"/")
	response.Partial = meta
	switch {
	case object.GetKind() == "Status" && (object.GetAPIVersion() == "v1" || meta):
		uid, _, _ := unstructured.NestedString(object.Object, "details", "uid")
		response.UID, response.Partial = types.UID(uid), false
	case meta && object.GetKind() == "Table":
		return decodeRows(&object, response)
	case verb != "deletecollection":
		response.Objects = []*unstructured.Unstructured{&object}
	default:
		var list unstructured.UnstructuredList
		if err := list.UnmarshalJSON(plain); err != nil {
			return err
		}
		response.Objects = make([]*unstructured.Unstructured, len(list.Items))
		for i := range list.Items {
			response.Objects[i] = &list.Items[i]
		}
	}
	return nil
}

// decodeRows reads the objects of a Table's rows.
func decodeRows(table *unstructured.Unstructured, response *access.Response) error {
	rows, _, _ := unstructured.NestedSlice(table.Object, "rows")
	for _, row := range rows {
		fields, _ := row.(map[string]any)
		content, _ := fields["object"].(map[string]any)
		object := &unstructured.Unstructured{Object: content}
		if object.GetUID() == "" {
			return errors.New("a row of the Table has no object")
		}
		response.Objects = append(response.Objects, object)
	}
	if len(rows) == 0 {
		return errors.New("the Table has no rows")
	}
	return nil
}

// asJSON returns the body of a response as JSON. It reads Protobuf of Kubernetes' own kinds.
func asJSON(contentType string, body []byte) ([]byte, error) {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, fmt.Errorf("read the content type %q: %w", contentType, err)
	}
	switch mediaType {
	case runtime.ContentTypeJSON:
		return body, nil
	case runtime.ContentTypeYAML:
		return boundedyaml.RequestToJSON(body)
	case runtime.ContentTypeCBOR:
		var object unstructured.Unstructured
		if _, _, err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, &object); err != nil {
			return nil, err
		}
		return json.Marshal(object.Object)
	}
	object, err := decode(scheme.Scheme, contentType, body, nil)
	if runtime.IsNotRegisteredError(err) { // It may be partial metadata.
		object, err = decode(metainternalversion.Scheme, contentType, body, nil)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
