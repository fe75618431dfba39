// Package trial performs fault plans and collects the evidence of what came out.
//
// A Lab is what trials share: one control plane, the stub of a Python environment
// and the manager under test. Each trial has a namespace, an API proxy, a run
// directory and managers of its own, so that several go on at once. It brings the
// custom resource to where its operation begins, arms the fault, and does what the
// user does. It sees the fault strike and end, and waits until nothing changes any
// more. It collects evidence while the manager lives and after it has stopped.
//
// The package does not judge: oracle does.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	look = 50 * time.Millisecond
	// settleLimit is what I5 allows: 60 s, and one run.
	settleLimit = 65 * time.Second
	// quiet is how long nothing may be written before a trial counts as settled.
	quiet = 800 * time.Millisecond
)

// trial is one plan at work.
type trial struct {
	lab      *Lab
	plan     plan.Plan
	dir      string
	proxy    *apiproxy.Proxy
	stage    io.Closer
	managers *managers
	user     user
	audit    audit.Log

	// snapshot is the list of the kind before the operation.
	snapshot []byte
	struck   chan struct{} // closed when the fault strikes
	over     chan struct{} // closed when it has ended
	acted    chan struct{} // closed when the user has done all of the operation
	struckBy sync.Once
	actedBy  sync.Once

	armed   atomic.Bool
	gone    atomic.Bool // the first CR of the name, before the second is created
	exiting atomic.Bool // the run of the point has said that it exits
	touched atomic.Int64

	mu      sync.Mutex
	uids    []string  // of the CRs of the name, in their order
	ended   time.Time // when the fault was over
	problem []error   // of the trial itself
}

// Run performs the plan. The error is the trial's own: what the product did wrong
// is in the evidence. A directory that stays for a look is named there.
func (l *Lab) Run(ctx context.Context, p plan.Plan) (_ oracle.Evidence, err error) {
	t := &trial{lab: l, plan: p, struck: make(chan struct{}), over: make(chan struct{}), acted: make(chan struct{})}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.prepare(ctx); err != nil {
		return oracle.Evidence{Directory: t.dir}, fmt.Errorf("prepare: %w", err)
	}
	if err := t.perform(ctx); err != nil {
		return oracle.Evidence{Directory: t.dir}, err
	}
	return t.collect(ctx)
}

// strikeLimit is how long the point of a plan may take to come. Where a defect is looked for that
// may keep it from coming, as trials are that may settle in a short time only, it is short too.
func (t *trial) strikeLimit() time.Duration {
	if t.lab.options.Settle > 0 {
		return time.Minute
	}
	return harness.WaitTimeout
}

func (t *trial) kind() string {
	if t.plan.Operation.Course().Plain {
		return plain
	}
	return play
}

// ours is true for a request about the kind.
func (t *trial) ours(r apiproxy.Request) bool { return r.Resource == strings.ToLower(t.kind())+"s" }

// prepare makes what belongs to the trial alone, and starts its first manager.
func (t *trial) prepare(ctx context.Context) (err error) {
	if t.dir, err = os.MkdirTemp(t.lab.dir, ""); err != nil {
		return fmt.Errorf("make the directory of a trial: %w", err)
	}
	if t.audit, err = audit.Open(t.lab.options.AuditLog); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	if err := t.lab.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	t.user = user{t.lab.client, t.kind(), namespace.Name}
	t.managers = &managers{Options: harness.Options{
		Binary: t.lab.options.Manager, Home: t.dir, Project: t.lab.project(), Namespace: t.user.namespace,
		Kubeconfig: filepath.Join(t.dir, "kubeconfig"), LogFile: filepath.Join(t.dir, "manager.log"), RunDir: filepath.Join(t.dir, "r"),
		Env:  []string{"VIRTUAL_ENV=" + t.lab.options.Environment, stub.DirVariable + "=" + t.dir},
		Args: []string{"--reconcile-period=0s", "--max-concurrent-reconciles=4"},
	}}
	if t.proxy, err = apiproxy.Start(t.lab.options.Config); err != nil {
		return err
	}
	if err := t.proxy.WriteKubeconfig(t.managers.Kubeconfig); err != nil {
		return err
	}
	if t.stage, err = stub.OpenStage(t.dir, t.met); err != nil {
		return err
	}
	if err := t.managers.start(); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, look, t.strikeLimit(), true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(t.proxy.Journal(), t.watches), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the manager does not watch: %w", err), t.managers.tail())
	}
	return nil
}

// perform takes the operation and the fault to their ends.
func (t *trial) perform(ctx context.Context) error {
	if err := t.before(ctx); err != nil {
		return fmt.Errorf("bring the resource to where the operation begins: %w", err)
	}
	if err := t.arm(ctx); err != nil {
		return fmt.Errorf("arm the fault: %w", err)
	}
	if err := t.act(ctx); err != nil {
		return fmt.Errorf("perform the operation: %w", err)
	}
	for what, done := range map[string]chan struct{}{"the operation to be through": t.acted, "the fault to strike": t.struck, "the fault to end": t.over} {
		select {
		case <-done:
		case <-time.After(t.strikeLimit()):
			return errors.Join(fmt.Errorf("%s was waited for in vain", what), t.problems(), t.managers.tail())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// note keeps an error of the trial itself, which happened beside it.
func (t *trial) note(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problem = append(t.problem, err)
}

func (t *trial) problems() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.problem...)
}

// close ends everything of the trial.
func (t *trial) close() error {
	if t.managers != nil {
		t.managers.stop()
		kill(t.dir)
	}
	var errs []error
	if t.stage != nil {
		errs = append(errs, t.stage.Close())
	}
	if t.proxy != nil {
		errs = append(errs, t.proxy.Close())
	}
	return errors.Join(errs...)
}
