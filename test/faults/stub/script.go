package stub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// DirVariable is the environment variable that names the directory of a stub.
const DirVariable = "ENSIGN_STUB_DIR"

// Failure is how a run fails.
type Failure string

// The failures. Only the first one shows in the exit code.
const (
	// FailedTask is a failed task, as Ansible reports it.
	FailedTask Failure = "failed-task"
	// NoStats ends the play before its stats.
	NoStats Failure = "no-stats"
	// FailedStats reports a failed task in events and stats, and exits with 0.
	FailedStats Failure = "failed-stats"
	// Forgery prints good stats that are not this run's.
	Forgery Failure = "forgery"
)

// Script is what the play of a custom resource does, as its spec.play.
type Script struct {
	// Failures are how the first runs of a generation fail, one after the other, and
	// FinalizerFailures the same of the finalizer. Further runs succeed.
	Failures          []Failure `json:"failures,omitempty"`
	FinalizerFailures []Failure `json:"finalizerFailures,omitempty"`
	// Milliseconds is how long the task takes.
	Milliseconds int `json:"milliseconds,omitempty"`
	// Module lets the task run in a process of its own, in a session of its own,
	// without the run's environment. It ends with the task.
	Module bool `json:"module,omitempty"`
	// Stray leaves such a process behind, with the run's environment.
	Stray bool `json:"stray,omitempty"`
}

// Subject is the custom resource of a run, from its variables.
type Subject struct {
	UID        string `json:"uid"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Generation int64  `json:"generation"`
	// Digest stands for its spec.
	Digest string `json:"digest"`
	Script Script `json:"-"`
}

// ReadSubject reads the variables of a run, as the manager wrote them: the one
// that holds the whole custom resource has a name that begins with an underscore.
func ReadSubject(variables []byte) (Subject, error) {
	var all map[string]any
	if err := json.Unmarshal(variables, &all); err != nil {
		return Subject{}, fmt.Errorf("read the variables: %w", err)
	}
	for name, value := range all {
		whole, ok := unmarked(value).(map[string]any)
		if ok && strings.HasPrefix(name, "_") && whole["metadata"] != nil {
			return newSubject(whole)
		}
	}
	return Subject{}, errors.New("no variable holds the custom resource")
}

func newSubject(whole map[string]any) (Subject, error) {
	plain, err := json.Marshal(whole)
	if err != nil {
		return Subject{}, fmt.Errorf("encode the custom resource: %w", err)
	}
	var cr struct {
		Metadata Subject `json:"metadata"`
		Spec     struct {
			Play Script `json:"play"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(plain, &cr); err != nil {
		return Subject{}, fmt.Errorf("read the custom resource: %w", err)
	}
	subject := cr.Metadata
	subject.Script = cr.Spec.Play
	subject.Digest, err = Digest(whole["spec"])
	return subject, err
}

// Digest is the same for specs that say the same.
func Digest(spec any) (string, error) {
	data, err := json.Marshal(spec) // Keys are sorted.
	if err != nil {
		return "", fmt.Errorf("encode the spec: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:6]), nil
}

// unmarked takes the marks of untrusted text off.
func unmarked(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["__ansible_unsafe"]; ok && len(value) == 1 {
			return text
		}
		plain := map[string]any{}
		for key, item := range value {
			plain[key] = unmarked(item)
		}
		return plain
	case []any:
		plain := make([]any, len(value))
		for i, item := range value {
			plain[i] = unmarked(item)
		}
		return plain
	default:
		return value
	}
}

// What a Record says.
const (
	Started  = "started"
	Ended    = "ended"
	Overlaps = "overlaps"
)

// Record is one line of the journal of runs.
type Record struct {
	Subject

	Time time.Time `json:"time"`
	// What is Started; Ended, when the play is through and its stats are about to
	// be reported; or Overlaps, when another run of the CR is live.
	What string `json:"what"`
	// Run is ansible-runner's ident.
	Run string `json:"run"`
	PID int    `json:"pid"`
	// Finalizer is true for the run of the finalizer's playbook.
	Finalizer bool `json:"finalizer"`
	// Succeeded is the play's end.
	Succeeded bool `json:"succeeded"`
	// Kubeconfig is what the run could reach the API with.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}
