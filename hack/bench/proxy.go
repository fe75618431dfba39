package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
	"github.com/ensign-operator/ensign/test/controlplane/process"
)

// serveProxy is the argument that makes this program a proxy.
const serveProxy = "serve-proxy"

// proxyProcess is the API proxy in a process of its own with one thread of Go, as the
// manager has it.
type proxyProcess struct {
	manager

	config *rest.Config
}

// startProxy starts this program again, as a proxy.
func startProxy(ctx context.Context, b *bench, kubeconfig string) (_ *proxyProcess, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	granted := filepath.Join(b.dir, "granted")
	p := &proxyProcess{manager: manager{group: process.NewGroup(), log: filepath.Join(b.dir, "proxy.log")}}
	p.program, err = p.group.Start(process.Command{
		Path: self, Args: []string{serveProxy, kubeconfig, granted}, Dir: b.dir, Env: append(os.Environ(), "GOMAXPROCS=1"), Log: p.log,
	})
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	there := func(context.Context) (bool, error) {
		_, err := os.Stat(granted)
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyLimit, true, there); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the proxy: %w; of it: %s", err, p.program.Quote()), p.stop())
	}
	if p.config, err = clientcmd.BuildConfigFromFlags("", granted); err != nil {
		return nil, errors.Join(fmt.Errorf("read what the proxy granted: %w", err), p.stop())
	}
	return p, nil
}

// serve is a proxy to the cluster of a kubeconfig, until ctx ends. It writes a kubeconfig
// for one run.
func serve(ctx context.Context, kubeconfig, granted string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	p, err := proxy.New(config, proxy.Options{InjectOwnerRef: true, Logger: logr.Discard()})
	if err != nil {
		return err
	}
	run, _, err := p.Grant(access.Owner{GVK: benchKind(), Namespace: namespace, Name: "bench", UID: "bench"})
	if err != nil {
		return err
	}
	aside := granted + ".new"
	if err := errors.Join(os.WriteFile(aside, run, 0o600), os.Rename(aside, granted)); err != nil { //nolint:gosec // A path that startProxy chose.
		return fmt.Errorf("write the kubeconfig of a run: %w", err)
	}
	return p.Server().Start(ctx)
}

// reader reads as a run does: on one connection, by HTTP/1.1.
type reader struct {
	http *http.Client
	host string
}

func newReader(config *rest.Config) (*reader, error) {
	encryption, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the client configuration: %w", err)
	}
	encryption.NextProtos = []string{"http/1.1"}
	transport, err := rest.HTTPWrappersForConfig(config, &http.Transport{TLSClientConfig: encryption})
	if err != nil {
		return nil, fmt.Errorf("read the client configuration: %w", err)
	}
	return &reader{http: &http.Client{Transport: transport}, host: config.Host}, nil
}

func (r *reader) get(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.host+path, nil)
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := r.http.Do(request)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("read %s: %s", path, response.Status)
	}
	return nil
}
