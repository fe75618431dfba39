package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/internal/chart/values"
	"github.com/ensign-operator/ensign/internal/run"
)

// payload is the part of a Spec that is not its description: the order, and the values to redact, so that
// they do not leave the process of Execute.
type payload struct {
	Order  json.RawMessage `json:"order"`
	Hidden *values.Mask    `json:"hidden"`
}

// Portable returns the run as a run.Executor takes it, for Execute.
func (s Spec) Portable() (run.Spec, error) {
	text, err := json.Marshal(s.Order)
	if err == nil {
		text, err = json.Marshal(payload{text, s.Hidden})
	}
	if err != nil {
		return run.Spec{}, fmt.Errorf("encode the order: %w", err)
	}
	return run.Spec{UID: s.UID, ID: s.ID, Watch: s.Watch, CR: s.CR, Kubeconfig: s.Kubeconfig, Timeout: s.Timeout, Payload: text}, nil
}

// Decode returns the spec for which Portable was called, without its functions.
func Decode(portable run.Spec) (Spec, error) {
	var its payload
	if err := json.Unmarshal(portable.Payload, &its); err != nil {
		return Spec{}, fmt.Errorf("read the order: %w", err)
	}
	o, err := order.Decode(its.Order)
	return Spec{
		UID: portable.UID, ID: portable.ID, Watch: portable.Watch, CR: portable.CR, Kubeconfig: portable.Kubeconfig, Timeout: portable.Timeout,
		Order: o, Hidden: its.Hidden,
	}, err
}

// event is a call of one of the functions of a Spec.
type event struct {
	Working string `json:"working,omitempty"`
	Left    string `json:"left,omitempty"`
}

// Execute is a run.Program for the runs that Portable returns.
func (r *Runner) Execute(ctx context.Context, portable run.Spec, emit func(event []byte)) run.Result {
	spec, err := Decode(portable)
	if err != nil {
		return run.Failed(err)
	}
	send := func(e event) {
		text, _ := json.Marshal(e) // It has texts alone.
		emit(text)
	}
	spec.Working = func(step string) { send(event{Working: step}) }
	spec.Left = func(what string) { send(event{Left: what}) }
	result := run.Result{Started: time.Now()}
	result.Outcome, result.Ended = r.Run(ctx, spec), time.Now()
	return result
}

// Hear calls the function for an event of Execute. It drops texts that it cannot read.
func (s Spec) Hear(text []byte) {
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return
	}
	if e.Working != "" {
		s.Working(e.Working)
	}
	if e.Left != "" && s.Left != nil {
		s.Left(e.Left)
	}
}
