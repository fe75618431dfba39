package runner

import "github.com/ensign-operator/ensign/internal/ansible/rundir"

// Launcher starts warm runs.
type Launcher interface {
	// Prepare is called with the environment that runs are going to have, without the
	// variables that differ from run to run.
	Prepare(env []string)
	// Launch returns the program to start instead of Python, with the same arguments and
	// environment. If there is none, program is "" and why says why the run must be cold.
	Launch(env []string) (program, why string)
	// Ended is called at the end of a run whose program Launch returned, with the same
	// environment. It reports whether the run was warm: the program may have executed
	// ansible-runner or ansible-playbook after all.
	Ended(env []string) (warm bool)
}

// launch starts the command, warm if possible. isWarm reports at the end of the run whether
// it was warm.
func (r *Runner) launch(spec Spec, c command, nonce int64) (p *process, isWarm func() bool, err error) {
	if r.mayBeWarm(spec) {
		if program, _ := r.Launcher.Launch(c.env); program != "" {
			warmCommand := c
			warmCommand.path = program
			if p, err := startProcess(r.reaper(), warmCommand, nonce); err == nil {
				return p, func() bool { return r.Launcher.Ended(c.env) }, nil
			}
			// If the cause concerns the cold run too, its start returns the error.
			_ = r.Launcher.Ended(c.env)
		}
	}
	p, err = startProcess(r.reaper(), c, nonce)
	return p, func() bool { return false }, err
}

func (r *Runner) mayBeWarm(spec Spec) bool { return r.Launcher != nil && !spec.Cold }

// Prepare prepares the launcher for runs. It must be called after all fields are set.
func (r *Runner) Prepare() {
	if r.Launcher != nil {
		r.Launcher.Prepare(r.environ(&rundir.Dir{SharedTemp: r.Root.SharedTemp()}, 0))
	}
}
