package pyenv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrUnsafe is returned for an environment in which Ansible evaluates text that is marked as
// untrusted.
var ErrUnsafe = errors.New("the Python environment is not safe: Ansible evaluated text that is marked as untrusted")

// CanaryText is the value of the variable that the Canary prints: a template that would
// change if Ansible evaluated it.
const CanaryText = "{{ 6*7 }}"

// CanaryVariable is the name of that variable.
const CanaryVariable = "c"

const (
	canaryTimeout = 2 * time.Minute
	canaryTask    = "canary"
	// The play prints the variable directly, and through another template.
	canaryPlay = `[{"hosts": "localhost", "gather_facts": false, "vars": {"d": "{{ c }}"}, "tasks": [` +
		`{"name": "canary", "ansible.builtin.debug": {"msg": ["{{ c }}", "{{ d }}"]}}]}]`
	maxCanaryLine = 1 << 20
)

// Canary runs a play that prints CanaryVariable, and checks that the value is unchanged.
// variables is a map with CanaryText in CanaryVariable, encoded as runs get their
// variables, with the text marked as untrusted. Canary takes about 1.5 s. The error is
// ErrUnsafe if Ansible evaluated the text, and another error if the play did not run.
func (e Env) Canary(ctx context.Context, variables []byte) (err error) {
	dir, err := os.MkdirTemp("", "ensign-canary-")
	if err != nil {
		return fmt.Errorf("try the Python environment: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out, err := e.runCanary(ctx, dir, variables)
	if err != nil {
		cause := e.blame(ctx, dir, func(ctx context.Context, env Env) error {
			_, err := env.runCanary(ctx, dir, variables)
			return err
		})
		return fmt.Errorf("try the Python environment %q: the canary play did not run%s: %w", e.Bin, cause, err)
	}
	return e.checkPrinted(out, dir)
}

func (e Env) runCanary(ctx context.Context, dir string, variables []byte) ([]byte, error) {
	for name, content := range map[string]string{
		"env/extravars":       string(variables),
		"env/settings":        `{"pexpect_timeout": 0.2, "suppress_output_file": true}`,
		"inventory/hosts":     "localhost ansible_connection=local\n",
		"project/canary.json": canaryPlay,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, canaryTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.Runner, "run", dir, "--json", "-p", filepath.Join(dir, "project", "canary.json"))
	cmd.Dir = filepath.Join(dir, "project")
	cmd.Env = append(slices.Clone(e.environ),
		"PATH="+e.Bin+string(filepath.ListSeparator)+Search{Environ: e.environ}.getenv("PATH"),
		"ANSIBLE_LOCAL_TEMP="+filepath.Join(dir, "tmp"))
	// On TERM ansible-runner ends ansible-playbook too.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, outputTail(out, dir))
	}
	return out, nil
}

// checkPrinted compares the output of the play with CanaryText.
func (e Env) checkPrinted(out []byte, dir string) error {
	printed, found := canaryResult(out)
	if !found {
		return fmt.Errorf("try the Python environment %q: the canary play printed nothing: %s", e.Bin, outputTail(out, dir))
	}
	for _, value := range printed {
		if value != CanaryText {
			return fmt.Errorf("%w (in %q, %q became %v); %s", ErrUnsafe, e.Bin, CanaryText, value, Remedy)
		}
	}
	return nil
}

// canaryResult returns the task's result from ansible-runner's job events.
func canaryResult(out []byte) ([]any, bool) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, maxCanaryLine)
	for lines.Scan() {
		var event struct {
			Event string `json:"event"`
			Data  struct {
				Task   string `json:"task"`
				Result struct {
					Msg []any `json:"msg"`
				} `json:"res"`
			} `json:"event_data"`
		}
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Event == "runner_on_ok" && event.Data.Task == canaryTask {
			return event.Data.Result.Msg, len(event.Data.Result.Msg) > 0
		}
	}
	return nil, false
}

// outputTail returns the end of the play's output for an error: the text of events, and the
// lines that are not events. It removes the random name of the directory.
func outputTail(out []byte, dir string) string {
	const limit = 1 << 10
	var text strings.Builder
	for line := range bytes.Lines(out) {
		var event struct {
			Stdout *string `json:"stdout"`
		}
		switch err := json.Unmarshal(line, &event); {
		case err != nil || event.Stdout == nil:
			text.Write(line)
		case *event.Stdout != "":
			text.WriteString(*event.Stdout + "\n")
		}
	}
	return lastWords(strings.ReplaceAll(text.String(), dir, "…"), limit)
}

const traceback = "Traceback (most recent call last):"

// colour is how programs colour text for a terminal.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// lastWords returns the last lines of a program's output, up to limit bytes. If they end with a
// traceback of Python, it returns only the line after it, which has the error.
func lastWords(printed string, limit int) string {
	printed = strings.TrimSpace(strings.ReplaceAll(colour.ReplaceAllString(strings.ToValidUTF8(printed, ""), ""), "\r", ""))
	if before, _, found := strings.Cut(printed, traceback); found {
		printed = strings.TrimSpace(before + lastLine(printed))
	}
	if len(printed) > limit {
		printed = strings.ToValidUTF8(printed[len(printed)-limit:], "")
		_, printed, _ = strings.Cut(printed, "\n")
	}
	return printed
}
