package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/pkg/content"
)

// Assignment describes the run that an agent executes.
type Assignment struct {
	// Session is the bearer token of everything that follows. The server sets it.
	Session string
	// Spec is the run's. It has no kubeconfig: the agent makes one for its relay.
	Spec run.Spec
	// Namespace is the default namespace of the kubeconfig.
	Namespace string

	Common
}

// Common has the fields that are the same in all assignments of a watch.
type Common struct {
	// UserMetrics is true where runs may post metrics.
	UserMetrics bool
	// Settings are those of the manager on which its runs depend. The program of the manager writes and
	// reads them.
	Settings json.RawMessage
}

// Events are the events of a run in their order. The first one has the number First; the first of a run
// has 1. The kind of content knows what they mean.
type Events struct {
	First  int64
	Events []json.RawMessage
}

// Wanted acknowledges all events below Next.
type Wanted struct {
	Next int64
}

// Result is the result of a run.
type Result struct {
	// RunID is the ID of the Spec.
	RunID string

	run.Result

	// Events is the number of the last event; 0 if there was none.
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

// DecodeEvents reads events from an agent.
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

// boundedEvents are a list of events that is not decoded beyond maxEvents: an empty one takes 3 bytes here, and
// may take some hundred once the kind of content decodes it.
type boundedEvents []json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (b *boundedEvents) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if first, err := decoder.Token(); err != nil || first == nil {
		return err
	} else if first != json.Delim('[') {
		return errors.New("the events must be a list")
	}
	for decoder.More() {
		if len(*b) == maxEvents {
			return fmt.Errorf("more than %d events", maxEvents)
		}
		var event json.RawMessage
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

// errLong is returned for a result that a termination message has no room for.
var errLong = fmt.Errorf("the result has more than %d bytes", maxTermination)

// EncodeTermination returns the result as a termination message. It takes the brief form of the detail,
// and cuts the outcome's message if needed.
func EncodeTermination(r Result) ([]byte, error) {
	if r.Brief != nil {
		r.Detail = r.Brief
	}
	encoded, err := encode(r)
	if err != nil || len(encoded) <= maxTermination {
		return encoded, err
	}
	// Each byte of the message takes one or more in JSON.
	const suffix = "… [cut]"
	kept := max(0, len(r.Outcome.Message)-(len(encoded)-maxTermination)-len(suffix))
	r.Outcome.Message = strings.ToValidUTF8(r.Outcome.Message[:kept], "") + suffix
	if encoded, err = encode(r); len(encoded) > maxTermination {
		return nil, errLong // A part of it would be a wrong result.
	}
	return encoded, err
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
