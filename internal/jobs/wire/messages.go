package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/internal/ansible/runner"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Assignment describes the run that an agent executes.
type Assignment struct {
	// Session is the bearer token of everything that follows. The server sets it.
	Session string
	// Spec is the run's. It has no kubeconfig: the agent makes one for its relay.
	Spec runner.Spec
	// Namespace is the default namespace of the kubeconfig.
	Namespace string
	Settings  Settings
	// Chart is the order of a run that chart-exec carries out, as chart/runner encodes it; without one
	// the run is Ansible's. With it, the Spec only describes the run.
	Chart []byte `json:",omitempty"`
	// Python proves the manager's Python environment. An agent with the same environment need not prove
	// it again.
	Python pyenv.Proof
}

// Settings are the manager's settings that a run depends on. Fields are named and mean the same as
// those of options.Options, whose paths are absolute. Other settings come from the environment and
// the files of the pod.
type Settings struct {
	Dir, WatchesFile                         string
	AnsibleRolesPath, AnsibleCollectionsPath string
	AnsibleArgs                              string
	DropEnv                                  []string
	RunIdleTimeout                           time.Duration
	// UserMetrics is true where roles may post metrics.
	UserMetrics bool
}

// Events are job events in their order. The first one has the number First; the first of a run has 1.
type Events struct {
	First  int64
	Events []jobevent.Event
}

// Wanted acknowledges all events below Next.
type Wanted struct {
	Next int64
}

// Result is the result of a run.
type Result struct {
	// RunID is the ID of the Spec.
	RunID          string
	Outcome        content.Outcome
	Summary        jobevent.Summary
	Started, Ended time.Time
	// Events is the number of the last job event; 0 if there was none.
	Events int64
}

// check returns an error if the result has no valid outcome.
func (r *Result) check() error {
	switch r.Outcome.Verdict {
	case content.Succeeded, content.Failed, content.Canceled:
	default:
		return fmt.Errorf("unknown verdict %q", r.Outcome.Verdict)
	}
	if r.RunID == "" || r.Outcome.Reason == "" || r.Ended.IsZero() || r.Events < 0 {
		return errors.New("the run's ID, reason or end is missing")
	}
	return nil
}

// DecodeResult reads a result from an agent.
func DecodeResult(r io.Reader) (Result, error) {
	var result Result
	if err := decode(json.NewDecoder(r), &result); err != nil {
		return Result{}, err
	}
	return result, result.check()
}

// DecodeEvents reads events from an agent. Numbers in results of tasks are json.Number, as in any
// job event.
func DecodeEvents(r io.Reader) (Events, error) {
	var read struct {
		First  int64
		Events boundedEvents
	}
	if err := decode(json.NewDecoder(r), &read); err != nil {
		return Events{}, err
	}
	if read.First < 1 {
		return Events{}, fmt.Errorf("the first event has the number %d", read.First)
	}
	return Events{read.First, read.Events}, nil
}

// boundedEvents are a list of events that is not decoded beyond maxEvents: an empty one takes 3 bytes, and
// some hundred once it is decoded.
type boundedEvents []jobevent.Event

// UnmarshalJSON implements json.Unmarshaler.
func (b *boundedEvents) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first == nil {
		return err
	} else if first != json.Delim('[') {
		return errors.New("the events must be a list")
	}
	for decoder.More() {
		if len(*b) == maxEvents {
			return fmt.Errorf("more than %d events", maxEvents)
		}
		var event jobevent.Event
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		*b = append(*b, event)
	}
	return nil
}

// decode reads exactly one JSON value.
func decode(decoder *json.Decoder, into any) error {
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more follows after the JSON value")
	}
	return nil
}

// maxTermination is how much Kubernetes keeps of a container's termination message.
const maxTermination = 4096

// EncodeTermination returns the result as a termination message. It keeps only the counts of the summary,
// and cuts the outcome's message if needed.
func EncodeTermination(r Result) ([]byte, error) {
	s := r.Summary
	r.Summary = jobevent.Summary{
		StatsSeen: s.StatsSeen, OK: s.OK, Changed: s.Changed, Skipped: s.Skipped, Failures: s.Failures, Unreachable: s.Unreachable, Rescued: s.Rescued, Ignored: s.Ignored,
		Lost: s.Lost, Hosts: s.Hosts, Plays: s.Plays, Unmatched: s.Unmatched, Completion: s.Completion, RequeueAfter: s.RequeueAfter,
	}
	encoded, err := encode(r)
	if err != nil || len(encoded) <= maxTermination {
		return encoded, err
	}
	// Each byte of the message takes one or more in JSON.
	const suffix = "… [cut]"
	kept := max(0, len(r.Outcome.Message)-(len(encoded)-maxTermination)-len(suffix))
	r.Outcome.Message = strings.ToValidUTF8(r.Outcome.Message[:kept], "") + suffix
	return encode(r)
}

// encode returns JSON with few escapes.
func encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// DecodeTermination reads a termination message. It returns an error if it was cut, or is not an agent's.
func DecodeTermination(message []byte) (Result, error) {
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.DisallowUnknownFields()
	var result Result
	if err := decode(decoder, &result); err != nil {
		return Result{}, err
	}
	return result, result.check()
}
