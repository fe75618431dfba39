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

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/hack/bench/usage"
	"github.com/ensign-operator/ensign/test/controlplane"
)

const (
	readsPart = "API proxy"
	// Goals of the proxy: what it adds to a request that it passes through, in ms, and
	// reads from memory on one core.
	mostAddedMedian = 1.0
	mostAddedP99    = 3.0
	leastReads      = 5000.0
	leastFaster     = 3.0
	// rounds are requests of each kind in one sample.
	rounds = 400
	// readers are connections that read at once, for readTime.
	readers  = 4
	readTime = 2 * time.Second
	// childSize is the content of a child, in bytes.
	childSize = 1000
	children  = "/api/v1/namespaces/default/configmaps"
	child     = children + "/bench-00000"
	// passing lets a read pass by the cache, and asks for nothing.
	passing = "?pretty=false"
)

// reading is a proxy with its cache before a cluster.
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
	for _, stage := range []func(context.Context) error{r.boot, r.latencies, r.rate, r.lists} {
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
	if r.run, err = newReader(r.proxy.config); err != nil {
		return err
	}
	before, err := r.proxy.memory("VmRSS")
	if err != nil {
		return err
	}
	if err := r.run.warm(ctx, child); err != nil {
		return err
	}
	after, err := r.proxy.memory("VmRSS")
	row := report.Samples{after - before}.Row("MiB")
	row.Part, row.Name, row.Note = readsPart, fmt.Sprintf("memory for %d objects in the cache", n), "growth of the proxy's process (RSS), what listing them left included"
	r.rows = append(r.rows, row)
	return err
}

// sample is how long requests took, in ms.
type sample struct{ direct, passed, cached report.Samples }

// latencies measures one request at a time.
func (r *reading) latencies(ctx context.Context) error {
	r.say("API proxy: single requests in turns; about 15 s")
	var median, p99, live, direct, cached report.Samples
	for range r.settings.repeats {
		s, err := r.turns(ctx)
		if err != nil {
			return err
		}
		median = append(median, s.passed.Median()-s.direct.Median())
		p99 = append(p99, percentile(s.passed, 99)-percentile(s.direct, 99))
		live, direct, cached = append(live, s.passed.Median()), append(direct, s.direct.Median()), append(cached, s.cached.Median())
	}
	r.add(median.Row("ms"), "added to a request that passes, p50", report.AtMost(mostAddedMedian), "")
	r.add(p99.Row("ms"), "added to a request that passes, p99", report.AtMost(mostAddedP99), "difference of the two p99; each is as rough as the machine is busy")
	r.add(direct.Row("ms"), "GET at the API server, p50", nil, "")
	r.add(cached.Row("ms"), "GET from memory, p50", nil, "")
	r.add(report.Ratio(live, cached), "GET from memory, times faster than live", report.AtLeast(leastFaster), "both through the proxy, in turns on one connection")
	r.add(report.Ratio(direct, cached), "… than at the API server without proxy", nil, "")
	return nil
}

func (r *reading) add(row report.Row, name string, goal *report.Goal, note string) {
	row.Part, row.Name, row.Goal, row.Note = readsPart, name, goal, note
	r.rows = append(r.rows, row)
}

func (r *reading) turns(ctx context.Context) (s sample, err error) {
	for range rounds {
		for _, turn := range []struct {
			from   *reader
			path   string
			cached bool
			to     *report.Samples
		}{{r.direct, child + passing, false, &s.direct}, {r.run, child + passing, false, &s.passed}, {r.run, child, true, &s.cached}} {
			began := time.Now()
			cached, err := turn.from.get(ctx, turn.path)
			if err != nil {
				return s, err
			}
			if cached != turn.cached {
				return s, fmt.Errorf("read %s: from memory: %v", turn.path, cached)
			}
			*turn.to = append(*turn.to, float64(time.Since(began).Microseconds())/1000)
		}
	}
	return s, nil
}

// rate measures reads from memory by the processor time that they take.
func (r *reading) rate(ctx context.Context) error {
	r.say("API proxy: reads from memory on one core; about %d s", r.settings.repeats*int(readTime.Seconds()))
	var perCore report.Samples
	for range r.settings.repeats {
		before, err := usage.Time(r.proxy.program.PID())
		if err != nil {
			return err
		}
		counts := make([]int, readers)
		var group errgroup.Group
		until := time.Now().Add(readTime)
		for i := range readers {
			group.Go(func() error {
				reader, err := newReader(r.proxy.config)
				for err == nil && time.Now().Before(until) {
					_, err = reader.get(ctx, child)
					counts[i]++
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		after, err := usage.Time(r.proxy.program.PID())
		if err != nil {
			return err
		}
		total := 0
		for _, n := range counts {
			total += n
		}
		perCore = append(perCore, float64(total)/(after-before).Seconds())
	}
	r.add(perCore.Row("/s"), "GETs from memory, per second of one core", report.AtLeast(leastReads), "by the processor time of the proxy's process, TLS included, with one thread of Go")
	return nil
}

// lists measures lists of everything.
func (r *reading) lists(ctx context.Context) error {
	r.say("API proxy: lists of everything; about 10 s")
	var live, cached report.Samples
	for range r.settings.repeats {
		for _, turn := range []struct {
			from *reader
			to   *report.Samples
		}{{r.direct, &live}, {r.run, &cached}} {
			began := time.Now()
			if _, err := turn.from.get(ctx, children); err != nil {
				return err
			}
			*turn.to = append(*turn.to, float64(time.Since(began).Microseconds())/1000)
		}
	}
	name := fmt.Sprintf("LIST of %d objects", r.settings.children)
	r.add(live.Row("ms"), name+" at the API server", nil, "")
	r.add(cached.Row("ms"), name+" from memory", nil, "")
	r.add(report.Ratio(live, cached), "… times faster", nil, "")
	return nil
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

// warm reads until the answer comes from memory.
func (r *reader) warm(ctx context.Context, path string) error {
	cached := func(ctx context.Context) (bool, error) { return r.get(ctx, path) }
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyLimit, true, cached); err != nil {
		return fmt.Errorf("wait for an answer from memory: %w", err)
	}
	return nil
}
