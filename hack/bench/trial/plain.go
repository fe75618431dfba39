package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/internal/ansible/extravars"
	"github.com/ensign-operator/ensign/internal/ansible/pyenv"
	"github.com/ensign-operator/ensign/test/harness"
)

// Plain runs roles as one would by hand, by the ansible-runner of the environment that
// the manager uses, for CRs of a namespace, with the same variables.
type Plain struct {
	env       pyenv.Env
	options   Options
	directory int          // the last one's number
	process   atomic.Int64 // ansible-runner's, of the last run
}

// NewPlain finds the environment. The options Warm and Alone mean nothing here.
func NewPlain(o Options) (*Plain, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: o.Root, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	return &Plain{env: env, options: o}, errors.Join(
		os.MkdirAll(filepath.Join(o.Home, "tmp"), 0o700), os.MkdirAll(filepath.Join(o.Home, "home"), 0o700))
}

// Versions tells what is installed.
func (p *Plain) Versions(ctx context.Context) (string, error) {
	info, err := p.env.Inspect(ctx)
	return fmt.Sprintf(", ansible-core %s, ansible-runner %s, Python %s", info.AnsibleCore, info.AnsibleRunner, info.Python), err
}

// Change runs the role for each of the CRs, which need not change, so many at once as
// there are slots. Of its Runs it tells the start and the end.
func (p *Plain) Change(ctx context.Context, c Content, names []string) (batch Batch, err error) {
	private := make([]string, len(names))
	for i, name := range names {
		if private[i], err = p.prepare(ctx, c, name); err != nil {
			return batch, fmt.Errorf("prepare a plain run: %w", err)
		}
	}
	var mu sync.Mutex
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.options.Slots)
	for _, dir := range private {
		group.Go(func() error {
			run := Run{Started: time.Now()}
			cpu, err := p.run(ctx, c, dir)
			run.Ended = time.Now()
			mu.Lock()
			defer mu.Unlock()
			batch.Runs, batch.CPU, batch.Wall = append(batch.Runs, run), batch.CPU+cpu, max(batch.Wall, run.Ended.Sub(began))
			return err
		})
	}
	return batch, group.Wait()
}

// Create does nothing: who has a manager makes the CRs.
func (p *Plain) Create(context.Context, Content, []string) error { return nil }

// Measure takes the most memory that the run of one CR needs.
func (p *Plain) Measure(ctx context.Context, c Content, names []string) (Memory, error) {
	most, err := peak(func() float64 { return memory(int(p.process.Load()), "") }, func() error {
		_, err := p.Change(ctx, c, names)
		return err
	})
	return Memory{Peak: most}, err
}

// prepare makes ansible-runner's directory.
func (p *Plain) prepare(ctx context.Context, c Content, name string) (string, error) {
	object := harness.Custom(c.Kind, p.options.Namespace, name, nil)
	if err := p.options.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return "", err
	}
	variables, err := extravars.Build(object.Object, extravars.Options{GVK: c.Kind.WithVersion("v1"), SnakeCase: true, MarkUnsafe: true})
	if err != nil {
		return "", err
	}
	encoded, err := variables.Encode() // The bytes that Ansible gets from the manager too.
	if err != nil {
		return "", err
	}
	p.directory++
	private := filepath.Join(p.options.Home, fmt.Sprintf("run-%d", p.directory))
	inventory := "localhost ansible_connection=local ansible_python_interpreter=" + p.env.Python + "\n"
	return private, errors.Join(
		os.MkdirAll(filepath.Join(private, "env"), 0o700), os.MkdirAll(filepath.Join(private, "inventory"), 0o700),
		os.WriteFile(filepath.Join(private, "env", "extravars"), encoded, 0o600),
		os.WriteFile(filepath.Join(private, "inventory", "hosts"), []byte(inventory), 0o600))
}

// run gives the processor time of ansible-runner and of all that it waited for.
func (p *Plain) run(ctx context.Context, c Content, private string) (time.Duration, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, p.env.Runner, "run", private, // As verbose as the manager by default.
		"--role", c.Role, "--roles-path", c.roles, "--hosts", "localhost", "--role-skip-facts", "-vv")
	cmd.Dir = private
	cmd.Env = append(os.Environ(),
		"PATH="+p.env.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+filepath.Join(p.options.Home, "home"), "TMPDIR="+filepath.Join(p.options.Home, "tmp"),
		"KUBECONFIG="+p.options.Kubeconfig, "K8S_AUTH_KUBECONFIG="+p.options.Kubeconfig)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("plain run: %w", err)
	}
	p.process.Store(int64(cmd.Process.Pid))
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("plain run: %w; it printed:\n%s", err, &output)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
