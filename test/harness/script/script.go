// Package script is a Python environment that is none: a Go program plays python3,
// ansible-runner and ansible-playbook, and says what runs do. Managers start with it in
// a moment.
//
// The package does not know what a run should have done.
package script

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/internal/ansible/runner/program"
)

// Play is what a run does. It gives ansible-runner's exit code.
type Play func(*Run) (code int, err error)

// Run is one run.
type Run struct {
	// Private is its private directory, Ident its number, Playbook what it was asked for.
	Private, Ident, Playbook string
	// Variables are without the tags of untrusted text.
	Variables map[string]any
	// Out is the standard output. Event and the end of the run flush it.
	Out *bufio.Writer
}

// Environment makes a Python environment of the program that calls it, which must call
// Main first of all. VIRTUAL_ENV=dir lets a manager use it.
func Environment(dir string) error {
	self, err := os.Executable()
	bin := filepath.Join(dir, "bin")
	errs := []error{err, os.MkdirAll(bin, 0o700)}
	for _, name := range []string{"python3", "ansible-runner", "ansible-playbook"} {
		errs = append(errs, os.Symlink(self, filepath.Join(bin, name)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make a Python environment: %w", err)
	}
	return nil
}

// Main plays the program of an environment that this process was called as, and ends
// it. It returns if there is none of that name.
func Main(play Play) {
	code, err, played := 0, error(nil), true
	args := os.Args
	// An interpreter that is asked to execute the program of runs is ansible-runner.
	isRun := len(args) > 1 && filepath.Base(args[1]) == program.Name
	switch name := filepath.Base(args[0]); {
	case name == "python3" && isRun:
		code, err = run(args[2:], play)
	case name == "python3": // It is asked what is installed.
		_, err = os.Stdout.WriteString(`{"python": "3.13.0", "ansible_core": "2.21.5", "ansible_runner": "2.4.3"}` + "\n")
	case name == "ansible-runner":
		code, err = run(args[1:], play)
	case name == "ansible-playbook": // It is asked for its presence only.
	default:
		played = false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the script of a run:", err)
		code = 1
	}
	if played {
		syscall.Exit(code) // os.Exit would take a second where there is the race detector.
	}
}

// run plays `ansible-runner run DIR …`: a run, or the canary of the manager's start,
// with the answer of an Ansible that is safe.
func run(args []string, play Play) (int, error) {
	if len(args) < 2 || args[0] != "run" {
		return 0, fmt.Errorf("%q is no command line of ansible-runner", args)
	}
	ident, playbook := "", ""
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--ident="); ok {
			ident = value
		}
	}
	if at := slices.Index(args, "-p"); at >= 0 && at+1 < len(args) {
		playbook = args[at+1]
	}
	r, err := Read(args[1], ident, playbook)
	if err != nil {
		return 0, err
	}
	code := 0
	if text, ok := r.Variables["c"].(string); ok && ident == "" {
		r.Event("runner_on_ok", map[string]any{"task": "canary", "res": map[string]any{"msg": []string{text}}})
	} else {
		code, err = play(r)
	}
	_ = r.Out.Flush() // Nobody may read any more.
	return code, err
}

// Read reads the variables of a run from its private directory.
func Read(private, ident, playbook string) (*Run, error) {
	r := &Run{Private: private, Ident: ident, Playbook: playbook, Out: bufio.NewWriterSize(os.Stdout, 1<<20)}
	content, err := os.ReadFile(filepath.Join(private, "env", "extravars"))
	if err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	var marked map[string]any
	if err := json.Unmarshal(content, &marked); err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	r.Variables, _ = unmarked(marked).(map[string]any)
	return r, nil
}

// unmarked takes the marks of untrusted text off.
func unmarked(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if text, ok := value["__ansible_unsafe"]; ok && len(value) == 1 {
			return text
		}
		for key := range value {
			value[key] = unmarked(value[key])
		}
	case []any:
		for i := range value {
			value[i] = unmarked(value[i])
		}
	}
	return value
}

// Resource returns the custom resource of the run: the variable that has all of it
// begins with an underscore.
func (r *Run) Resource() (map[string]any, error) {
	for name, value := range r.Variables {
		if whole, ok := value.(map[string]any); ok && strings.HasPrefix(name, "_") && whole["metadata"] != nil {
			return whole, nil
		}
	}
	return nil, errors.New("no variable holds the custom resource")
}

// Event prints a job event, if anybody still reads. The data are what encoding/json
// takes.
func (r *Run) Event(kind string, data any) {
	line, err := json.Marshal(map[string]any{
		"uuid": "u", "event": kind, "created": time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00"), "event_data": data,
	})
	if err != nil {
		panic(err)
	}
	_, _ = r.Out.Write(append(line, '\n'))
	_ = r.Out.Flush()
}

// Stats prints the closing statistics: so many tasks were ok, so many failed.
func (r *Run) Stats(ok, failures int) { r.Event("playbook_on_stats", Counts(ok, failures)) }

// Counts are the data of such an event.
func Counts(ok, failures int) map[string]any {
	at := func(n int) map[string]int { return map[string]int{"localhost": n} }
	return map[string]any{"ok": at(ok), "failures": at(failures), "processed": at(1)}
}

// Succeed is a run that succeeds at once.
func Succeed(r *Run) (int, error) {
	r.Stats(1, 0)
	return 0, nil
}
