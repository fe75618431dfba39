// Command program is every program of the stub of a Python environment: python3,
// ansible-runner and ansible-playbook, and what a play leaves behind.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness/idle"
)

// canceled is what ansible-runner exits with when it is told to end.
const canceled = 254

func main() { os.Exit(run()) }

// run plays the program that it was called as, and gives its exit code.
func run() int {
	args := idle.Asked(os.Args)
	code, err := perform(filepath.Base(args[0]), args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		return 1
	}
	return code
}

func perform(name string, args []string) (int, error) {
	switch {
	case name == "python3":
		return 0, inspection()
	case len(args) > 0 && args[0] == moduleArgument:
		<-time.After(maxModule)
		return 0, nil
	case name == "ansible-playbook":
		p, err := newPlay(args)
		if err != nil {
			return 0, err
		}
		return p.run()
	case name == "stub-task":
		return task(args)
	default:
		return ansibleRunner(args)
	}
}

// inspection answers the manager's question for what is installed.
func inspection() error {
	_, err := fmt.Fprintln(os.Stdout, `{"python": "3.13.0", "ansible_core": "2.21.5", "ansible_runner": "2.4.3", "collections": [], "distributions": {}, "collection_versions": {}}`)
	return err
}

// invocation is what ansible-runner was asked for.
type invocation struct{ private, ident, playbook string }

func newInvocation(args []string) (invocation, error) {
	if len(args) < 2 || args[0] != "run" {
		return invocation{}, fmt.Errorf("%q is no command line of ansible-runner", args)
	}
	i := invocation{private: args[1]}
	for _, arg := range args {
		if ident, ok := strings.CutPrefix(arg, "--ident="); ok {
			i.ident = ident
		}
	}
	if at := slices.Index(args, "-p"); at >= 0 && at+1 < len(args) {
		i.playbook = args[at+1]
	}
	return i, nil
}

// ansibleRunner starts ansible-playbook in a session of its own and lasts as long.
// On TERM it ends that.
func ansibleRunner(args []string) (int, error) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	i, err := newInvocation(args)
	if err != nil {
		return 0, err
	}
	if i.ident == "" {
		return 0, canary()
	}
	p, err := newPlay([]string{i.private, i.ident, i.playbook})
	if err != nil {
		return 0, err
	}
	if err := p.announce(stub.Spawned); err != nil {
		return 0, err
	}
	playbook := exec.Command("ansible-playbook", i.private, i.ident, i.playbook)
	playbook.Stdout, playbook.Stderr = os.Stdout, os.Stderr
	playbook.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := playbook.Start(); err != nil {
		return 0, fmt.Errorf("start ansible-playbook: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- playbook.Wait() }()
	select {
	case <-told:
		// The group, as the real one does; what has left it is the manager's to find.
		err = syscall.Kill(-playbook.Process.Pid, syscall.SIGKILL)
		if <-ended == nil {
			return 0, nil // It was through before the signal came.
		}
		return canceled, err
	case err := <-ended:
		if exit, failed := errors.AsType[*exec.ExitError](err); failed {
			return exit.ExitCode(), p.announce(stub.Exiting)
		}
		return 0, errors.Join(err, p.announce(stub.Exiting))
	}
}

// task is the play as a task of the real Ansible.
func task(args []string) (int, error) {
	if len(args) != 1 {
		return 0, fmt.Errorf("%q: want the name of the playbook", args)
	}
	p, err := newPlay([]string{filepath.Dir(os.Getenv("KUBECONFIG")), os.Getenv("JOB_ID"), args[0]})
	if err != nil {
		return 0, err
	}
	return p.perform(func() error { return nil })
}

// canary plays the canary, with the answer of an environment that is safe.
func canary() error {
	_, err := fmt.Fprintln(os.Stdout, `{"event": "runner_on_ok", "event_data": {"task": "canary", "res": {"msg": ["{{ 6*7 }}", "{{ 6*7 }}"]}}}`)
	return err
}

// moduleArgument makes ansible-playbook a process that a play started.
const moduleArgument = "module"

// maxModule ends modules of which nobody takes care.
const maxModule = 2 * time.Minute
