package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/pkg/content"
)

// This file passes the messages of the agent of a run to the goroutine of serve.

// batch is a call of Events, and handed one of Result.
type (
	batch struct {
		first  int64
		events []json.RawMessage
		next   chan int64
	}
	handed struct {
		result wire.Result
		answer chan error
	}
)

// ProxyToken implements serve.Live.
func (r *jobRun) ProxyToken() string { return r.token }

// errOver is the answer to messages after the end.
var errOver = errors.New("the run has ended here")

// Events implements serve.Live.
func (r *jobRun) Events(ctx context.Context, first int64, events []json.RawMessage) (next int64, err error) {
	b := batch{first, events, make(chan int64, 1)}
	select {
	case r.batches <- b:
	case <-r.over:
		return r.next.Load(), errOver
	case <-ctx.Done():
		return r.next.Load(), ctx.Err()
	}
	select {
	case next := <-b.next:
		return next, nil
	case <-r.over:
		return r.next.Load(), errOver
	case <-ctx.Done():
		return r.next.Load(), ctx.Err()
	}
}

// Result implements serve.Live.
func (r *jobRun) Result(ctx context.Context, result wire.Result) error {
	h := handed{result, make(chan error, 1)}
	select {
	case r.results <- h:
		return <-h.answer
	case <-r.over:
		return errOver
	case <-ctx.Done():
		return ctx.Err()
	}
}

// accepts answers the agent that has handed a result over, and reports whether it is the result of
// the run.
func (r *jobRun) accepts(h handed) bool {
	err := r.check(h.result)
	h.answer <- err
	return err == nil && h.result.Outcome.Verdict != content.Canceled // Kubernetes will say why.
}

// take passes new events on and returns the number of the next one.
func (r *jobRun) take(b batch) int64 {
	if r.next.Load() == 0 {
		r.next.Store(b.first)
	}
	for i, event := range b.events {
		if number := b.first + int64(i); number == r.next.Load() {
			r.emit(event)
			r.next.Add(1)
		}
	}
	return r.next.Load()
}

// check returns an error if the result is that of another run, or comes before its events.
func (r *jobRun) check(result wire.Result) error {
	switch next := r.next.Load(); {
	case result.RunID != r.assignment.Spec.ID:
		return fmt.Errorf("the result is that of the run %s", result.RunID)
	case next > 0 && result.Events >= next:
		return fmt.Errorf("events from %d on are missing", next)
	}
	return nil
}
