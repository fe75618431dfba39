package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/controller/slots"
)

// Access opens the Kubernetes API to the runs of a CR.
type Access interface {
	// Grant returns access that acts for the CR, in the name of a user of the API server; "" is the
	// manager. Objects that are written with it get the labels.
	Grant(cr *unstructured.Unstructured, username string, labels map[string]string) (Grant, error)
}

// RunLocks keep the managers of several shards from running content for a CR at once.
type RunLocks interface {
	// Lock takes the lock of the CR's run, which unlock gives back. The error wraps ErrLocked while
	// another manager, which may still lead, has it.
	Lock(ctx context.Context, uid types.UID) (unlock func(), err error)
}

// Grant is the access of one run.
type Grant struct {
	Kubeconfig []byte
	// Revoke ends the access.
	Revoke func()
	// Denied says for people which rights the account has lacked so far, and what to do; ""
	// if none.
	Denied func() string
	// Readies are the conditions Ready that the run has written to its CR; nil: that is not known.
	Readies *Readies
}

// Meter counts the CRs of a watch that the throttle slows down.
type Meter interface {
	// TriggerHeld is called when a CR begins to wait with a trigger: for its back-off, or
	// because its bucket is empty.
	TriggerThrottled(watch schema.GroupVersionKind, backoff bool)
	// SetSlowed is called with the number of CRs whose bucket is empty.
	SetSlowed(watch schema.GroupVersionKind, number int)
}

// Slots limits how many runs of all watches execute at the same time.
type Slots interface {
	// Acquire takes a slot; release gives it back. waited is false if it was free at once.
	Acquire(ctx context.Context, watch schema.GroupVersionKind, priority slots.Priority) (release func(), waited bool, err error)
}
