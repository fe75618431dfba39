// Package runapi connects the API proxy of runs with the controller. It gives access to a run
// (access.go), and says which rights the run lacked (denials.go). It makes the informers of children and
// related objects (children.go), notes which CRs runs write (writers.go), and writes Events about CRs
// (events.go). The packages of kubeapi do
// that work, and know neither watches nor the controller.
package runapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/internal/watches"
)

// WriteObserver learns of the writes of runs.
type WriteObserver = access.WriteObserver

// Tracer traces the requests of the run of a CR.
type Tracer interface {
	Request(watch schema.GroupVersionKind, object string, info *apirequest.RequestInfo) (ended func(code int))
}

// TraceRequests returns the function that traces the requests of runs.
func TraceRequests(t Tracer) proxy.RequestObserver {
	return func(s *access.Session, info *apirequest.RequestInfo) func(int) {
		return t.Request(s.Owner.GVK, s.Owner.String(), info)
	}
}

// Confinement returns a function that reports whether the runs of an owner may write only
// in the namespace of their CR: those of all watches, or of those that say so.
func Confinement(all bool, list []watches.Watch) func(access.Owner) bool {
	kinds := map[schema.GroupKind]bool{}
	for i := range list {
		kinds[list[i].GVK.GroupKind()] = all || list[i].ConfineToNamespace
	}
	return func(owner access.Owner) bool { return kinds[owner.GVK.GroupKind()] }
}

// Access gives runs access to the API through the proxy.
type Access struct {
	Proxy *proxy.Proxy
	// Release is true for runs of charts.
	Release bool
}

// Grant implements controller.Access.
func (o Access) Grant(cr *unstructured.Unstructured, username string, labels map[string]string) (controller.Grant, error) {
	owner := access.Owner{GVK: cr.GroupVersionKind(), Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID()}
	lacking, written := &denials{deletes: cr.GetDeletionTimestamp() != nil}, &controller.Readies{}
	kubeconfig, revoke, err := o.Proxy.GrantSession(access.Session{
		Owner: owner, Username: username, Labels: labels, Release: o.Release, Deleting: lacking.deletes,
		Generation: cr.GetGeneration(), Denied: lacking.add, Ready: written.Add,
	})
	return controller.Grant{Kubeconfig: kubeconfig, Revoke: revoke, Denied: lacking.say, Readies: written}, err
}
