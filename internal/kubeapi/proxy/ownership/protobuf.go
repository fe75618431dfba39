package ownership

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufPrefix begins each Protobuf body of Kubernetes.
const protobufPrefix = "k8s\x00"

// readProtobuf reads an object of one of Kubernetes' own kinds. Clients with Go types send
// Protobuf, such as Helm for its Secrets. An object with values in fields that this version of
// Kubernetes does not know is an UnreadableError, because these values would be lost.
func readProtobuf(body []byte) (map[string]any, error) {
	object, kind, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
	if err != nil || losesValues(body, object) {
		return nil, &UnreadableError{runtime.ContentTypeProtobuf}
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	plain, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("read the object as Protobuf: %w", err)
	}
	return readJSON(plain)
}

func losesValues(body []byte, object runtime.Object) bool {
	message := body[len(protobufPrefix):]
	var envelope runtime.Unknown
	return envelope.Unmarshal(message) != nil || hasUnknownValue(message, reflect.TypeFor[runtime.Unknown]()) ||
		hasUnknownValue(envelope.Raw, reflect.TypeOf(object).Elem())
}

// hasUnknownValue reports whether the message has a value in a field that the Go type does not
// have, at any depth. Empty values of such fields do not count: a client of an older Kubernetes
// sends each field that is not a pointer, also those that Kubernetes has removed since, such as
// metadata.clusterName. The message must be valid.
func hasUnknownValue(message []byte, of reflect.Type) bool {
	fields := fieldsByNumber(of)
	if len(fields) == 0 {
		return false // The type has an encoding of its own, such as a time or a quantity.
	}
	return anyField(message, func(number protowire.Number, wire protowire.Type, value []byte) bool {
		field, known := fields[number]
		switch {
		case !known:
			return !isEmpty(wire, value)
		case wire != protowire.BytesType:
			return false
		default:
			return hasUnknownValueIn(value, field)
		}
	})
}

func hasUnknownValueIn(value []byte, of reflect.Type) bool {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Struct:
		return hasUnknownValue(value, of)
	case reflect.Map: // It is a list of messages with a key in field 1, and a value in field 2.
		return anyField(value, func(number protowire.Number, wire protowire.Type, value []byte) bool {
			return number == 2 && wire == protowire.BytesType && hasUnknownValueIn(value, of.Elem())
		})
	default:
		return false
	}
}

// fieldsByNumber returns the types of a message's fields, by the numbers in their tags.
func fieldsByNumber(of reflect.Type) map[protowire.Number]reflect.Type {
	fields := map[protowire.Number]reflect.Type{}
	for field := range of.Fields() {
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		if number, err := strconv.ParseInt(tag[1], 10, 32); err == nil {
			fields[protowire.Number(number)] = field.Type
		}
	}
	return fields
}

// anyField reports whether the predicate holds for any field of the message. value is the whole
// value, of a bytes field without its length. It also returns true for an invalid message.
func anyField(message []byte, holds func(number protowire.Number, wire protowire.Type, value []byte) bool) bool {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return true
		}
		message = message[n:]
		length := protowire.ConsumeFieldValue(number, wire, message)
		if length < 0 {
			return true
		}
		value := message[:length]
		if wire == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if holds(number, wire, value) {
			return true
		}
		message = message[length:]
	}
	return false
}

// isEmpty reports whether the value is zero, or a message of empty values.
func isEmpty(wire protowire.Type, value []byte) bool {
	if wire != protowire.BytesType {
		return strings.Trim(string(value), "\x00") == ""
	}
	return !anyField(value, func(_ protowire.Number, wire protowire.Type, value []byte) bool { return !isEmpty(wire, value) })
}
