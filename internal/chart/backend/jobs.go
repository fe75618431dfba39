package backend

import (
	"context"
	"errors"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	ansible "github.com/ensign-operator/ensign/internal/ansible/runner"
	chart "github.com/ensign-operator/ensign/internal/chart/engine"
	"github.com/ensign-operator/ensign/internal/chart/runner"
	"github.com/ensign-operator/ensign/internal/config"
	"github.com/ensign-operator/ensign/internal/jobs/executor"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/process"
	"github.com/ensign-operator/ensign/pkg/content"
)

// inJobs carries out orders in Jobs, whose agents send the messages of chart-exec as job events.
// A manager that carried them out itself before has left files.
type inJobs struct {
	local

	jobs *executor.Runner
}

var _ chart.Remote = inJobs{}

// RunRemote implements chart.Remote.
func (c inJobs) RunRemote(ctx context.Context, spec runner.Spec, attempt process.Attempt) content.Result {
	order, err := spec.Encode()
	if err != nil {
		return content.Result{Outcome: *content.Refusal(content.ReasonRunnerCrashed, err)}
	}
	jobs := *c.jobs
	jobs.Assignment.Chart = order
	return resultOf(jobs.RunRemote(ctx, described(spec), attempt, said(spec)))
}

// Resume implements chart.Remote.
func (c inJobs) Resume(ctx context.Context, spec runner.Spec, attempt process.Attempt) *content.Result {
	earlier := c.jobs.Resume(ctx, described(spec), attempt, said(spec))
	if earlier == nil {
		return nil
	}
	result := resultOf(*earlier)
	result.Account.Duration = max(0, earlier.Ended.Sub(earlier.Started)) // An earlier manager began it, on a machine with another clock.
	return &result
}

// HasEarlier implements chart.Remote.
func (c inJobs) HasEarlier(ctx context.Context, uid string, attempt process.Attempt) bool {
	return c.jobs.HasEarlier(ctx, uid, attempt)
}

// ResultStored implements chart.Remote.
func (c inJobs) ResultStored(uid string) { c.jobs.ResultStored(uid) }

// Terminate implements chart.Remote.
func (c inJobs) Terminate(ctx context.Context, uid string) error {
	return c.jobs.Terminate(ctx, uid)
}

// Remove implements chart.Runner.
func (c inJobs) Remove(uid string) error {
	return errors.Join(c.jobs.Remove(uid), c.local.Remove(uid))
}

// described returns the description of the run.
func described(spec runner.Spec) ansible.Spec {
	return ansible.Spec{UID: spec.UID, Watch: spec.Watch, CR: spec.CR, ID: spec.ID, Kubeconfig: spec.Kubeconfig, Timeout: spec.Timeout}
}

// said passes on the messages of chart-exec in a Job.
func said(spec runner.Spec) func(jobevent.Event) {
	return func(e jobevent.Event) {
		if e.Kind == wire.ChartLeft {
			spec.Left(e.Task)
		} else {
			spec.Working(e.Task)
		}
	}
}

func resultOf(r ansible.Result) content.Result {
	return content.Result{Outcome: r.Outcome, Detached: r.Detached, Account: content.Account{Start: r.Start()}}
}

// Agent carries out an order in the pod of a Job.
type Agent struct {
	*runner.Runner

	order []byte
}

// NewAgent returns the Agent for the order, which the manager has encoded.
func NewAgent(o config.Options, order []byte, at process.Dirs) (*Agent, error) {
	r, err := newRunner(o, at)
	return &Agent{r, order}, err
}

// Run is that of a Runner in package jobs/agent.
func (c *Agent) Run(ctx context.Context, run ansible.Spec, observe func(jobevent.Event)) ansible.Result {
	result := ansible.Result{Started: time.Now()}
	spec, err := runner.Decode(c.order)
	if err != nil {
		result.Outcome = *content.Refusal(content.ReasonRunnerCrashed, err)
	} else {
		spec.UID, spec.ID, spec.Kubeconfig, spec.Timeout = run.UID, run.ID, run.Kubeconfig, run.Timeout
		spec.Working = func(step string) { observe(jobevent.Event{Kind: jobevent.TaskStart, Task: step}) }
		spec.Left = func(what string) { observe(jobevent.Event{Kind: wire.ChartLeft, Task: what}) }
		result.Outcome = c.Runner.Run(ctx, spec)
	}
	result.Ended = time.Now()
	return result
}
