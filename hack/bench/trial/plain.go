package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/usage"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
)

// verbosity is the manager's default.
const verbosity = 2

// Plain runs roles as one would by hand, by the ansible-runner of the environment that
// the manager uses, for CRs of a namespace, with the same variables. Nothing else that
// this process waits for may end meanwhile.
type Plain struct {
	env       pyenv.Env
	dir       string
	options   Options
	directory atomic.Int64 // the last one's number
}

// NewPlain finds the environment. Of the options it needs Root, Home, Kubeconfig,
// Client and Namespace.
func NewPlain(o Options) (*Plain, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: o.Root, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	p := &Plain{env: env, dir: o.Home, options: o}
	for _, name := range []string{"tmp", "home"} {
		if err := os.MkdirAll(filepath.Join(p.dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Versions tells what is installed.
func (p *Plain) Versions(ctx context.Context) (string, error) {
	info, err := p.env.Inspect(ctx)
	return fmt.Sprintf("ansible-core %s, ansible-runner %s, Python %s", info.AnsibleCore, info.AnsibleRunner, info.Python), err
}

// Cost is what some runs took together.
type Cost struct {
	Wall, CPU time.Duration
}

// Run runs the role for each of the CRs, so many at once.
func (p *Plain) Run(ctx context.Context, c Content, names []string, atOnce int) (Cost, error) {
	var private []string
	for _, name := range names {
		dir, err := p.prepare(ctx, c, name)
		if err != nil {
			return Cost{}, err
		}
		private = append(private, dir)
	}
	before, err := waitedFor()
	if err != nil {
		return Cost{}, err
	}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, dir := range private {
		group.Go(func() error { return p.run(ctx, c, dir) })
	}
	if err := group.Wait(); err != nil {
		return Cost{}, err
	}
	wall := time.Since(began)
	after, err := waitedFor()
	return Cost{Wall: wall, CPU: after - before}, err
}

// Peak is the most memory that a run needs, in MiB.
func (p *Plain) Peak(ctx context.Context, c Content, name string) (float64, error) {
	self := os.Getpid()
	others, err := usage.Tree(self)
	if err != nil {
		return 0, err
	}
	stop := usage.Peak(sampling, func() float64 {
		tree, err := usage.Tree(self)
		if err != nil {
			return 0
		}
		return usage.Memory(slices.DeleteFunc(tree, func(pid int) bool { return slices.Contains(others, pid) }))
	})
	_, err = p.Run(ctx, c, []string{name}, 1)
	return stop(), err
}

// prepare makes ansible-runner's directory.
func (p *Plain) prepare(ctx context.Context, c Content, name string) (string, error) {
	object := c.object(p.options.Namespace, name)
	if err := p.options.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return "", fmt.Errorf("prepare a plain run: %w", err)
	}
	variables, err := c.variables(object)
	if err != nil {
		return "", fmt.Errorf("prepare a plain run: %w", err)
	}
	private := filepath.Join(p.dir, fmt.Sprintf("run-%d", p.directory.Add(1)))
	return private, p.write(private, variables)
}

func (p *Plain) write(private string, variables []byte) error {
	for name, content := range map[string]string{
		"env/extravars":   string(variables),
		"inventory/hosts": "localhost ansible_connection=local ansible_python_interpreter=" + p.env.Python + "\n",
	} {
		path := filepath.Join(private, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("prepare a plain run: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("prepare a plain run: %w", err)
		}
	}
	return nil
}

func (p *Plain) run(ctx context.Context, c Content, private string) error {
	output, err := os.Create(filepath.Join(private, "output"))
	if err != nil {
		return fmt.Errorf("plain run: %w", err)
	}
	defer output.Close()
	cmd := exec.CommandContext(ctx, p.env.Runner, "run", private,
		"--role", c.Role, "--roles-path", c.Roles, "--hosts", "localhost", "--role-skip-facts", "-"+strings.Repeat("v", verbosity))
	cmd.Dir = private
	cmd.Env = append(os.Environ(),
		"PATH="+p.env.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+filepath.Join(p.dir, "home"), "TMPDIR="+filepath.Join(p.dir, "tmp"),
		"KUBECONFIG="+p.options.Kubeconfig, "K8S_AUTH_KUBECONFIG="+p.options.Kubeconfig)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		text, readErr := os.ReadFile(output.Name())
		return errors.Join(fmt.Errorf("plain run: %w; it printed:\n%s", err, text), readErr)
	}
	return nil
}

// waitedFor is the processor time of all processes that this one has waited for.
func waitedFor() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &used); err != nil {
		return 0, fmt.Errorf("read the processor time: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
