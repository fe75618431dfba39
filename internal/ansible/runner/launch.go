package runner

import (
	"fmt"
	"io"
	"os/exec"

	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
)

// Launcher starts warm runs.
type Launcher interface {
	// Prepare is called with the environment that runs are going to have, without the
	// variables that differ from run to run.
	Prepare(env []string)
	// Start starts cmd in less time than a new interpreter takes, and returns its process. If it
	// cannot, it returns why, and nothing of the run has begun.
	Start(cmd *exec.Cmd) (leader proctree.Leader, why string)
}

// start starts the command as the first process of a run, warm if possible. read reads its
// records.
func (r *Runner) start(spec Spec, c command, nonce int64, read func(io.Reader) error) (p *process.Process, warm bool, err error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	pipes, err := process.Connect(cmd, true)
	if err != nil {
		return nil, false, err
	}
	p, err = pipes.Start(func() (tree *proctree.Tree, err error) {
		tree, warm, err = r.startTree(spec, cmd, nonce)
		return tree, err
	}, read)
	if err != nil {
		return nil, false, fmt.Errorf("start ansible-runner: %w; is it installed there? `make python` makes the environment, or `pip install ansible-core ansible-runner`", err)
	}
	return p, warm, nil
}

func (r *Runner) startTree(spec Spec, cmd *exec.Cmd, nonce int64) (tree *proctree.Tree, warm bool, err error) {
	if r.mayBeWarm(spec) {
		if leader, why := r.Launcher.Start(cmd); why == "" {
			return r.reaper().Adopt(leader, nonce), true, nil
		}
	}
	tree, err = r.reaper().Start(cmd, nonce)
	return tree, false, err
}

func (r *Runner) mayBeWarm(spec Spec) bool { return r.Launcher != nil && !spec.Cold }

// Prepare prepares the launcher for runs. It must be called after all fields are set.
func (r *Runner) Prepare() {
	if r.Launcher != nil {
		r.Launcher.Prepare(r.environ(&rundir.Dir{SharedTemp: r.Root.SharedTemp()}, 0))
	}
}
