package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

const interval = 100 * time.Millisecond

// Options say what manager is started. Binary, Project, Kubeconfig and Home are
// required.
type Options struct {
	// Binary is bin/manager.
	Binary string
	// Project is the directory with watches.yaml; the manager works in it.
	Project string
	// Kubeconfig is how the manager reaches the API server.
	Kubeconfig string
	// Home holds all that the manager may write: its run directory, temporary
	// files, home directory and log. Give it to the next manager too, for one
	// that takes over. Short, because Ansible puts sockets below it.
	Home string
	// RunDir is by default in Home. LogFile is by default a new one in Home; managers
	// may append to the same.
	RunDir, LogFile string
	// Namespace is the only one that is watched; "" for all.
	Namespace string
	// Args are further flags, Env further "NAME=value". From the environment of the
	// test the manager gets only PATH, because that is all it may need.
	Args, Env []string
	// Copy receives the log too; may be nil.
	Copy io.Writer
}

// Manager is a manager's process.
type Manager struct {
	options Options
	command *exec.Cmd
	metrics string
	begun   int64 // where its part of the log begins
	ended   chan struct{}
}

// Start starts a manager, which then has to be stopped or killed. The kernel kills it
// when this process ends before.
func Start(o Options) (*Manager, error) {
	m := &Manager{options: o, ended: make(chan struct{})}
	for _, dir := range []string{"tmp", "home"} {
		if err := os.MkdirAll(filepath.Join(o.Home, dir), 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if m.metrics, err = FreeAddress(); err != nil {
		return nil, err
	}
	m.options.RunDir = cmp.Or(o.RunDir, filepath.Join(o.Home, "runs"))
	log, err := m.openLog()
	if err != nil {
		return nil, err
	}
	m.command = exec.Command(o.Binary, append([]string{
		"run", "--kubeconfig=" + o.Kubeconfig, "--run-dir=" + m.RunDir(), "--max-backoff=10s", "--health-probe-bind-address=0", "--user-metrics-bind-address=127.0.0.1:0",
		"--metrics-bind-address=" + m.metrics,
	}, append(Mode(), o.Args...)...)...)
	m.command.Dir = o.Project
	m.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "WATCH_NAMESPACE=" + o.Namespace,
		"HOME=" + filepath.Join(o.Home, "home"), "TMPDIR=" + filepath.Join(o.Home, "tmp"),
	}, o.Env...)
	var out io.Writer = log
	if o.Copy != nil {
		out = io.MultiWriter(log, o.Copy)
	}
	m.command.Stdout, m.command.Stderr = out, out
	m.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // The signal comes when the thread ends that started the process.
		err := m.command.Start()
		started <- err
		if err == nil {
			_ = m.command.Wait() // How it ended is in the process state.
		}
		_ = log.Close()
		close(m.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manager) openLog() (log *os.File, err error) {
	if m.options.LogFile == "" {
		log, err = os.CreateTemp(m.options.Home, "log-*")
	} else {
		log, err = os.OpenFile(m.options.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err == nil {
		m.options.LogFile = log.Name()
		m.begun, err = log.Seek(0, io.SeekEnd)
	}
	return log, err
}

// RunDir is the manager's run directory.
func (m *Manager) RunDir() string { return m.options.RunDir }

// LogFile is where all that the manager prints is written to.
func (m *Manager) LogFile() string { return m.options.LogFile }

// PID is the manager's process.
func (m *Manager) PID() int { return m.command.Process.Pid }

// Ended is closed once the manager has.
func (m *Manager) Ended() <-chan struct{} { return m.ended }

// ExitCode is the manager's, and -1 while it lives or if a signal ended it.
func (m *Manager) ExitCode() int {
	select {
	case <-m.ended:
		return m.command.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Log is all that the manager has printed.
func (m *Manager) Log() (string, error) {
	text, err := os.ReadFile(m.LogFile())
	return string(text[min(int(m.begun), len(text)):]), err
}

// Logged waits until the log matches the expression, the manager ends, or the
// context does.
func (m *Manager) Logged(ctx context.Context, expression *regexp.Regexp) error {
	for {
		text, err := m.Log()
		if err != nil || expression.MatchString(text) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %q in the log: %w", expression, ctx.Err())
		case <-m.ended:
			return fmt.Errorf("wait for %q in the log: the manager ended: %s", expression, m.command.ProcessState)
		case <-time.After(interval):
		}
	}
}

// Ready waits until the manager watches the kinds.
func (m *Manager) Ready(ctx context.Context, kinds ...string) error {
	for _, kind := range kinds {
		expression, err := regexp.Compile(`watching.*Kind=` + regexp.QuoteMeta(kind) + `"`)
		if err != nil {
			return err
		}
		if err := m.Logged(ctx, expression); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the manager orderly, unless it has ended before. Anything but an
// exit with 0 is an error.
func (m *Manager) Stop() error {
	if err := m.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-m.ended:
	case <-time.After(WaitTimeout):
		return errors.Join(fmt.Errorf("the manager does not end within %s", WaitTimeout), m.Kill())
	}
	if !m.command.ProcessState.Success() {
		return fmt.Errorf("the manager ended with %s", m.command.ProcessState)
	}
	return nil
}

// Kill ends the manager by SIGKILL, and then, as the end of its container does, all
// that it has started. It returns when nothing of them is left.
func (m *Manager) Kill() error {
	if err := m.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-m.ended
	for deadline := time.Now().Add(WaitTimeout); ; <-time.After(interval) {
		left, err := m.Processes()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes do not end within %s of SIGKILL: %+v", WaitTimeout, left)
		}
		for _, p := range left {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
}
