package main

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

// plain runs roles as one would by hand, by the ansible-runner of the environment that
// the manager uses, for CRs of a namespace, with the same variables.
type plain struct {
	side

	env     pyenv.Env
	home    string
	process atomic.Int64 // ansible-runner's, of the last run
}

// findPlain finds the environment, and the programs that are installed there.
func findPlain(ctx context.Context, by side) (*plain, error) {
	env, err := pyenv.Find(pyenv.Search{Dir: by.root, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	info, err := env.Inspect(ctx)
	by.about = fmt.Sprintf(", ansible-core %s, ansible-runner %s, Python %s", info.AnsibleCore, info.AnsibleRunner, info.Python)
	p := &plain{side: by, env: env, home: filepath.Join(by.dir, by.home())}
	return p, errors.Join(err, os.MkdirAll(filepath.Join(p.home, "tmp"), 0o700), os.MkdirAll(filepath.Join(p.home, "home"), 0o700))
}

// change runs the role for so many CRs, which need not change, as many at once as there are slots.
// It returns the start and the end of its runs.
func (p *plain) change(ctx context.Context, r role, crs int) (done batch, err error) {
	private := make([]string, crs)
	for i, name := range r.names(crs) {
		if private[i], err = p.prepare(ctx, r, name); err != nil {
			return done, fmt.Errorf("prepare a plain run: %w", err)
		}
	}
	var mu sync.Mutex
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(p.slots)
	for _, dir := range private {
		group.Go(func() error {
			one := run{Started: time.Now()}
			cpu, err := p.run(ctx, r, dir)
			one.Ended = time.Now()
			mu.Lock()
			defer mu.Unlock()
			done.runs, done.cpu = append(done.runs, one), done.cpu+cpu
			return err
		})
	}
	err = group.Wait()
	done.wall = time.Since(began)
	return done, err
}

// create does nothing: who has a manager makes the CRs.
func (p *plain) create(context.Context, role, int) error { return nil }

// measure takes the most memory that the run of one CR needs.
func (p *plain) measure(ctx context.Context, r role, crs int) (memory, error) {
	return measure(func() int { return int(p.process.Load()) }, func() error {
		_, err := p.change(ctx, r, crs)
		return err
	})
}

// prepare makes ansible-runner's directory.
func (p *plain) prepare(ctx context.Context, r role, name string) (string, error) {
	object := harness.Custom(r.kind, p.namespace, name, nil)
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return "", err
	}
	variables, err := extravars.Build(object.Object, extravars.Options{GVK: r.kind.WithVersion("v1"), SnakeCase: true, MarkUnsafe: true})
	if err != nil {
		return "", err
	}
	encoded, err := variables.Encode() // The bytes that Ansible gets from the manager too.
	if err != nil {
		return "", err
	}
	private, err := os.MkdirTemp(p.home, "run-")
	inventory := "localhost ansible_connection=local ansible_python_interpreter=" + p.env.Python + "\n"
	return private, errors.Join(
		err, os.Mkdir(filepath.Join(private, "env"), 0o700), os.Mkdir(filepath.Join(private, "inventory"), 0o700),
		os.WriteFile(filepath.Join(private, "env", "extravars"), encoded, 0o600),
		os.WriteFile(filepath.Join(private, "inventory", "hosts"), []byte(inventory), 0o600))
}

// run gives the processor time of ansible-runner and of all that it waited for.
func (p *plain) run(ctx context.Context, r role, private string) (time.Duration, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, p.env.Runner, "run", private, // As verbose as the manager by default.
		"--role", r.name, "--roles-path", r.path, "--hosts", "localhost", "--role-skip-facts", "-vv")
	cmd.Dir = private
	cmd.Env = append(os.Environ(),
		"PATH="+p.env.Bin+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+filepath.Join(p.home, "home"), "TMPDIR="+filepath.Join(p.home, "tmp"),
		"KUBECONFIG="+p.cluster.Kubeconfig, "K8S_AUTH_KUBECONFIG="+p.cluster.Kubeconfig)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Start()
	if err == nil {
		p.process.Store(int64(cmd.Process.Pid))
		err = cmd.Wait()
	}
	if err != nil {
		return 0, fmt.Errorf("plain run: %w; it printed:\n%s", err, &output)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
