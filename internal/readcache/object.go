package readcache

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// objectOverhead is about what an object takes beside its JSON and labels: itself,
// its key and its places in the maps of a store.
const objectOverhead = 400

// object is what a store keeps.
type object struct {
	// name is namespace/name, or the name of what has no namespace.
	name    string
	uid     types.UID
	version string
	labels  map[string]string
	// json is the whole object but for apiVersion and kind, which all of a kind have
	// in common.
	json []byte
}

// GetObjectMeta implements metav1.ObjectMetaAccessor, by which a store finds keys and
// versions. It is made anew because it would take more than all the rest.
func (o *object) GetObjectMeta() metav1.Object {
	namespace, name, namespaced := strings.Cut(o.name, "/")
	if !namespaced {
		namespace, name = "", o.name
	}
	return &metav1.ObjectMeta{Namespace: namespace, Name: name, UID: o.uid, ResourceVersion: o.version, Labels: o.labels}
}

func (o *object) size() int64 {
	size := objectOverhead + len(o.json) + len(o.name)
	for key, value := range o.labels {
		size += 32 + len(key) + len(value)
	}
	return int64(size)
}

// keep makes an object of what an informer gets.
func keep(from any) (*object, error) {
	if kept, ok := from.(*object); ok {
		return kept, nil // client-go transforms what is there at the beginning twice.
	}
	whole, ok := from.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is no object", from)
	}
	kept := &object{name: whole.GetName(), uid: whole.GetUID(), version: whole.GetResourceVersion(), labels: whole.GetLabels()}
	if namespace := whole.GetNamespace(); namespace != "" {
		kept.name = namespace + "/" + kept.name
	}
	delete(whole.Object, "apiVersion")
	delete(whole.Object, "kind")
	var err error
	if kept.json, err = json.Marshal(whole.Object); err != nil {
		return nil, fmt.Errorf("encode %s: %w", kept.name, err)
	}
	return kept, nil
}
