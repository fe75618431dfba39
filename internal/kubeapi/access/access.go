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

// Owner is the CR of a run, which is the Kubernetes owner of the objects that the run creates.
// Namespace is "" for a cluster-scoped CR.
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
	// Username is the API server's user name as which every request of the run is made; "" for
	// the manager's own.
	Username string
	// Labels are set on the objects that the run writes.
	Labels map[string]string
	// Release is true if the run is a chart's, and Deleting if its owner is being deleted. Records
	// of releases are linked to the owner by annotations, and so are the objects that a chart's
	// hooks make at a deletion: in a foreground deletion the garbage collector deletes objects that
	// refer to the owner at once.
	Release, Deleting bool
	// Generation is the owner's for which the run works.
	Generation int64
	// Ready is called with each condition Ready in a request of the run that writes its CR's status. It
	// may be nil, and may be called concurrently.
	Ready func(condition map[string]any)
	// Denied is called with each request that the API server refuses because the account of the
	// run lacks the right. It may be nil, and may be called concurrently.
	Denied func(Denial)
}

// Denial is a right that an account lacks.
type Denial struct {
	// Username is that of the account; "" is the manager's.
	Username string

	Verb, Group, Resource, Subresource string
	// Namespace is "" where the request was not for one namespace.
	Namespace string
}

// Write is a request that changes objects of the API server.
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

// Deletes reports whether the write asks the API server to delete objects. An eviction is the
// creation of a subresource, and deletes the pod.
func (w Write) Deletes() bool {
	return w.Verb == "delete" || w.Verb == "deletecollection" ||
		w.Verb == "create" && w.Resource.Group == "" && w.Resource.Resource == "pods" && w.Subresource == "eviction"
}

// Cause is why the result of a write is not known: the API server may have carried it out.
type Cause string

const (
	// NoResponse means that the connection broke, or that the run ended before the response.
	NoResponse Cause = "no response"
	// ServerError means that the API server answered with a status of 500 or more.
	ServerError Cause = "server error"
	// UnreadableOptions means that the proxy cannot read the options of a deletion, which may be a dry run.
	UnreadableOptions Cause = "unreadable options"
	// UnreadableResponse means that the proxy cannot read the format of the response, or that it is
	// too long.
	UnreadableResponse Cause = "unreadable response"
)

// Response is the API server's response to a Write.
type Response struct {
	// Code is the HTTP status code; 0 where there was no response.
	Code int
	// Objects has the objects in the response: the written one, or the items of a list, which may
	// be empty. It is nil for a Status, and where the result is not known.
	Objects []*unstructured.Unstructured
	// Partial is true where the Objects have only metadata, for which the client asked.
	Partial bool
	// UID is the UID in a Status; "" where there is none.
	UID types.UID
	// Unknown is why the result is not known; "" where it is.
	Unknown Cause
}

// OK reports whether the API server has confirmed that it carried out the write.
func (r Response) OK() bool { return r.Code >= http.StatusOK && r.Code < http.StatusMultipleChoices }

// WriteObserver observes every write that the proxy forwards for a run, except dry runs.
type WriteObserver interface {
	// BeforeWrite is called before the proxy forwards the write. The proxy calls afterWrite once:
	// after the response, or when none will come.
	BeforeWrite(session *Session, write Write) (afterWrite func(Response))
	// SessionEnded is called once the session's token is invalid and all of its requests are done.
	SessionEnded(session *Session)
}
