package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
)

const (
	// heartbeat is how often an agent without events sends a sign of life.
	heartbeat = 5 * time.Second
	// requestTimeout bounds one request about the run itself. A manager answers within 20 s.
	requestTimeout = 45 * time.Second
	// relayPatience is how long requests of the run wait while no manager has it.
	relayPatience = time.Minute
	// drainTimeout is how long after the run a manager may be away while the agent sends the rest.
	drainTimeout = time.Minute
	// maxAnswer bounds the assignment. Its payload has the run's values: a CR of at most 1.5 MiB and
	// the watch's own.
	maxAnswer = 64 << 20
)

// Options are the settings of an agent. All are required.
type Options struct {
	// Addresses and PublicKey are the values of wire.EnvAddress and wire.EnvKey.
	Addresses, PublicKey string
	// TokenFile has the service account token, and TerminationFile takes the termination message.
	TokenFile, TerminationFile string
	// NewProgram makes the program that executes the run, with further variables for it. closeProgram is
	// called after the run.
	NewProgram func(ctx context.Context, a wire.Assignment, environ []string) (program run.Program, closeProgram func() error, err error)
	Logger     logr.Logger

	// brief makes the time after a TERM shorter, for tests.
	brief bool
}

// shortDrainTimeout is drainTimeout after a TERM, which a KILL follows.
func (o Options) shortDrainTimeout() time.Duration {
	if o.brief {
		return time.Millisecond
	}
	return 10 * time.Second
}

// Run claims the run of this pod, executes it and hands its result over. It returns nil once a manager
// or the termination message has the result. ctx ends with a TERM.
func Run(ctx context.Context, o Options) error {
	all, err := newManagers(o.Addresses, o.PublicKey, o.Logger)
	if err != nil {
		return err
	}
	defer all.transport.CloseIdleConnections()
	a := &agent{options: o, managers: all, queue: newQueue()}
	assignment, err := a.claim(ctx)
	if errors.Is(err, errTaken) {
		// If this pod ended, Kubernetes would end the other one.
		o.Logger.Info("another pod of the Job executes the run; this pod waits until Kubernetes ends it")
		<-ctx.Done()
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the run of this pod: %w", err)
	}
	return a.execute(ctx, assignment)
}

type agent struct {
	options  Options
	managers *managers
	queue    *queue
	session  string
	// limit ends the drain after the run, once it has begun.
	limit atomic.Pointer[time.Timer]
}

var errTaken = errors.New("another pod of the Job executes the run")

// claim gets this pod's assignment from the manager that has its Job.
func (a *agent) claim(ctx context.Context) (wire.Assignment, error) {
	for {
		token, err := os.ReadFile(a.options.TokenFile) // The kubelet renews it.
		if err != nil {
			return wire.Assignment{}, err
		}
		code, answer, err := a.post(ctx, wire.ClaimPath, strings.TrimSpace(string(token)), nil)
		switch {
		case ctx.Err() != nil:
			return wire.Assignment{}, context.Cause(ctx)
		case err == nil && code == http.StatusOK:
			var assignment wire.Assignment
			return assignment, json.Unmarshal(answer, &assignment)
		case err == nil && code == http.StatusConflict:
			return wire.Assignment{}, errTaken
		case err == nil:
			err = fmt.Errorf("a manager answers %d: %s", code, bytes.TrimSpace(answer))
		}
		a.managers.logNoManager(err)
		if !pause(ctx, longestPause) {
			return wire.Assignment{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// pause waits for d; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// post sends a message of the agent to the manager that has the run. It waits for that manager.
func (a *agent) post(ctx context.Context, path, token string, body []byte) (code int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://manager"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header[idempotencyKey] = nil // Managers ignore duplicates, so that it may be sent again.
	response, err := client{managers: a.managers}.RoundTrip(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, answer, err
}

// execute runs the assignment and hands its result over.
func (a *agent) execute(ctx context.Context, assignment wire.Assignment) error {
	a.session = assignment.Session
	sending, stopSending := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSending()
	ended := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() { a.sendEvents(sending, ended) })
	result := a.run(ctx, assignment)
	unwritten := a.writeTermination(result)
	a.limit.Store(time.AfterFunc(drainTimeout, stopSending))
	defer context.AfterFunc(ctx, func() { time.AfterFunc(a.options.shortDrainTimeout(), stopSending) })()
	close(ended)
	sender.Wait()
	undelivered := a.sendResult(sending, result)
	if undelivered == nil || unwritten == nil {
		return nil
	}
	return fmt.Errorf("no manager has taken the result of the run: %w", errors.Join(undelivered, unwritten))
}

// run executes the run. If the run cannot begin, the reason is its result.
func (a *agent) run(ctx context.Context, assignment wire.Assignment) wire.Result {
	spec := assignment.Spec
	log := a.options.Logger.WithValues("run", spec.ID, "cr", spec.CR)
	fail := func(err error) wire.Result {
		log.Info("the run cannot begin", "reason", err.Error())
		return wire.Result{RunID: spec.ID, Result: run.Failed(err)}
	}
	relay, err := startRelay(client{a.managers, relayPatience}, assignment, a.options.Logger)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = relay.close() }()
	program, closeProgram, err := a.options.NewProgram(ctx, assignment, relay.environ)
	if err != nil {
		return fail(err)
	}
	spec.Kubeconfig = relay.kubeconfig
	log.Info("run started", "watch", spec.Watch)
	ran := program(logr.NewContext(ctx, log), spec, func(event []byte) { a.queue.put(ctx, event) })
	if err := closeProgram(); err != nil {
		log.Info("could not remove the files of the run", "reason", err.Error())
	}
	log.Info("run ended", "verdict", ran.Outcome.Verdict, "reason", ran.Outcome.Reason)
	return wire.Result{RunID: spec.ID, Result: ran, Events: a.queue.last()}
}

// writeTermination writes the termination message, in case no manager comes back before the pod ends.
func (a *agent) writeTermination(result wire.Result) error {
	message, err := wire.EncodeTermination(result)
	if err == nil {
		err = os.WriteFile(a.options.TerminationFile, message, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the termination message: %w", err)
	}
	return nil
}

// sendEvents sends events in their order until the run has ended and all are taken, or ctx ends.
func (a *agent) sendEvents(ctx context.Context, ended <-chan struct{}) {
	for {
		complete := isClosed(ended)
		body, count, changed := a.queue.batch()
		switch {
		case count == 0 && complete:
			return
		case count == 0:
			select {
			case <-changed:
				continue
			case <-ended:
				continue
			case <-time.After(heartbeat):
			}
		}
		next, err := a.sendBatch(ctx, body)
		if err == nil && a.queue.taken(next) == 0 && count > 0 {
			err = errors.New("the manager takes no events now")
		}
		if err == nil {
			if limit := a.limit.Load(); limit != nil {
				limit.Reset(drainTimeout)
			}
			continue
		}
		a.managers.logNoManager(err)
		if !pause(ctx, firstPause) {
			return
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (a *agent) sendBatch(ctx context.Context, body []byte) (next int64, err error) {
	answer, err := a.send(ctx, wire.EventsPath, body)
	var wanted wire.Wanted
	return wanted.Next, errors.Join(err, json.Unmarshal(answer, &wanted))
}

// send posts something about the run, and returns the answer if the manager takes it.
func (a *agent) send(ctx context.Context, path string, body []byte) ([]byte, error) {
	code, answer, err := a.post(ctx, path, a.session, body)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("a manager answers %d: %s", code, bytes.TrimSpace(answer))
	}
	return answer, err
}

// sendResult offers the result to managers until one has taken it, or ctx ends.
func (a *agent) sendResult(ctx context.Context, result wire.Result) error {
	body, err := json.Marshal(result)
	if err != nil {
		return err
	}
	for {
		if _, err = a.send(ctx, wire.ResultPath, body); err == nil {
			return nil
		}
		a.managers.logNoManager(err)
		if !pause(ctx, firstPause) {
			return fmt.Errorf("hand over the result: %w", err)
		}
	}
}
