package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/kubeapi/access"
	"github.com/ensign-operator/ensign/internal/kubeapi/proxy"
)

const (
	// Goals of the proxy: what it adds to a request, in ms.
	mostAddedMedian = 1.0
	mostAddedP99    = 3.0
	// requests are how many there are of each kind in one sample.
	requests = 400
	// child is one of a crowd's.
	child = "/api/v1/namespaces/default/configmaps/cr-00000-0"
	// serveProxy is the argument that makes this program a proxy.
	serveProxy = "serve-proxy"
)

// measureProxy measures requests of runs through the proxy beside the same ones to the
// API server, in turns, one at a time.
func measureProxy(ctx context.Context, s *session) error {
	if _, err := s.furnish(ctx); err != nil {
		return err
	}
	granted, err := s.startProxy()
	if err != nil {
		return err
	}
	direct, err := newReader(s.cluster.Config)
	if err != nil {
		return err
	}
	run, err := newReader(granted)
	if err != nil {
		return err
	}
	s.say("API proxy: single requests in turns; about 15 s")
	var median, p99, server []float64
	for range s.settings.repeats {
		var took [2][]float64 // by the API server, and through the proxy; in ms
		for range requests {
			for i, get := range []func(context.Context) error{direct, run} {
				began := time.Now()
				if err := get(ctx); err != nil {
					return err
				}
				took[i] = append(took[i], milliseconds(time.Since(began)))
			}
		}
		server = append(server, report.Median(took[0]))
		median = append(median, report.Median(took[1])-report.Median(took[0]))
		p99 = append(p99, percentile99(took[1])-percentile99(took[0]))
	}
	s.add(report.Row{Name: "added to a request, p50", Unit: "ms", Goal: report.AtMost(mostAddedMedian)}, median...)
	s.add(report.Row{
		Name: "added to a request, p99", Unit: "ms", Goal: report.AtMost(mostAddedP99), Note: "difference of the two p99; each is as rough as the machine is busy",
	}, p99...)
	s.add(report.Row{Name: "GET at the API server, p50", Unit: "ms"}, server...)
	return nil
}

// percentile99 is the sample that 99 of a hundred do not pass.
func percentile99(samples []float64) float64 {
	return slices.Sorted(slices.Values(samples))[len(samples)*99/100]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startProxy starts this program again, as the API proxy with one thread of Go, which the
// manager's has too, and returns how a run reaches it.
func (s *session) startProxy() (*rest.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	command := exec.Command(self, serveProxy, s.cluster.Kubeconfig)
	command.Env, command.Stderr = append(os.Environ(), "GOMAXPROCS=1"), s.progress
	in, inErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if err := errors.Join(inErr, outErr, command.Start()); err != nil {
		return nil, fmt.Errorf("start the proxy: %w", err)
	}
	s.stops = append([]func() error{func() error { return errors.Join(in.Close(), command.Wait()) }}, s.stops...)
	granted, err := io.ReadAll(out)
	if err != nil {
		return nil, fmt.Errorf("wait for the proxy: %w", err)
	}
	return clientcmd.RESTConfigFromKubeConfig(granted)
}

// serve is a proxy to the cluster of a kubeconfig, until ctx or the input ends, as it does
// with the process that writes to it. It prints a kubeconfig for one run, and closes what
// it prints to.
func serve(ctx context.Context, kubeconfig string, in io.Reader, out io.WriteCloser) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	p, err := proxy.New(config, proxy.Options{InjectOwnerRef: true, Logger: logr.Discard()})
	if err != nil {
		return err
	}
	run, _, err := p.Grant(access.Owner{GVK: benchKind().WithVersion("v1"), Namespace: namespace, Name: "bench", UID: "bench"})
	if err != nil {
		return err
	}
	_, err = out.Write(run)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("print the kubeconfig of a run: %w", err)
	}
	return p.Server().Start(ctx)
}

// newReader reads as a run does: on one connection, by HTTP/1.1, a body as it is.
func newReader(config *rest.Config) (func(context.Context) error, error) {
	config = rest.CopyConfig(config)
	config.NextProtos, config.QPS = []string{"http/1.1"}, -1
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return c.CoreV1().RESTClient().Get().AbsPath(child).SetHeader("Accept", "application/json").SetHeader("Accept-Encoding", "identity").Do(ctx).Error()
	}, nil
}
