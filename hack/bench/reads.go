package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/controlplane"
)

const (
	readsPart = "API proxy"
	// Goals of the proxy: what it adds to a request, in ms.
	mostAddedMedian = 1.0
	mostAddedP99    = 3.0
	// rounds are requests of each kind in one sample.
	rounds = 400
	// childSize is the content of a child, in bytes.
	childSize = 1000
	children  = "/api/v1/namespaces/default/configmaps"
	child     = children + "/bench-00000"
)

// reading is a proxy before a cluster.
type reading struct {
	*bench

	cluster *controlplane.Cluster
	proxy   *proxyProcess
	direct  *reader
	run     *reader
	rows    []report.Row
}

// measureReads measures requests of runs through the proxy beside the same ones to the
// API server, in turns.
func measureReads(ctx context.Context, b *bench) (rows []report.Row, err error) {
	r := &reading{bench: b}
	defer func() { err = errors.Join(err, r.takeDown()) }()
	for _, stage := range []func(context.Context) error{r.boot, r.latencies} {
		if err := stage(ctx); err != nil {
			return r.rows, err
		}
	}
	return r.rows, nil
}

func (r *reading) boot(ctx context.Context) (err error) {
	n := r.settings.children
	r.say("API proxy: booting a cluster, with %d config maps of 1 KiB; about 30 s", n)
	if r.cluster, err = controlplane.Start(ctx, controlplane.Options{Bin: filepath.Join(r.root, "bin", "controlplane")}); err != nil {
		return err
	}
	c, err := client.New(r.cluster.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	err = parallel(ctx, 0, n, func(ctx context.Context, i int) error {
		return c.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("bench-%05d", i), Labels: map[string]string{"owner": strconv.Itoa(i / 10)}},
			Data:       map[string]string{"text": strings.Repeat("x", childSize)},
		})
	})
	if err != nil {
		return fmt.Errorf("create the children: %w", err)
	}
	if r.direct, err = newReader(r.cluster.Config); err != nil {
		return err
	}
	if r.proxy, err = startProxy(ctx, r.bench, r.cluster.Kubeconfig); err != nil {
		return err
	}
	r.run, err = newReader(r.proxy.config)
	return err
}

// sample is how long requests took, in ms.
type sample struct{ direct, passed report.Samples }

// latencies measures one request at a time.
func (r *reading) latencies(ctx context.Context) error {
	r.say("API proxy: single requests in turns; about 15 s")
	var median, p99, direct report.Samples
	for range r.settings.repeats {
		s, err := r.turns(ctx)
		if err != nil {
			return err
		}
		median = append(median, s.passed.Median()-s.direct.Median())
		p99 = append(p99, percentile(s.passed, 99)-percentile(s.direct, 99))
		direct = append(direct, s.direct.Median())
	}
	r.add(median.Row("ms"), "added to a request, p50", report.AtMost(mostAddedMedian), "")
	r.add(p99.Row("ms"), "added to a request, p99", report.AtMost(mostAddedP99), "difference of the two p99; each is as rough as the machine is busy")
	r.add(direct.Row("ms"), "GET at the API server, p50", nil, "")
	return nil
}

func (r *reading) add(row report.Row, name string, goal *report.Goal, note string) {
	row.Part, row.Name, row.Goal, row.Note = readsPart, name, goal, note
	r.rows = append(r.rows, row)
}

func (r *reading) turns(ctx context.Context) (s sample, err error) {
	for range rounds {
		for _, turn := range []struct {
			from *reader
			to   *report.Samples
		}{{r.direct, &s.direct}, {r.run, &s.passed}} {
			began := time.Now()
			if err := turn.from.get(ctx, child); err != nil {
				return s, err
			}
			*turn.to = append(*turn.to, float64(time.Since(began).Microseconds())/1000)
		}
	}
	return s, nil
}

func (r *reading) takeDown() error {
	var errs []error
	if r.proxy != nil {
		errs = append(errs, r.proxy.stop())
	}
	if r.cluster != nil {
		errs = append(errs, r.cluster.Stop())
	}
	return errors.Join(errs...)
}

// percentile is the sample that so many of a hundred do not pass; 0 of none.
func percentile(s report.Samples, percent int) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
