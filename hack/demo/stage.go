package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/demo/script"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/controlplane/process"
)

const (
	// devDir is where the tour keeps its files.
	devDir = ".dev"
	// bin holds the control plane, and the kubectl for any cluster.
	bin = "bin/controlplane"
)

// stage is what the tour has put up: a cluster or its part of one, and the
// manager.
type stage struct {
	script   *script.Script
	settings settings
	fail     context.CancelCauseFunc // Ends the tour when something of it ends.

	dir        string // Files of this tour; removed at the end.
	cluster    *controlplane.Cluster
	kubeconfig string
	client     client.Client
	namespace  string
	created    []client.Object // In the order of creation.
	manager    *process.Group
	program    *process.Child
}

// open makes the tour's directory.
func (s *stage) open() error {
	if err := os.MkdirAll(devDir, 0o755); err != nil {
		return fmt.Errorf("make %q: %w", devDir, err)
	}
	dir, err := os.MkdirTemp(devDir, "demo-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if s.dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("find %q: %w", dir, err)
	}
	return nil
}

// boot starts a cluster that is the tour's own.
func (s *stage) boot(ctx context.Context) error {
	cluster, err := controlplane.Start(ctx, controlplane.Options{
		Bin:                  bin,
		Kubeconfig:           filepath.Join(s.dir, "kubeconfig"),
		AdmitServiceAccounts: true,
		Log:                  progress{s.script},
	})
	if err != nil {
		return fmt.Errorf("start a cluster: %w", err)
	}
	s.cluster = cluster
	go s.watch(ctx, cluster.Failed())
	return s.connect(cluster.Config, cluster.Kubeconfig)
}

// join uses the cluster of the user's kubeconfig.
func (s *stage) join() error {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(s.settings.kubeconfig)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read KUBECONFIG: %w", err)
	}
	return s.connect(config, s.settings.kubeconfig)
}

func (s *stage) connect(config *rest.Config, kubeconfig string) (err error) {
	s.kubeconfig = kubeconfig
	s.client, err = client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return nil
}

// watch ends the tour when a process ends that should still run.
func (s *stage) watch(ctx context.Context, failed <-chan error) {
	select {
	case err := <-failed:
		s.fail(err)
	case <-ctx.Done():
	}
}

// makeNamespace creates the namespace of everything else. In a cluster that is
// not the tour's own its name is one that nobody has.
func (s *stage) makeNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	if s.cluster == nil {
		namespace.ObjectMeta = metav1.ObjectMeta{GenerateName: "ensign-demo-"}
	}
	if err := s.client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	s.namespace = namespace.Name
	s.created = append(s.created, namespace)
	return nil
}

// managerLog is where the manager's output goes.
func (s *stage) managerLog() string { return filepath.Join(devDir, "manager.log") }

// startManager runs bin/manager as a process of its own, with its probes at the
// address.
func (s *stage) startManager(ctx context.Context, address string) error {
	if err := os.WriteFile(s.managerLog(), nil, 0o600); err != nil {
		return fmt.Errorf("empty the manager's log: %w", err)
	}
	program, err := filepath.Abs(filepath.Join("bin", "manager"))
	if err != nil {
		return fmt.Errorf("find the manager: %w", err)
	}
	s.manager = process.NewGroup()
	s.program, err = s.manager.Start(process.Command{
		Path: program,
		Args: []string{
			"--kubeconfig", s.kubeconfig,
			"--metrics-bind-address", "0",
			"--health-probe-bind-address", address,
			"--user-metrics-bind-address", "0",
			"--max-backoff", "10s",
			"--run-dir", filepath.Join(s.dir, "runs"),
		},
		Env: append(os.Environ(), "WATCH_NAMESPACE="+s.namespace),
		Log: s.managerLog(),
	})
	if err != nil {
		return fmt.Errorf("start the manager: %w", err)
	}
	go s.watch(ctx, s.manager.Failed())
	return nil
}

// kubectl shows a command, runs it and shows what it said.
func (s *stage) kubectl(ctx context.Context, args ...string) error {
	s.script.Command(args)
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	s.script.Output(output.String())
	if err != nil {
		return fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), errors.Join(err, context.Cause(ctx)))
	}
	return nil
}

// progress makes the boot's lines part of the script.
type progress struct{ script *script.Script }

func (p progress) Write(text []byte) (int, error) {
	p.script.Output(string(text))
	return len(text), nil
}
