package written

import (
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/ensign-operator/ensign/internal/access"
)

// storage is where the API server keeps objects: one place for all versions of a
// kind.
type storage schema.GroupResource

// storageOf knows the kinds that are served under two names.
func storageOf(resource schema.GroupVersionResource) storage {
	switch s := storage(resource.GroupResource()); s {
	case storage{Group: "events.k8s.io", Resource: "events"}:
		return storage{Resource: "events"}
	case storage{Resource: "bindings"}:
		return storage{Resource: "pods"}
	default:
		return s
	}
}

// storesNothing tells whether a subresource leads somewhere else.
func storesNothing(subresource string) bool {
	switch subresource {
	case "exec", "attach", "portforward", "proxy", "log", "token":
		return true
	default:
		return false
	}
}

// note takes an answer down. It is false where that does not tell what happened. It
// needs the lock.
func (l *Log) note(s *record, write access.Write, answer access.Answer) bool {
	if answer.Code >= http.StatusBadRequest && answer.Code < http.StatusInternalServerError && write.Verb != "deletecollection" {
		return true // Nothing was written.
	}
	if !answer.OK() || write.Verb == "deletecollection" {
		return false
	}
	if len(answer.Objects) == 0 && write.Verb == "delete" && answer.UID != "" {
		s.gone[answer.UID] = l.clock.Now()
		return true
	}
	for _, o := range answer.Objects {
		if !l.noteObject(s, write, o) {
			return false
		}
	}
	return len(answer.Objects) > 0
}

func (l *Log) noteObject(s *record, write access.Write, o *unstructured.Unstructured) bool {
	now, number := l.clock.Now(), o.GetResourceVersion()
	before, ok := s.versions[write.Namespace]
	if !ok {
		before.number = "1"
	}
	order, err := resourceversion.CompareResourceVersion(number, before.number)
	if err != nil {
		return false
	}
	if order >= 0 {
		s.versions[write.Namespace] = version{number, now}
	}
	if isGone(write.Verb, o) {
		s.gone[o.GetUID()] = now
	}
	return o.GetUID() != ""
}

// isGone tells whether an object that was answered with does not exist any more. One
// that is deleted stays until its finalizers and its grace period are over.
func isGone(verb string, o *unstructured.Unstructured) bool {
	deleted := o.GetDeletionTimestamp() != nil
	if !deleted {
		return verb == "delete"
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}
