package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	// Settle limits the time from the end of a trial's fault until nothing changes any
	// more; 0 is what the design allows.
	Settle time.Duration
}

// Lab is what trials share.
type Lab struct {
	options Options
	dir     string
	client  client.Client
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
	l.options.Environment = cmp.Or(o.Environment, env)
	if err := l.writeProject(stub.Task(env)); err != nil {
		return nil, err
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
	err := errors.Join(os.RemoveAll(filepath.Join(l.dir, "env")), os.RemoveAll(l.project()))
	_ = os.Remove(l.dir) // Kept trials keep it.
	return err
}

func (l *Lab) project() string { return filepath.Join(l.dir, "project") }

// writeProject makes the operator project. The stub does not read the playbooks; with the
// real Ansible they run the stub's task.
func (l *Lab) writeProject(task string) error {
	const watch = "- {group: " + group + ", version: v1, playbook: play.yml, kind: "
	const watches = watch + play + ", finalizer: {name: " + group + "/finalizer, playbook: finalize.yml}}\n" + watch + plain + "}\n"
	errs := []error{os.Mkdir(l.project(), 0o755), os.WriteFile(filepath.Join(l.project(), "watches.yaml"), []byte(watches), 0o600)}
	for _, name := range []string{"play.yml", "finalize.yml"} {
		text := fmt.Appendf(nil, "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - name: work\n"+
			"      ansible.builtin.command: {argv: [%q, %q]}\n", task, name)
		errs = append(errs, os.WriteFile(filepath.Join(l.project(), name), text, 0o600))
	}
	return errors.Join(errs...)
}
