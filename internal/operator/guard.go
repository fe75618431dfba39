package operator

import (
	"errors"
	"os"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/ansible/runner/guard"
	"github.com/ensign-operator/ensign/internal/config"
)

// ownership makes sure that no run outlives this process, or its lease.
type ownership struct {
	runner *runner.Runner
	guard  *guard.Guard // nil: none is needed
	warm   *warmPool    // nil: all runs are cold
}

// own begins the ownership of all that the runner will run.
func own(r *runner.Runner, o config.Options) (ownership, error) {
	if err := r.Owner.Group(); err != nil {
		o.Logger.V(1).Info("runs get no control groups of their own; their processes are found by descent and environment", "reason", err.Error())
	}
	owned := ownership{runner: r}
	if os.Getpid() == 1 && !o.LeaderElect {
		// The kernel ends a container with its first process.
		return owned, nil
	}
	var err error
	if owned.guard, err = guard.Start(r.Owner, o.Logger.WithName("guard")); err != nil {
		return ownership{}, errors.Join(err, owned.end())
	}
	r.RunContext = owned.guard.Context
	return owned, nil
}

// extend is told of each renewal of the lease before anything relies on it. From
// the instant term on, as proctree.Now counts, all runs get TERM, from kill on
// KILL, even if this process is frozen by then.
func (o ownership) extend(term, kill time.Duration) {
	if o.guard != nil {
		o.guard.Extend(term, kill)
	}
}

// end gives up the servers of warm runs, the guard, the control groups and the run directory. All runs have
// ended.
func (o ownership) end() error {
	err := o.warm.end()
	if o.guard != nil {
		err = errors.Join(err, o.guard.Close())
	}
	return errors.Join(err, o.runner.Owner.Close(), o.runner.Root.Close())
}
