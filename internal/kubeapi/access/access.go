// Package access has the types in which the API proxy reports the writes of runs: the CR for
// which a run writes, the write, and the API server's response.
//
// It has no behavior. The proxy calls a WriteObserver; package children is one.
package access

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is the CR of a run: the Kubernetes owner of what the run creates. Namespace is "" for a cluster-scoped CR.
type Owner struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
	UID       types.UID
}

// String returns the owner as namespace/name.
func (o Owner) String() string {
	return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Session is the access of one run to the API. Two sessions are the same if their pointers are.
type Session struct {
	Owner Owner
	// Labels are set on the objects that the run writes.
	Labels map[string]string
}

// Write is a request that changes what the API server stores.
type Write struct {
	// Verb is the verb of RequestInfo: create, update, patch, delete or deletecollection.
	Verb        string
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace is "" for a cluster-scoped object, and for a deletion of a collection in all
	// namespaces.
	Namespace string
	// Name is "" where the API server generates it, and for a collection.
	Name string
}

// Response is the API server's response to a Write. The zero Response means that the response is
// not known: the API server may have carried out the request.
type Response struct {
	// Code is the HTTP status code; 0 where the response is not known.
	Code int
	// Objects has the objects in the response: the written one, or the items of a list. It is
	// empty for a response in another form: a Status, a Table, or Protobuf.
	Objects []*unstructured.Unstructured
	// UID is the UID in a Status; "" where there is none.
	UID types.UID
}

// OK reports whether the API server has confirmed that it carried out the write.
func (r Response) OK() bool { return r.Code >= http.StatusOK && r.Code < http.StatusMultipleChoices }

// WriteObserver is told of every write that the proxy forwards for a run, except dry runs.
type WriteObserver interface {
	// BeforeWrite is called before the proxy forwards the write. The proxy calls afterWrite once:
	// after the response, or with the zero Response when none will come.
	BeforeWrite(session *Session, write Write) (afterWrite func(Response))
	// SessionEnded is called once the session's token is invalid and all of its requests are done.
	SessionEnded(session *Session)
}
