package template

import (
	"strings"

	"github.com/ensign-operator/ensign/internal/watches"
)

// The labels of the Jobs of runs and of their pods.
const (
	// RunLabel is true at all of them.
	RunLabel = watches.OwnPrefix + "run"
	// OperatorLabel has the same value at all of a manager and its replicas.
	OperatorLabel = watches.OwnPrefix + "operator"
)

// The annotations of Jobs. All but ClaimAnnotation are there from the beginning.
const (
	// RunAnnotation has the ID of the run, and RequestAnnotation the digest of all that it was
	// asked to do.
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

// Name returns the name of the Job of a CR's runs. It has one at a time.
func Name(uid string) string { return namePrefix + uid }

// UID returns the UID of the CR whose runs a Job of this name has; false if it is no such name.
func UID(name string) (uid string, ok bool) {
	uid, ok = strings.CutPrefix(name, namePrefix)
	return uid, ok && uid != ""
}
