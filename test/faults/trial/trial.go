// Package trial performs fault plans and collects the evidence of what came out.
//
// A Lab is what trials share: one control plane, the stub of a Python environment
// and the manager under test. Each trial has a namespace, an API proxy, a run
// directory and managers of its own, so that several go on at once. It brings the
// custom resource to where its operation begins, arms the fault, does what the
// user does, sees the fault strike and end, waits until nothing changes any more,
// and collects evidence while the manager lives and after it has stopped.
//
// The package does not judge: oracle does.
package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/faults/audit"
	"github.com/ensign-operator/ensign/test/faults/manager"
	"github.com/ensign-operator/ensign/test/faults/oracle"
	"github.com/ensign-operator/ensign/test/faults/plan"
	"github.com/ensign-operator/ensign/test/faults/stub"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	look = 50 * time.Millisecond
	// strikeLimit is how long the point of a plan may take to come, on a busy
	// machine.
	strikeLimit = time.Minute
	// settleLimit is what I5 allows: 60 s, and one run.
	settleLimit = 65 * time.Second
	// quiet is how long nothing may be written before a trial counts as settled.
	quiet = 800 * time.Millisecond
)

// trial is one plan at work.
type trial struct {
	lab     *Lab
	plan    plan.Plan
	dir     string
	space   string
	proxy   *apiproxy.Proxy
	stage   *stub.Stage
	manager *manager.Manager
	user    user
	audit   audit.Log

	// snapshot is the list of the kind before the operation.
	snapshot []byte
	struck   chan struct{} // closed when the fault strikes
	over     chan struct{} // closed when it has ended
	acted    chan struct{} // closed when the user has done all of the operation
	struckBy sync.Once
	actedBy  sync.Once

	mu      sync.Mutex
	armed   bool
	gone    bool        // the first CR of the name, before the second is created
	uids    []types.UID // of the CRs of the name, in their order
	exiting bool        // the run of the point has said that it exits
	ended   time.Time   // when the fault was over
	touched int
	problem []error // of the trial itself
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

func (t *trial) kind() string {
	if t.plan.Operation.Course().Plain {
		return plain
	}
	return play
}

// ours is true for a request about the kind.
func (t *trial) ours(r apiproxy.Request) bool { return r.Resource == strings.ToLower(t.kind())+"s" }

// list returns all resources of the kind.
func (t *trial) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: t.kind() + "List"})
	err := t.lab.client.List(ctx, list, client.InNamespace(t.space))
	return list, err
}

// prepare makes what belongs to the trial alone, and starts its first manager.
func (t *trial) prepare(ctx context.Context) (err error) {
	if err := t.furnish(ctx); err != nil {
		return err
	}
	if t.stage, err = stub.OpenStage(t.dir, t.met); err != nil {
		return err
	}
	return t.begin(ctx)
}

// furnish makes the namespace, the proxy and what a manager needs. args are
// further flags for it.
func (t *trial) furnish(ctx context.Context, args ...string) (err error) {
	if t.dir, err = t.lab.room(); err != nil {
		return err
	}
	if t.audit, err = audit.Open(t.lab.options.AuditLog); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "faults-"}}
	if err := t.lab.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	t.space = namespace.Name
	t.user = user{t.lab.client, t.kind(), t.space, "subject"}
	t.manager = manager.New(harness.Options{
		Binary: t.lab.options.Manager, Home: t.dir, Project: t.lab.project(t.kind()), Namespace: t.space, Args: args,
	}, t.lab.environment)
	if t.proxy, err = apiproxy.Start(t.lab.options.Config); err != nil {
		return err
	}
	return t.proxy.WriteKubeconfig(filepath.Join(t.dir, "kubeconfig"))
}

// begin starts a manager and waits until it watches.
func (t *trial) begin(ctx context.Context) error {
	seen := len(t.proxy.Journal())
	if err := t.manager.Start(); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, look, strikeLimit, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(t.proxy.Journal()[seen:], t.watches), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the manager does not watch: %w", err), t.tail())
	}
	return nil
}

// tail is the end of the manager's log, as an error.
func (t *trial) tail() error {
	text, err := os.ReadFile(t.manager.Log())
	if err != nil {
		return err
	}
	return fmt.Errorf("its log: %s", text[max(0, len(text)-2000):])
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
		if err := t.await(ctx, what, done); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) await(ctx context.Context, what string, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-time.After(strikeLimit):
		return errors.Join(fmt.Errorf("%s was waited for in vain", what), t.problems(), t.tail())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
	var errs []error
	if t.manager != nil {
		t.manager.Stop()
	}
	if t.stage != nil {
		errs = append(errs, t.stage.Close())
	}
	if t.proxy != nil {
		errs = append(errs, t.proxy.Close())
	}
	if t.dir != "" {
		kill(t.dir)
	}
	return errors.Join(errs...)
}
