package stub

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/harness/script"
)

// Main plays the program of the environment that this process was called as, and gives
// its exit code.
func Main() int {
	code, err := 0, error(nil)
	switch args := os.Args; {
	case len(args) > 1 && args[1] == moduleArgument:
		<-time.After(maxModule)
	case filepath.Base(args[0]) == "ansible-playbook" && len(args) == 4: //nolint:mnd // As ansibleRunner calls it.
		// Where nobody reads any more, it goes on as the real one does at its terminal.
		signal.Ignore(syscall.SIGPIPE)
		code, err = perform(args[1], args[2], args[3], false)
	case filepath.Base(args[0]) == taskName && len(args) == 2: //nolint:mnd // As kinds.WriteProject calls it.
		code, err = perform(filepath.Dir(os.Getenv("KUBECONFIG")), os.Getenv("JOB_ID"), args[1], true)
	default:
		script.Main(ansibleRunner)
		err = fmt.Errorf("%q is no command line of the stub", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stub:", err)
		return 1
	}
	return code
}

// ansibleRunner starts ansible-playbook in a session of its own and lasts as long.
// On TERM it ends that.
func ansibleRunner(r *script.Run) (int, error) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	p, err := newPlay(r)
	if err != nil {
		return 0, err
	}
	if err := p.announce(plan.Spawned); err != nil {
		return 0, err
	}
	playbook := exec.Command("ansible-playbook", r.Private, r.Ident, r.Playbook)
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
			return exit.ExitCode(), p.announce(plan.Exited)
		}
		return 0, errors.Join(err, p.announce(plan.Exited))
	}
}
