package serve

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
)

var (
	// ErrUnknown is returned for a Job without a run in this manager, which may still adopt it.
	ErrUnknown = errors.New("no run of this manager has the Job")
	// ErrTaken is returned to a pod whose Job has been claimed by another pod. It must not run.
	ErrTaken = errors.New("another pod of the Job executes the run")
)

// Registry has the runs of a manager that have not ended. It is safe for concurrent use.
type Registry interface {
	// Claim gives a pod of a Job its assignment, without a session and a kubeconfig. A pod that
	// asks again gets the same. It returns ErrUnknown or ErrTaken; any other error makes the
	// agent try again too.
	Claim(ctx context.Context, job types.NamespacedName, jobUID, podUID types.UID) (wire.Assignment, error)
	// Live returns the run of a session. It returns false if the run has ended, or has not been
	// adopted here.
	Live(jobUID types.UID, runID string) (Live, bool)
}

// Live is a run that an agent runs. Its methods may be called at any time, also after its end.
type Live interface {
	// Events takes events numbered from first on, skips duplicates, and returns the next expected
	// number, also with an error. An adopted run takes the first number that it gets. Events may block
	// until ctx ends, and the run waits.
	Events(ctx context.Context, first int64, events []json.RawMessage) (next int64, err error)
	// Result is called once all events have been taken. It may be called again with the same.
	Result(ctx context.Context, r wire.Result) error
	// ProxyToken returns the bearer token of the run's grant.
	ProxyToken() string
}

// Fence reports whether a manager leads.
type Fence interface {
	// Held reports whether this manager surely holds its lease.
	Held() bool
}
