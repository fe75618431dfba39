package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

// The kinds of the trials: one whose watch has a finalizer, one whose watch has none.
const (
	group = "faults.ensign.io"
	play  = "Play"
	plain = "Plain"
)

// Options say what a Lab works with.
type Options struct {
	// Root is the repository.
	Root string
	// Manager is the program under test.
	Manager string
	// Config reaches the control plane as an administrator.
	Config *rest.Config
	// AuditLog is the path of the control plane's.
	AuditLog string
	// Environment is a Python environment with the real Ansible; "" is the stub. Runs
	// in it announce no phase but the task's.
	Environment string
	// Settle is how long a trial may take to settle when its fault has ended; 0 is
	// what the design allows.
	Settle time.Duration
}

// Lab is what trials share.
type Lab struct {
	options     Options
	dir         string
	environment string
	client      client.Client
	count       atomic.Int64
}

// NewLab prepares trials. Close ends what it started and removes its files, but
// those of trials that were kept.
func NewLab(ctx context.Context, o Options) (_ *Lab, err error) {
	dir, err := os.MkdirTemp("", "ef-") // Short: sockets lie below it.
	if err != nil {
		return nil, fmt.Errorf("make the directory of the trials: %w", err)
	}
	l := &Lab{options: o, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	env := filepath.Join(dir, "env")
	if err := stub.Build(ctx, o.Root, env); err != nil {
		return nil, err
	}
	l.environment = cmp.Or(o.Environment, env)
	for _, kind := range []string{play, plain} {
		if err := writeProject(l.project(kind), kind, stub.Task(env)); err != nil {
			return nil, err
		}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	if l.client, err = client.New(o.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	err = harness.Define(ctx, l.client, harness.Definition(schema.GroupKind{Group: group, Kind: play}), harness.Definition(schema.GroupKind{Group: group, Kind: plain}))
	if err != nil && !apierrors.IsAlreadyExists(err) { // By a lab before this one.
		return nil, err
	}
	return l, nil
}

// Close ends every process of the lab. Directories of trials with something to
// look at stay.
func (l *Lab) Close() error {
	err := errors.Join(os.RemoveAll(filepath.Join(l.dir, "env")), os.RemoveAll(l.project(play)), os.RemoveAll(l.project(plain)))
	_ = os.Remove(l.dir) // Kept trials keep it.
	return err
}

func (l *Lab) project(kind string) string { return filepath.Join(l.dir, strings.ToLower(kind)) }

// room makes a directory for one trial.
func (l *Lab) room() (string, error) {
	dir := filepath.Join(l.dir, strconv.FormatInt(l.count.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of a trial: %w", err)
	}
	return dir, nil
}

// writeProject makes the operator project of a kind in dir. The stub does not read
// the playbooks; with the real Ansible they run the stub's task.
func writeProject(dir, kind, task string) error {
	finalizer := ""
	if kind == play {
		finalizer = ", finalizer: {name: " + group + "/finalizer, playbook: finalize.yml}"
	}
	files := map[string]string{
		"watches.yaml": fmt.Sprintf("- {group: %s, version: v1, kind: %s, playbook: play.yml%s}\n", group, kind, finalizer),
	}
	for _, name := range []string{"play.yml", "finalize.yml"} {
		files[name] = fmt.Sprintf("- hosts: localhost\n  gather_facts: false\n  tasks:\n    - name: work\n      ansible.builtin.command: {argv: [%q, %q]}\n", task, name)
	}
	errs := []error{os.MkdirAll(dir, 0o755)}
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return errors.Join(errs...)
}
