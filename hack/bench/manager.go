package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/usage"
	"github.com/ensign-operator/ensign/test/controlplane/process"
)

const (
	// readyLimit is far beyond the 3 s that the manager takes to start.
	readyLimit = time.Minute
	// The memory is steady when that many samples, taken one after the other, lie
	// that close together. A Go program gives memory back bit by bit, so that the
	// wait has an end where it never is.
	sampleInterval = 500 * time.Millisecond
	steadySamples  = 10
	steadyFraction = 0.01
	steadyLimit    = 30 * time.Second
)

// manager is bin/manager as a process of its own.
type manager struct {
	group   *process.Group
	program *process.Child
	log     string
}

func startManager(b *bench, kubeconfig string) (_ *manager, err error) {
	dir, err := os.MkdirTemp(b.dir, "manager-")
	if err != nil {
		return nil, fmt.Errorf("make the manager's directory: %w", err)
	}
	m := &manager{group: process.NewGroup(), log: filepath.Join(dir, "log")}
	m.program, err = m.group.Start(process.Command{
		Path: filepath.Join(b.root, "bin", "manager"),
		Args: []string{
			"run", "--kubeconfig", kubeconfig, "--run-dir", filepath.Join(dir, "runs"),
			"--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "127.0.0.1:0", "--user-metrics-bind-address", "0",
		},
		Dir: b.project(),
		Env: append(os.Environ(), "WATCH_NAMESPACE="),
		Log: m.log,
	})
	if err != nil {
		return nil, errors.Join(err, m.stop())
	}
	return m, nil
}

// ready waits until the manager's cache is filled, which its log tells.
func (m *manager) ready(ctx context.Context) error {
	watching := func(context.Context) (bool, error) {
		log, err := os.ReadFile(m.log)
		return bytes.Contains(log, []byte("watching")), err
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readyLimit, true, watching); err != nil {
		return fmt.Errorf("wait for the manager to watch its kind: %w", err)
	}
	return nil
}

func (m *manager) stop() error { return m.group.Stop(10 * time.Second) }

// idle returns the last samples of the manager's memory, in MiB, once they are
// steady or the wait for that has an end.
func (m *manager) idle(ctx context.Context) (report.Samples, error) {
	return settled(ctx, func() (float64, error) { return m.memory("VmRSS") })
}

// settled returns the last samples of a process's memory, once they are steady or the
// wait for that has an end.
func settled(ctx context.Context, memory func() (float64, error)) (report.Samples, error) {
	var samples report.Samples
	steady := func(context.Context) (bool, error) {
		rss, err := memory()
		samples = append(samples, rss)
		return samples.Steady(steadySamples, steadyFraction), err
	}
	err := wait.PollUntilContextTimeout(ctx, sampleInterval, steadyLimit, true, steady)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return samples[max(0, len(samples)-steadySamples):], err
}

// memory reads a size from what the kernel tells of the process, in MiB.
func (m *manager) memory(field string) (float64, error) {
	path := fmt.Sprintf("/proc/%d/status", m.program.PID())
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the manager's memory, which needs Linux: %w", err)
	}
	size, err := usage.Size(string(status), field)
	if err != nil {
		return 0, fmt.Errorf("read %q: %w", path, err)
	}
	return size, nil
}
