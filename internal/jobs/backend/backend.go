// Package backend makes the parts by which one manager runs content in Jobs: the executor, with its
// informer of Jobs, and the server of their agents. Package operator adds them to the manager.
package backend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ensign-operator/ensign/internal/jobs/executor"
	"github.com/ensign-operator/ensign/internal/jobs/identity"
	"github.com/ensign-operator/ensign/internal/jobs/serve"
	"github.com/ensign-operator/ensign/internal/jobs/template"
	"github.com/ensign-operator/ensign/internal/jobs/wire"
	"github.com/ensign-operator/ensign/internal/run"
	"github.com/ensign-operator/ensign/internal/watches"
	"github.com/ensign-operator/ensign/pkg/options"
)

// connectTimeout bounds the first requests to the API server.
const connectTimeout = 10 * time.Second

// Host has the parts of a manager that runs in Jobs need.
type Host struct {
	// Client reaches the API server behind the fence, by the connections of HTTPClient.
	Client     *rest.Config
	HTTPClient *http.Client
	Fence      serve.Fence
	// Namespace is that of the Jobs. Operator distinguishes them from those of other operators there.
	// Record is the name of the Secret of the managers, and of the Service of their agents.
	Namespace, Operator, Record string
	// Pod is the name of the manager's pod; "" outside of a cluster. Executable is its program.
	Pod, Executable string
	// BindAddress is the address to listen on for agents; "": the default port. Address is the one
	// that agents get; "": that of the Service.
	BindAddress, Address string
	// API is the API proxy. Metrics takes the metrics that roles post; nil: they are refused.
	API, Metrics http.Handler
	Log          logr.Logger
}

// Backend is the common part of the watches with executor: job. New makes it.
type Backend struct {
	// Executor must be started.
	Executor *executor.Executor

	server *serve.Server
	source template.Source // without the part of the watch
}

// New returns a Backend whose server listens, but does not serve yet.
func New(h Host) (*Backend, error) {
	kube, err := kubernetes.NewForConfig(h.Client)
	if err != nil {
		return nil, fmt.Errorf("prepare runs in Jobs: %w", err)
	}
	direct, err := client.New(h.Client, client.Options{Scheme: scheme.Scheme, HTTPClient: h.HTTPClient}) // A program's scheme may have its own kinds alone.
	if err != nil {
		return nil, fmt.Errorf("prepare runs in Jobs: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	known, err := identity.Load(ctx, direct, types.NamespacedName{Namespace: h.Namespace, Name: h.Record}, nil)
	if err != nil {
		return nil, err
	}
	b := &Backend{source: template.Source{
		Own: h.ownPod(ctx, kube), Executable: h.Executable, Namespace: h.Namespace, Operator: labelValue(h.Operator), ServiceAccount: "default", Key: known.PublicKey(),
	}}
	if b.Executor, err = executor.New(kube, h.Namespace, b.source.Operator, h.Log); err != nil {
		return nil, err
	}
	b.server, err = serve.New(serve.Options{
		Identity: known, Registry: b.Executor, Fence: h.Fence, Reviewer: serve.KubeReviewer{Client: direct, Namespace: h.Namespace, Label: template.RunLabel},
		API: h.API, Metrics: h.Metrics, Address: cmp.Or(h.BindAddress, fmt.Sprintf(":%d", wire.DefaultPort)), Logger: h.Log,
	})
	if err != nil {
		return nil, &options.Error{Field: "JobBindAddress", Value: h.BindAddress, Err: err}
	}
	_, port, _ := net.SplitHostPort(b.server.Address())
	b.source.Address = cmp.Or(h.Address, net.JoinHostPort(h.Record+"."+h.Namespace+".svc", port))
	return b, nil
}

// Server returns the server of the agents.
func (b *Backend) Server() *manager.Server { return b.server.Server() }

// Runner returns the executor of the runs of a watch, whose assignments have this in common.
func (b *Backend) Runner(w watches.Watch, common wire.Common) run.Executor {
	source := b.source
	source.Watch, source.Timeout = *w.Job, w.Timeout
	return &executor.Runner{Executor: b.Executor, Source: source, ManageStatus: w.ManageStatus, Common: common}
}

// ownPod returns the pod of this manager; nil outside of a cluster.
func (h *Host) ownPod(ctx context.Context, kube kubernetes.Interface) *corev1.Pod {
	if h.Pod == "" {
		return nil
	}
	pod, err := kube.CoreV1().Pods(h.Namespace).Get(ctx, h.Pod, metav1.GetOptions{})
	if err != nil {
		h.Log.Error(err, "could not read the operator's own pod, the template for pods of runs; set POD_NAME if its name is not the host's", "pod", h.Pod)
		return nil
	}
	return pod
}

// labelValue returns the name as the value of a label, which may be shorter than a name.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:10])
}
