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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/kinds"
	"github.com/ensign-operator/ensign/test/faults/stub"
)

// Options say what a Lab works with.
type Options struct {
	// Root is the repository.
	Root string
	// Manager is the program under test.
	Manager string
	// Config reaches the control plane as an administrator.
	Config *rest.Config
	// AuditLog is the path of the control plane's; "" is none.
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
	rest        rest.Interface
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
	for _, kind := range kinds.All() {
		if err := kinds.WriteProject(l.project(kind), kind, stub.Task(env)); err != nil {
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
	clients, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	l.rest = clients.RESTClient()
	return l, l.define(ctx)
}

// Close ends every process of the lab. Directories of trials with something to
// look at stay.
func (l *Lab) Close() error {
	err := errors.Join(os.RemoveAll(filepath.Join(l.dir, "env")), os.RemoveAll(l.project(kinds.Play)), os.RemoveAll(l.project(kinds.Plain)))
	_ = os.Remove(l.dir) // Kept trials keep it.
	return err
}

func (l *Lab) project(kind string) string { return filepath.Join(l.dir, strings.ToLower(kind)) }

// define creates the kinds and waits until they are served.
func (l *Lab) define(ctx context.Context) error {
	for _, kind := range kinds.All() {
		if err := l.client.Create(ctx, kinds.Definition(kind)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("define %s: %w", kind, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(kinds.Group + "/" + kinds.Version)
		list.SetKind(kind + "List")
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return l.client.List(ctx, list) == nil, nil
		})
		if err != nil {
			return fmt.Errorf("wait until %s is served: %w", kind, err)
		}
	}
	return nil
}

// room makes a directory for one trial.
func (l *Lab) room() (string, error) {
	dir := filepath.Join(l.dir, strconv.FormatInt(l.count.Add(1), 10))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of a trial: %w", err)
	}
	return dir, nil
}
