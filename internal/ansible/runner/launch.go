package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ensign-operator/ensign/internal/ansible/proctree"
	"github.com/ensign-operator/ensign/internal/ansible/rundir"
)

// Launcher starts warm runs.
type Launcher interface {
	// Prepare is called with the environment that runs are going to have, but for the
	// variables that differ from run to run.
	Prepare(env []string)
	// Start starts cmd in less time than a new interpreter takes, and returns its process. If it
	// cannot, it returns why, and nothing of the run has begun.
	Start(cmd *exec.Cmd) (leader proctree.Leader, why string)
}

// start starts the command as the first process of a run, warm if possible.
func (r *Runner) start(spec Spec, c command, nonce int64) (p *process, warm bool, err error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	stdout, toStdout, err := os.Pipe()
	if err != nil {
		return nil, false, err
	}
	stderr, toStderr, err := os.Pipe()
	if err != nil {
		return nil, false, errors.Join(err, stdout.Close(), toStdout.Close())
	}
	cmd.Stdout, cmd.Stderr = toStdout, toStderr
	tree, warm, err := r.startTree(spec, cmd, nonce)
	_ = errors.Join(toStdout.Close(), toStderr.Close()) // The run has its own.
	if err != nil {
		_ = errors.Join(stdout.Close(), stderr.Close())
		return nil, false, fmt.Errorf("start ansible-runner: %w; is it installed there? `make python` makes the environment, or `pip install ansible-core ansible-runner`", err)
	}
	return newProcess(tree, stdout, stderr), warm, nil
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
