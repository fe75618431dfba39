// Package runner carries out orders by the program chart-exec, a process for each, and determines
// their outcomes.
//
// It does not decide which action a release needs, write status, or know Helm.
package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/internal/process/proctree"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/internal/sanitize"
	"github.com/ensign-operator/ensign/pkg/content"
)

// orderFile is the name of the order in the directory of a run.
const orderFile = "order.json"

// Runner starts chart-exec. Root, Reaper and Binary are required. Run may be called
// concurrently.
type Runner struct {
	// Root holds the directories of the runs.
	Root   *rundir.Root
	Reaper *proctree.Reaper
	// Binary is the absolute path of chart-exec.
	Binary string
	// Env is the manager's environment as "NAME=value". DropEnv names variables that runs do
	// not get.
	Env, DropEnv []string
	// Ready is called before each start, may block, and returns nil if a run may start. nil
	// means always.
	Ready func(ctx context.Context) error
}

// Spec describes one run.
type Spec struct {
	// UID is the CR's. Two runs for one UID never run at the same time.
	UID string
	// Watch and CR describe the run, in the same words as the log.
	Watch, CR string
	// ID is unique among the runs of this manager.
	ID         string
	Kubeconfig []byte
	Order      order.Order
	// Timeout ends the run; 0 means no timeout.
	Timeout time.Duration
	// Working is called with each step of the run, and Left with each object that stays because it
	// belongs to another release. Left may be nil.
	Working, Left func(string)
	// Hidden redacts values in messages; nil: there are none.
	Hidden *values.Mask
}

// Run carries out the order and returns after the last process of the run has ended.
func (r *Runner) Run(ctx context.Context, spec Spec) content.Outcome {
	nonce, err := process.NewNonce()
	if err != nil {
		return crashed(err)
	}
	spec.Order.Nonce = nonce
	text, err := json.Marshal(spec.Order)
	if err != nil {
		return crashed(err)
	}
	dir, err := r.Root.PrepareFiles(spec.UID, spec.ID, spec.Kubeconfig, map[string][]byte{orderFile: text})
	if err != nil {
		return crashed(err)
	}
	defer func() {
		if err := dir.Close(1); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "the directory of a run could not be cleared")
		}
	}()
	if r.Ready != nil {
		err = r.Ready(ctx)
	}
	if ctx.Err() != nil {
		return canceled()
	}
	if err != nil {
		return crashed(err)
	}
	ctx, end := process.WithTimeout(ctx, spec.Timeout)
	defer end(nil)
	return r.execute(ctx, spec, dir)
}

func (r *Runner) execute(ctx context.Context, spec Spec, dir *rundir.Dir) content.Outcome {
	cmd := exec.Command(r.Binary, filepath.Join(dir.Private, orderFile))
	cmd.Dir, cmd.Env = dir.Project, r.environ(dir, spec.Order.Nonce)
	pipes, err := process.Connect(cmd, false)
	if err != nil {
		return crashed(err)
	}
	var last *order.Record
	p, err := pipes.Start(func() (*proctree.Tree, error) { return r.Reaper.Start(cmd, spec.Order.Nonce) }, func(records io.Reader) (err error) {
		last, err = order.Read(records, spec.Order.Nonce, func(record order.Record) {
			if record.Working != "" {
				spec.Working(record.Working)
			}
			if record.Left != "" && spec.Left != nil {
				spec.Left(record.Left)
			}
		})
		return err
	})
	if err != nil {
		return crashed(fmt.Errorf("start chart-exec, which belongs beside the manager's program: %w", err))
	}
	code, cause, err := p.Wait(ctx, process.DefaultGrace)
	e := processExit{code: code, cause: cause, err: err, last: last, text: cmp.Or(crash(dir), p.Printed.String())}
	e.text = spec.Hidden.Text(e.text) // Before anything is cut.
	if last != nil {
		last.Error = spec.Hidden.Text(last.Error)
	}
	return determineOutcome(e)
}

// crash returns the line with the reason of a crash of the program; "" if there is none. Stacks follow
// that line.
func crash(dir *rundir.Dir) string {
	text, _ := os.ReadFile(filepath.Join(dir.Temp, order.CrashFile)) // It is missing if the program ended before.
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "panic: ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// dropped are the variables of the manager that no run gets: they would bypass the API
// proxy, configure Helm, or are limits of the manager's own process.
var dropped = []string{"KUBERNETES_SERVICE_*", "KUBECONFIG", "HELM_*", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "GOTRACEBACK", "JOB_ID"} //nolint:gochecknoglobals // A table.

func (r *Runner) environ(dir *rundir.Dir, nonce int64) []string {
	env := process.InheritedEnv(r.Env, dropped, r.DropEnv)
	env["JOB_ID"] = strconv.FormatInt(nonce, 10)
	env["KUBECONFIG"] = dir.Kubeconfig
	env["HOME"], env["TMPDIR"] = dir.Project, dir.Temp
	for _, entry := range r.Reaper.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	process.BypassHTTPProxy(env)
	return process.Entries(env)
}

// processExit says how a run ended.
type processExit struct {
	code int
	// cause is why the run's context ended; nil if it did not.
	cause error
	// err is an error of reading the records.
	err error
	// last is the last record; nil if there was none.
	last *order.Record
	// text is the end of the output.
	text string
}

// determineOutcome returns the outcome of a run. It succeeded if and only if chart-exec exited with
// 0 and its last record says so.
func determineOutcome(e processExit) content.Outcome {
	switch {
	case e.err != nil:
		return crashed(e.err)
	case e.last != nil && e.code == 0 && e.last.Error == "":
		return content.Outcome{Verdict: content.Succeeded, Reason: content.ReasonSuccessful}
	case errors.Is(e.cause, process.ErrTimeout):
		return failed(content.ReasonTimeout, "the run took longer than its timeout: "+e.cause.Error())
	case e.cause != nil:
		return canceled()
	case e.last != nil && e.last.Error != "":
		return failed(reasonOf(e.last), e.last.Error)
	default:
		return failed(content.ReasonRunnerCrashed, strings.TrimSpace(fmt.Sprintf("chart-exec exited with code %d before the run ended\n%s", e.code, e.text)))
	}
}

// ReasonInvalidValues means that an object of valuesFrom is missing, or has values that the chart cannot
// take. A change of the object fixes it.
const ReasonInvalidValues content.Reason = "InvalidValues"

func reasonOf(last *order.Record) content.Reason {
	switch last.Refused {
	case order.RefusedOfSpec:
		return content.ReasonInvalidSpec
	case order.RefusedOfObject:
		return ReasonInvalidValues
	case order.RefusedOfChart:
		return values.ReasonInvalidChart
	}
	return content.ReasonFailed
}

func crashed(err error) content.Outcome {
	return failed(content.ReasonRunnerCrashed, "chart-exec could not be run: "+err.Error())
}

func canceled() content.Outcome {
	return content.Outcome{Verdict: content.Canceled, Reason: content.ReasonCanceled, Message: "run canceled"}
}

// failed returns a failure. Its message is safe to show and has 4 KiB at most.
func failed(reason content.Reason, message string) content.Outcome {
	const limit = 4 << 10
	message = sanitize.Text(message)
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit-len("…")], "") + "…"
	}
	return content.Outcome{Verdict: content.Failed, Reason: reason, Message: message}
}
