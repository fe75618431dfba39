package template

import (
	"strings"

	"github.com/ensign-operator/ensign/internal/watches"
)

// The labels of the Jobs of runs and of their pods.
const (
	// RunLabel is true on all of them.
	RunLabel = watches.OwnPrefix + "run"
	// OperatorLabel has the same value for a manager and its replicas.
	OperatorLabel = watches.OwnPrefix + "operator"
)

// The annotations of Jobs. All except ClaimAnnotation are set at the creation.
const (
	// RunAnnotation has the ID of the run, and RequestAnnotation the digest of its request.
	RunAnnotation     = watches.OwnPrefix + "run-id"
	RequestAnnotation = watches.OwnPrefix + "request"
	// ClaimAnnotation has the UID of the pod that runs it.
	ClaimAnnotation = watches.OwnPrefix + "claimed-by"
	// For people: the resource, its kind and generation, and whether its finalizer runs.
	ResourceAnnotation   = watches.OwnPrefix + "resource"
	KindAnnotation       = watches.OwnPrefix + "kind"
	GenerationAnnotation = watches.OwnPrefix + "generation"
	FinalizerAnnotation  = watches.OwnPrefix + "finalizer"
)

// namePrefix begins the names of the Jobs; the UID of the CR follows.
const namePrefix = "ensign-run-"

// Name returns the name of the Job of a CR's runs. A CR has one at a time.
func Name(uid string) string { return namePrefix + uid }

// UID returns the CR's UID from the name of a Job; false if it is another name.
func UID(name string) (uid string, ok bool) {
	uid, ok = strings.CutPrefix(name, namePrefix)
	return uid, ok && uid != ""
}
