package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	namespace = "default"
	// quoted is how much of a manager's log stands in an error, in bytes.
	quoted = 3000
	// The memory is steady when that many samples, taken one after the other, lie
	// that close together. A Go program gives memory back bit by bit, so that the
	// wait has an end where it never is.
	sampleInterval = 500 * time.Millisecond
	steadySamples  = 10
	steadyFraction = 0.01
	steadyLimit    = 30 * time.Second
)

func benchKind() schema.GroupKind {
	return schema.GroupKind{Group: "bench.ensign.io", Kind: "Bench"}
}

// selected are the labels that the watch of that kind selects by.
func selected() map[string]string { return map[string]string{"bench.ensign.io/run": "yes"} }

// bench is what the parts have in common.
type bench struct {
	settings settings
	progress io.Writer
	began    time.Time
	about    string // the versions of Ansible that the warm part found
	load     string // of the machine, at the start
	root     string // of the source tree
	dir      string // for files; removed at the end
}

func open(s settings, progress io.Writer) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the source tree: %w", err)
	}
	b := &bench{settings: s, progress: progress, began: time.Now(), root: root}
	if _, err := os.Stat(b.project()); err != nil {
		return nil, fmt.Errorf("not in the root of the source tree: %w", err)
	}
	if proc, err := procfs.NewDefaultFS(); err == nil {
		if now, err := proc.LoadAvg(); err == nil {
			b.load = describeLoad(now.Load1, runtime.NumCPU())
		}
	}
	if b.dir, err = os.MkdirTemp("", "ensign-bench-"); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	return b, nil
}

// project is the operator project that memory and children are measured with.
func (b *bench) project() string { return filepath.Join(b.root, "hack", "bench", "project") }

// machine says where this runs, with what, and whether it had the machine to itself.
func (b *bench) machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()) + b.about + b.load
}

// describeLoad says when others use the machine too.
func describeLoad(load float64, cores int) string {
	text := fmt.Sprintf(", load %.1f at the start", load)
	if load > float64(cores)/2 {
		text += ": BUSY, so that times are rough"
	}
	return text
}

// session is one part while it is measured.
type session struct {
	*bench

	title   string
	fail    context.CancelCauseFunc // Ends the part when something of it ends.
	stops   []func() error          // what is to be done at its end
	cluster *controlplane.Cluster
	client  client.WithWatch
	manager *harness.Manager // the last one, whose log an error quotes
	kept    []*harness.Manager
	rows    []report.Row
}

// measure measures a part, and gives what it has measured also with an error.
func (b *bench) measure(parent context.Context, p part) ([]report.Row, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	s := &session{bench: b, title: p.title, fail: cancel}
	err := p.measure(ctx, s)
	if err != nil && parent.Err() == nil {
		err = fmt.Errorf("measure %s: %w", p.name, err)
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		if s.manager != nil {
			log, logErr := s.manager.Log()
			err = errors.Join(err, fmt.Errorf("the end of the manager's log: %s", log[max(0, len(log)-quoted):]), logErr)
		}
	}
	for _, stop := range append([]func() error{s.dismiss}, s.stops...) {
		err = errors.Join(err, stop())
	}
	return s.rows, err
}

// say tells how far it is.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// add adds a row with its samples.
func (s *session) add(row report.Row, samples ...float64) { s.note(row.Of(samples...)) }

// note adds a row.
func (s *session) note(row report.Row) {
	if row.Part == "" {
		row.Part = s.title
	}
	s.rows = append(s.rows, row.Judged())
}

// boot starts a cluster, which serves the kinds and ends with the part.
func (s *session) boot(ctx context.Context, definitions ...*apiextensionsv1.CustomResourceDefinition) (err error) {
	s.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(s.root, "bin", "controlplane")})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, s.cluster.Stop)
	go func() {
		select {
		case err := <-s.cluster.Failed():
			s.fail(err)
		case <-ctx.Done():
		}
	}()
	if err := apiextensionsv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.cluster.Config, client.Options{}); err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return harness.Define(ctx, s.client, definitions...)
}

// options are those of a manager of the project.
func (s *session) options(home string) harness.Options {
	return harness.Options{
		Binary: filepath.Join(s.root, "bin", "manager"), Project: s.project(), Kubeconfig: s.cluster.Kubeconfig, Home: filepath.Join(s.dir, home),
	}
}

// until polls, unless the manager or the context ends.
func (s *session) until(ctx context.Context, what string, interval time.Duration, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.manager.Ended():
			return false, errors.New("the manager has ended")
		default:
			return holds(ctx)
		}
	})
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// keep has the manager stopped with the part.
func (s *session) keep(m *harness.Manager) { s.manager, s.kept = m, append(s.kept, m) }

// dismiss stops all managers.
func (s *session) dismiss() (err error) {
	for _, m := range s.kept {
		err = errors.Join(err, m.Stop())
	}
	s.kept = nil
	return err
}

// idle adds a row with the resident memory of the manager once that is steady, or the wait
// for that has an end.
func (s *session) idle(ctx context.Context, row report.Row) error {
	var samples []float64
	err := wait.PollUntilContextTimeout(ctx, sampleInterval, steadyLimit, true, func(context.Context) (bool, error) {
		memory, err := harness.MemoryOf(s.manager.PID())
		samples = append(samples, mebibytes(memory.Resident))
		samples = samples[max(0, len(samples)-steadySamples):]
		return steady(samples), err
	})
	if err != nil && (ctx.Err() != nil || !wait.Interrupted(err)) {
		return err
	}
	row.Unit = "MiB"
	s.add(row, samples...)
	return nil
}

// peak adds a row with the most memory that the manager ever had.
func (s *session) peak(name string) error {
	memory, err := harness.MemoryOf(s.manager.PID())
	s.add(report.Row{Name: name, Unit: "MiB"}, mebibytes(memory.Peak))
	return err
}

func steady(samples []float64) bool {
	return len(samples) == steadySamples && slices.Max(samples)-slices.Min(samples) <= steadyFraction*slices.Max(samples)
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
