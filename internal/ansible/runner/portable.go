package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/run"
)

// Portable returns the run as a run.Executor takes it, for Execute in another pod.
func (s Spec) Portable() (run.Spec, error) {
	portable := run.Spec{UID: s.UID, ID: s.ID, Watch: s.Watch, CR: s.CR, Kubeconfig: s.Kubeconfig, Timeout: s.Timeout}
	s.Kubeconfig = nil
	var err error
	if portable.Payload, err = json.Marshal(s); err != nil {
		return run.Spec{}, fmt.Errorf("encode the run: %w", err)
	}
	return portable, nil
}

// Execute is a run.Program for the runs that Portable returns.
func (r *Runner) Execute(ctx context.Context, portable run.Spec, emit func(event []byte)) run.Result {
	var spec Spec
	if err := json.Unmarshal(portable.Payload, &spec); err != nil {
		return run.Failed(fmt.Errorf("read the run: %w", err))
	}
	spec.ID, spec.Kubeconfig, spec.Cold = portable.ID, portable.Kubeconfig, true
	return resultOf(r.Run(ctx, spec, func(e jobevent.Event) { emit(encode(e)) }))
}

// encode returns an event as it may leave the pod: sanitized, and without the text that Ansible displays.
func encode(e jobevent.Event) []byte {
	e.Stdout, e.Result = "", jobevent.Sanitize(e.Result)
	text, _ := json.Marshal(e) // It came from JSON.
	return text
}

func resultOf(ran Result) run.Result {
	result := run.Result{Outcome: ran.Outcome, Started: ran.Started, Ended: ran.Ended}
	result.Detail, _ = json.Marshal(ran.Summary) // It has numbers, texts and times.
	result.Brief, _ = json.Marshal(ran.Summary.Counts())
	return result
}

// Decoded returns a function that passes the events of Execute to observe. It drops texts that it cannot read.
func Decoded(ctx context.Context, observe func(jobevent.Event)) func(event []byte) {
	return func(text []byte) {
		var e jobevent.Event
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber() // As in any job event.
		if err := decoder.Decode(&e); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("dropped an event that cannot be read", "error", err.Error())
			return
		}
		observe(e)
	}
}

// SummaryOf returns the summary in a result of Execute; an empty one if the run ended without a result.
func SummaryOf(result run.Result) (summary jobevent.Summary, err error) {
	if result.Detail == nil {
		return summary, nil
	}
	if err := json.Unmarshal(result.Detail, &summary); err != nil {
		return jobevent.Summary{}, fmt.Errorf("read the result of the run: %w", err)
	}
	return summary, nil
}
