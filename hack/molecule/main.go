// Command molecule runs the Molecule scenarios of the operator's content on a control
// plane, a MariaDB server and a manager of their own, and ends all of them, also when
// it is interrupted. `make molecule` calls it, in the repository's directory.
//
//	molecule [scenario…]    default: all of them
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/mariadb"
)

// scenario is a folder below molecule/.
type scenario struct {
	name string
	// manager: it works through a running operator. One that runs the content itself
	// would be disturbed by one.
	manager bool
}

// stopGrace is how long Molecule may take to end.
const stopGrace = 20 * time.Second

func scenarios() []scenario { return []scenario{{"default", false}, {"cluster", true}} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:])
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted; everything is down"), err)
	}
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "molecule:", err)
		os.Exit(1)
	}
}

// ground has the servers that the scenarios run on.
type ground struct {
	root    string
	began   time.Time
	cluster *controlplane.Cluster
	server  *mariadb.Server
	manager *harness.Manager
	undo    []func() error
}

func run(ctx context.Context, names []string) (err error) {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	g := &ground{began: time.Now()}
	if g.root, err = os.Getwd(); err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	defer func() {
		g.say("ending all that was started")
		err = errors.Join(err, g.end())
		g.say("everything is down")
	}()
	if err := g.start(ctx); err != nil {
		return err
	}
	for number, s := range chosen {
		g.say("scenario %d of %d: %s", number+1, len(chosen), s.name)
		if err := g.play(ctx, s); err != nil {
			return fmt.Errorf("scenario %s failed: %w", s.name, err)
		}
	}
	g.say("passed: %d of %d scenarios", len(chosen), len(chosen))
	return nil
}

func choose(names []string) (chosen []scenario, err error) {
	for _, s := range scenarios() {
		if len(names) == 0 || slices.Contains(names, s.name) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) < len(names) {
		err = fmt.Errorf("of %q there are only %v", names, scenarios())
	}
	return chosen, err
}

func (g *ground) say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stdout, "==> %4.0f s  %s\n", time.Since(g.began).Seconds(), fmt.Sprintf(format, args...))
}

func (g *ground) end() (err error) {
	for _, undo := range slices.Backward(g.undo) {
		err = errors.Join(err, undo())
	}
	return err
}

func (g *ground) start(ctx context.Context) (err error) {
	g.say("starting the control plane")
	if g.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(g.root, "bin", "controlplane"), AdmitServiceAccounts: true}); err != nil {
		return err
	}
	g.undo = append(g.undo, g.cluster.Stop)
	g.say("starting MariaDB")
	if g.server, err = mariadb.Start(ctx, mariadb.Options{}); err != nil {
		return err
	}
	g.undo = append(g.undo, g.server.Stop)
	return nil
}

// play runs a scenario, and fails early when its server ends.
func (g *ground) play(ctx context.Context, s scenario) error {
	if s.manager && g.manager == nil {
		if err := g.startManager(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		var ended <-chan struct{} // None ends where there is no manager.
		if g.manager != nil {
			ended = g.manager.Ended()
		}
		select {
		case err := <-g.cluster.Failed():
			cancel(err)
		case <-ended:
			cancel(errors.New("the manager ended"))
		case <-ctx.Done():
		}
	}()
	err := g.command(ctx, filepath.Join(g.root, ".venv", "bin", "molecule"), "test", "--scenario-name", s.name).Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil && g.manager != nil && !errors.Is(err, context.Canceled) {
		g.say("the end of the manager's log:")
		err = errors.Join(err, g.command(context.WithoutCancel(ctx), "tail", "-n", "40", g.manager.LogFile()).Run())
	}
	return err
}

// command is one that knows the server and the cluster. The context ends it and the processes that
// it started.
func (g *ground) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = g.root
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "PATH="+g.path(), "KUBECONFIG="+g.cluster.Kubeconfig,
		"MYSQL_HOST="+g.server.Host, "MYSQL_PORT="+strconv.Itoa(g.server.Port), "MYSQL_ROOT_PASSWORD="+g.server.Password)
	// A group of its own, because Ctrl-C in a terminal is to reach this program alone.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = stopGrace
	return command
}

func (g *ground) path() string {
	return filepath.Join(g.root, ".venv", "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
}

func (g *ground) startManager(ctx context.Context) error {
	g.say("installing the kinds and starting the manager")
	if err := g.command(ctx, g.cluster.Kubectl, "apply", "--filename="+filepath.Join(g.root, "config", "crd", "bases")).Run(); err != nil {
		return fmt.Errorf("install the custom resource definitions: %w", err)
	}
	home, err := os.MkdirTemp("/tmp", "molecule") // Short: sockets are below it.
	if err != nil {
		return fmt.Errorf("make a directory for the manager: %w", err)
	}
	g.undo = append(g.undo, func() error { return os.RemoveAll(home) })
	if err := os.Setenv("PATH", g.path()); err != nil { // Where the manager finds ansible-runner.
		return fmt.Errorf("set PATH: %w", err)
	}
	g.manager, err = harness.Start(harness.Options{
		Binary: filepath.Join(g.root, "bin", "manager"), Project: g.root, Home: home, Kubeconfig: g.cluster.Kubeconfig,
		Args: []string{"--leader-election-namespace=default", "--ansible-verbosity=0"},
	})
	if err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	g.undo = append(g.undo, g.manager.Stop)
	return g.manager.Ready(ctx, "MySQLCluster", "MySQLDatabase", "MySQLUser")
}
