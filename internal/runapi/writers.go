package runapi

import (
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/controller"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/watches"
)

// CRWrites tells the controllers which specs and requests of CRs were written by runs. It is a
// WriteObserver.
type CRWrites struct {
	Writers *controller.Writers

	watches map[schema.GroupKind]*watches.Watch
}

// NewCRWrites returns CRWrites for the watches.
func NewCRWrites(list []watches.Watch) CRWrites {
	w := CRWrites{Writers: controller.NewWriters(), watches: map[schema.GroupKind]*watches.Watch{}}
	for i := range list {
		w.watches[list[i].GVK.GroupKind()] = &list[i]
	}
	return w
}

// BeforeWrite implements access.WriteObserver.
func (w CRWrites) BeforeWrite(session *access.Session, write access.Write) (afterWrite func(access.Response)) {
	changesSpec := write.Subresource == "" && (write.Verb == "create" || write.Verb == "update" || write.Verb == "patch")
	return func(response access.Response) {
		if !changesSpec || !response.OK() {
			return
		}
		for _, object := range response.Objects {
			if response.Code == http.StatusCreated && isOwned(object, session.Owner.UID) {
				w.Writers.Created(session.Owner.UID, describe(object))
			}
			if watch, ok := w.watches[object.GroupVersionKind().GroupKind()]; ok {
				by := controller.Writer{UID: session.Owner.UID, Name: session.Owner.GVK.Kind + " " + session.Owner.String()}
				w.Writers.Wrote(by, watch, object)
			}
		}
	}
}

// isOwned reports whether Kubernetes deletes the object with its owner.
func isOwned(object *unstructured.Unstructured, owner types.UID) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
}

// describe names an object for people: "ConfigMap shop/backup".
func describe(object *unstructured.Unstructured) string {
	return object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
}

// SessionEnded implements access.WriteObserver.
func (w CRWrites) SessionEnded(*access.Session) {}
