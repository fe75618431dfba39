package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/internal/jobs/agent"
	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/test/harness"
)

// Execute runs the spec as r does: in this process, or, where suites run content in Jobs, by an
// agent that gets the spec from a manager's server and sends it what comes of the run.
func Execute(ctx context.Context, r *runner.Runner, spec runner.Spec, observe func(jobevent.Event)) runner.Result {
	if !harness.InJobs() {
		return r.Run(ctx, spec, observe)
	}
	portable, err := spec.Portable()
	if err != nil {
		return runner.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, err)}
	}
	j := &job{runner: r, spec: portable, emit: runner.Decoded(ctx, observe)}
	if err := j.run(ctx); err != nil {
		return runner.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, err)}
	}
	return j.result
}

// Run runs the spec: see Execute.
func (b *Bench) Run(ctx context.Context, spec runner.Spec, observe func(jobevent.Event)) runner.Result {
	return Execute(ctx, b.Runner, spec, observe)
}

// job plays the manager of one run in a Job: its pod has claimed it.
type job struct {
	runner *runner.Runner
	spec   run.Spec
	emit   func(event []byte)

	mu     sync.Mutex
	taken  int64
	result runner.Result
}

func (j *job) run(ctx context.Context) error {
	own, err := identity.New(make([]byte, 32))
	if err != nil {
		return err
	}
	server, err := serve.New(serve.Options{Identity: own, Registry: j, Reviewer: j, API: http.NotFoundHandler(), Address: "127.0.0.1:0", Logger: logr.Discard()})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var served sync.WaitGroup
	served.Go(func() { _ = server.Server().Start(serving) }) // What it could not serve, the agent has missed.
	defer func() {
		stop()
		served.Wait()
	}()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		return err
	}
	return agent.Run(ctx, agent.Options{
		Addresses: server.Address(), PublicKey: own.PublicKey(), TokenFile: token, TerminationFile: filepath.Join(dir, "termination"),
		NewProgram: func(context.Context, wire.Assignment, []string) (run.Program, func() error, error) {
			return j.runner.Execute, func() error { return nil }, nil
		},
		Logger: logr.FromContextOrDiscard(ctx),
	})
}

// Review implements serve.Reviewer.
func (*job) Review(context.Context, string) (serve.Caller, error) {
	return serve.Caller{Job: types.NamespacedName{Name: "job"}, JobUID: "job", PodUID: "pod"}, nil
}

// Claim implements serve.Registry.
func (j *job) Claim(context.Context, types.NamespacedName, types.UID, types.UID) (wire.Assignment, error) {
	return wire.Assignment{Spec: j.spec}, nil
}

// Live implements serve.Registry.
func (j *job) Live(types.UID, string) (serve.Live, bool) { return j, true }

// Events implements serve.Live.
func (j *job) Events(_ context.Context, first int64, events []json.RawMessage) (next int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, event := range events {
		if number := first + int64(i); number == j.taken+1 {
			j.emit(event)
			j.taken = number
		}
	}
	return j.taken + 1, nil
}

// Result implements serve.Live.
func (j *job) Result(_ context.Context, r wire.Result) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Events != j.taken {
		return errors.New("events are missing")
	}
	summary, err := runner.SummaryOf(r.Result)
	j.result = runner.Result{Outcome: r.Outcome, Summary: summary, Started: r.Started, Ended: r.Ended}
	return err
}

// ProxyToken implements serve.Live.
func (*job) ProxyToken() string { return "" }
