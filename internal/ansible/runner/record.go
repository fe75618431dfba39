package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/ensign-operator/ensign/internal/ansible/jobevent"
	"github.com/ensign-operator/ensign/internal/process/rundir"
	"github.com/ensign-operator/ensign/pkg/content"
)

const (
	// maxEventBytes is the maximum size of the recorded events of one run. The limit of the
	// run directory may be lower.
	maxEventBytes = 8 << 20
	// outcomeReserve is kept free for outcome.json, whose message of 4 KiB may be escaped.
	outcomeReserve = 28 << 10
	// truncatedLine ends a record that was truncated.
	truncatedLine = `{"event":"the rest is left out: too much"}` + "\n"
)

// record writes the artifact of a run: command.json, events.jsonl and outcome.json. It never keeps
// the files that ansible-runner itself writes, because they hold the environment, gathered facts
// and the unmasked results of modules. The record has no values of the environment, and only the
// results of failed tasks, sanitized.
//
// An error does not fail the run; it is logged when the record is closed.
type record struct {
	dir       *rundir.Dir
	log       logr.Logger
	events    *rundir.File
	remaining int64 // for further events
	err       error
	// setting returns the name of a setting.
	setting func(field string) string
}

// eventLine is one line of events.jsonl.
type eventLine struct {
	Time    time.Time      `json:"time,omitzero"`
	Event   jobevent.Kind  `json:"event"`
	Play    string         `json:"play,omitempty"`
	Task    string         `json:"task,omitempty"`
	Role    string         `json:"role,omitempty"`
	Action  string         `json:"action,omitempty"`
	Host    string         `json:"host,omitempty"`
	Seconds float64        `json:"seconds,omitempty"`
	Ignored bool           `json:"ignored,omitempty"`
	Result  map[string]any `json:"result,omitempty"`
	Stats   *hostStats     `json:"stats,omitempty"`
}

// hostStats is jobevent.HostStats with the JSON names of the artifact.
type hostStats struct {
	OK          map[string]int `json:"ok,omitempty"`
	Changed     map[string]int `json:"changed,omitempty"`
	Failures    map[string]int `json:"failures,omitempty"`
	Unreachable map[string]int `json:"unreachable,omitempty"`
	Skipped     map[string]int `json:"skipped,omitempty"`
	Rescued     map[string]int `json:"rescued,omitempty"`
	Ignored     map[string]int `json:"ignored,omitempty"`
	Processed   map[string]int `json:"processed,omitempty"`
	Lost        map[string]int `json:"lost,omitempty"`
}

// command writes command.json. It keeps only the names of environment variables, and leaves
// out the arguments from the setting AnsibleArgs, which may hold a password.
func (k *record) command(spec Spec, c command) {
	kept := struct {
		Watch string   `json:"watch"`
		CR    string   `json:"cr"`
		Argv  []string `json:"argv"`
		Env   []string `json:"env"`
		Dir   string   `json:"dir"`
	}{Watch: spec.Watch, CR: spec.CR, Argv: []string{c.path}, Dir: c.dir}
	for _, arg := range c.args {
		if strings.HasPrefix(arg, argsOption) {
			arg = argsOption + "(the operator's " + k.setting("AnsibleArgs") + ")"
		}
		kept.Argv = append(kept.Argv, arg)
	}
	for _, entry := range c.env {
		name, _, _ := strings.Cut(entry, "=")
		kept.Env = append(kept.Env, name)
	}
	k.write("command.json", kept)
}

// event writes an event to events.jsonl, with the result if the task failed.
func (k *record) event(e jobevent.Event) {
	if k.err != nil || k.events != nil && k.remaining == 0 {
		return
	}
	if k.events == nil {
		if k.events, k.err = k.dir.Create("events.jsonl"); k.err != nil {
			return
		}
		k.remaining = max(1, min(maxEventBytes, k.dir.Remaining()-outcomeReserve))
	}
	kept := eventLine{
		Time: e.Created, Event: e.Kind, Play: e.Play, Task: e.Task, Role: e.Role,
		Action: e.Action, Host: e.Host, Seconds: e.Duration.Seconds(), Ignored: e.IgnoreErrors, Stats: (*hostStats)(e.HostStats),
	}
	switch e.Kind {
	case jobevent.HostFailed, jobevent.ItemFailed, jobevent.HostUnreachable:
		kept.Result = jobevent.Sanitize(e.Result)
		// Facts hold the environment of the host.
		delete(kept.Result, "ansible_facts")
	}
	line, err := json.Marshal(kept)
	if err != nil {
		k.err = err
		return
	}
	k.append(append(line, '\n'))
}

// append writes a line. If there is no room left or the disk is full, it writes
// truncatedLine instead, and no further lines.
func (k *record) append(line []byte) {
	k.remaining -= int64(len(line))
	if k.remaining >= int64(len(truncatedLine)) {
		if _, k.err = k.events.Write(line); k.err == nil {
			return
		}
	}
	k.remaining = 0
	if _, err := k.events.Write([]byte(truncatedLine)); k.err == nil {
		k.err = err
	}
}

// result writes outcome.json.
func (k *record) result(r Result, e jobevent.ProcessExit) {
	k.write("outcome.json", struct {
		Verdict  content.Verdict `json:"verdict"`
		Reason   content.Reason  `json:"reason"`
		Message  string          `json:"message"`
		ExitCode int             `json:"exitCode"`
		Started  time.Time       `json:"started"`
		Ended    time.Time       `json:"ended"`
	}{r.Outcome.Verdict, r.Outcome.Reason, r.Outcome.Message, e.ExitCode, r.Started, r.Ended})
}

func (k *record) write(name string, content any) {
	b, err := json.MarshalIndent(content, "", "  ")
	if err == nil {
		err = k.dir.WriteFile(name, append(b, '\n'))
	}
	k.err = errors.Join(k.err, err)
}

// close closes the record and the run's directory.
func (k *record) close(maxArtifacts int) {
	if k.events != nil {
		k.err = errors.Join(k.err, k.events.Close())
	}
	if errors.Is(k.err, rundir.ErrArtifactLimit) {
		k.err = fmt.Errorf("%w; a higher %s gives more", k.err, k.setting("ArtifactsMaxBytes"))
	}
	if k.err != nil {
		k.log.Error(k.err, "the artifact of a run is incomplete")
	}
	if err := k.dir.Close(maxArtifacts); err != nil {
		k.log.Error(err, "the directory of a run could not be cleared")
	}
}
