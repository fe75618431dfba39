// Package access holds the words in which the API proxy tells others what runs
// do: whose request it is, what it writes, and what the API server answered.
package access

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Owner is the CR for which a run works. Namespace is "" for a cluster-scoped CR.
type Owner struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
	UID       types.UID
}

func (o Owner) String() string {
	return strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Session is the access of one run. It is told from others by its address.
type Session struct {
	Owner Owner
}

// Write is a request that changes what the API server stores.
type Write struct {
	// Verb is that of RequestInfo: create, update, patch, delete or
	// deletecollection.
	Verb        string
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace is "" for what is cluster-scoped, and for a deletion of a
	// collection in all namespaces.
	Namespace string
	// Name is "" where the API server makes it, and for collections.
	Name string
}

// Answer is what the API server said to a Write. The zero Answer says that
// nothing is known: the request may have been carried out.
type Answer struct {
	// Code is the HTTP status; 0 where there was no answer.
	Code int
	// Objects are what it answered with: the written object, or those of a list.
	// None where it answered otherwise, with a Status, a Table, or Protobuf.
	Objects []*unstructured.Unstructured
	// UID is that of the object of which a Status speaks; "" where it names none.
	UID types.UID
}

// OK reports whether the write was carried out for certain.
func (a Answer) OK() bool { return a.Code >= http.StatusOK && a.Code < http.StatusMultipleChoices }

// Follower is told of every write of a run that is forwarded, dry runs aside.
type Follower interface {
	// Writing is called before the write is forwarded. What it returns is called
	// once, after the answer or when there will be none.
	Writing(session *Session, write Write) (answered func(Answer))
	// Ended is called when the session's token is dead.
	Ended(session *Session)
}
