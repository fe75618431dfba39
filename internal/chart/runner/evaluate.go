package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/process"
)

// timeout bounds orders that change nothing: templates may loop forever.
const timeout = time.Minute

// Evaluate has chart-exec evaluate templates of the author of a watch, with the manager's
// environment, and returns a result for each.
func (r *Runner) Evaluate(texts []string) (results []order.Evaluated, err error) {
	err = r.ask(context.Background(), order.Order{Action: order.Evaluate, Texts: texts}, nil, &results)
	if err != nil {
		err = fmt.Errorf("chart-exec: %w", err)
	}
	return results, err
}

// Preview has chart-exec carry out a Preview at the API server of the kubeconfig. The error may have text
// of the chart and its values.
func (r *Runner) Preview(ctx context.Context, o order.Order, kubeconfig []byte) (rendered order.Rendered, err error) {
	return rendered, r.ask(ctx, o, kubeconfig, &rendered)
}

// ask has chart-exec carry out an order that changes nothing, and reads its output. With a kubeconfig,
// the process has the environment of a run.
func (r *Runner) ask(ctx context.Context, o order.Order, kubeconfig []byte, into any) (err error) {
	dir, err := os.MkdirTemp("", "ensign-evaluate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	file, access := filepath.Join(dir, orderFile), filepath.Join(dir, "kubeconfig")
	if err := errors.Join(os.WriteFile(file, text, 0o600), os.WriteFile(access, kubeconfig, 0o600)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd, stderr := exec.CommandContext(ctx, r.Binary, file), &bytes.Buffer{}
	cmd.Env, cmd.Stderr = r.Env, stderr
	if kubeconfig != nil {
		env := process.InheritedEnv(r.Env, dropped, r.DropEnv)
		env["KUBECONFIG"], env["HOME"], env["TMPDIR"] = access, dir, dir
		process.BypassHTTPProxy(env)
		cmd.Env = process.Entries(env)
	}
	out, err := cmd.Output()
	switch printed := strings.TrimSpace(stderr.String()); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && printed != "":
		return errors.New(printed)
	case err != nil:
		return err
	}
	return json.Unmarshal(out, into)
}
