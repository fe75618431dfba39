package runner

import "github.com/ensign-operator/ensign/internal/ansible/rundir"

// Launcher starts runs in the place of ansible-runner.
type Launcher interface {
	// Prepare is told an environment that runs are going to have, but for what differs
	// from run to run.
	Prepare(env []string)
	// Launch returns the program to start with ansible-runner's arguments and this
	// environment, or why it has to be ansible-runner itself.
	Launch(env []string) (program, why string)
	// Ended is told that a run is over whose program Launch gave, with the same
	// environment. It reports whether that run was warm: also what was launched may have
	// become ansible-runner, or ansible-playbook, in the end.
	Ended(env []string) (warm bool)
}

// start starts the command, or what stands in for it. At the end of the run, launched
// reports whether it was warm.
func (r *Runner) start(spec Spec, c command, nonce int64) (p *process, launched func() bool, err error) {
	if r.mayBeWarm(spec) {
		if program, _ := r.Launcher.Launch(c.env); program != "" {
			standin := c
			standin.path = program
			if p, err := start(r.owner(), standin, nonce); err == nil {
				return p, func() bool { return r.Launcher.Ended(c.env) }, nil
			}
			// What hindered it shows in the start of the real one, if it has to do with that.
			_ = r.Launcher.Ended(c.env)
		}
	}
	p, err = start(r.owner(), c, nonce)
	return p, func() bool { return false }, err
}

func (r *Runner) mayBeWarm(spec Spec) bool { return r.Launcher != nil && !spec.Cold }

// Prepare lets the launcher get ready for runs. It is for when all of the Runner is set.
func (r *Runner) Prepare() {
	if r.Launcher != nil {
		r.Launcher.Prepare(r.environ(&rundir.Dir{SharedTemp: r.Root.SharedTemp()}, 0))
	}
}
