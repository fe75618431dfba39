package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ensign-operator/ensign/test/controlplane/process"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// bootLimit ends a boot that hangs; one takes about 10 s.
	bootLimit = harness.WaitTimeout
	// stopGrace is how long a server may take to end after TERM.
	stopGrace = 5 * time.Second
)

// Options says where a cluster comes from and what it leaves behind. The zero
// value is a cluster for one test.
type Options struct {
	// Bin is the directory of the programs. Empty: bin/controlplane in the
	// working directory or the nearest directory above it that has one.
	Bin string
	// DataDir keeps the cluster's objects, keys and logs; a later cluster with
	// the same directory has the same objects. Empty: a temporary directory that
	// is removed by Stop.
	DataDir string
	// Log gets a line for each step of the boot. Nil: none are written.
	Log io.Writer
	// Kubeconfig is the path of the administrator's kubeconfig, written with mode
	// 0600 and removed by Stop. Empty: a file in the data directory.
	Kubeconfig string
	// AdmitServiceAccounts switches the ServiceAccount admission plugin on: pods
	// then need an existing account, as in a real cluster. Tests that create bare
	// pods are simpler without it.
	AdmitServiceAccounts bool
	// CheckOwnerReferences switches the admission plugin on that asks who changes
	// owner references for rights of its own, as some distributions do.
	CheckOwnerReferences bool
	// LeaveNodes leaves nodes that are added to the cluster, and their pods, to others:
	// see test/harness/pods.
	LeaveNodes bool
	// AuditLog is the path of a file that gets a line of JSON, an Event of
	// audit.k8s.io/v1 with metadata only, for each request that the API server has
	// answered or begun to stream. Empty: none is written.
	AuditLog string
}

// Cluster is a running control plane.
type Cluster struct {
	// Config connects as a member of system:masters, without client-side rate
	// limits worth the name. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a file with the same rights.
	Kubeconfig string
	// DataDir holds the servers' logs, in logs/<server>.log.
	DataDir string
	// Kubectl is the path of the kubectl that belongs to this cluster.
	Kubectl string

	bin     string
	servers *process.Group
	undo    []func() error // What is to be undone at the end, the last first.
	stop    func() error
}

// Start boots a cluster and returns when it is of use: the node is Ready, the
// default namespace has its service account, and PVCs have a default storage
// class. The context limits the boot only; the cluster lives until Stop. When
// Start fails, nothing that it started is left.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	bin, err := findBin(o.Bin)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Kubectl: filepath.Join(bin, "kubectl"), bin: bin, servers: process.NewGroup()}
	c.stop = sync.OnceValue(c.tearDown)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.open(o); err != nil {
		return nil, err
	}
	if err := c.boot(ctx, o); err != nil {
		return nil, fmt.Errorf("boot the control plane: %w", err)
	}
	return c, nil
}

// boot starts the servers in the order in which they need each other.
func (c *Cluster) boot(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("it took longer than %s", bootLimit))
	defer cancel()
	ctx, cancelCause := context.WithCancelCause(ctx)
	defer cancelCause(nil)
	go func() {
		select {
		case err := <-c.servers.Failed():
			cancelCause(err)
		case <-ctx.Done():
		}
	}()

	began := time.Now()
	say := func(format string, args ...any) {
		if o.Log != nil {
			_, _ = fmt.Fprintf(o.Log, "%5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		}
	}
	apiServer, err := c.apiServer(o)
	if err != nil {
		return err
	}
	if err := c.start(c.etcd(o), apiServer); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := waitFor(ctx, "the API server is ready", func(ctx context.Context) error {
		return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	say("etcd and kube-apiserver answer at %s", c.Config.Host)
	if err := c.start(c.controllers(o)...); err != nil {
		return err
	}
	if err := c.furnish(ctx, client); err != nil {
		return err
	}
	say("kube-controller-manager, kube-scheduler and kwok work: node %s is Ready", nodeName)
	return nil
}

// Failed delivers an error, with the end of the server's log, when one of the
// servers ends while the cluster is up.
func (c *Cluster) Failed() <-chan error { return c.servers.Failed() }

// Stop ends all servers, frees the port, and removes the kubeconfig and, unless
// Options.DataDir named it, the data directory. It may be called more than once.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) tearDown() error {
	err := c.servers.Stop(stopGrace)
	for _, undo := range slices.Backward(c.undo) {
		err = errors.Join(err, undo())
	}
	return err
}
