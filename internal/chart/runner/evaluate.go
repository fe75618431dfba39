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
)

// timeout bounds the evaluation: templates may loop for ever.
const timeout = time.Minute

// Evaluate has chart-exec evaluate templates of the author of a watch, with the manager's
// environment, and returns a result for each.
func (r *Runner) Evaluate(texts []string) (results []order.Evaluated, err error) {
	dir, err := os.MkdirTemp("", "ensign-evaluate-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := json.Marshal(order.Order{Action: order.Evaluate, Texts: texts})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, orderFile)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd, stderr := exec.CommandContext(ctx, r.Binary, file), &bytes.Buffer{}
	cmd.Env, cmd.Stderr = r.Env, stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &results)
	}
	if err != nil {
		return nil, fmt.Errorf("chart-exec: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return results, nil
}
