package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

const (
	// releasePeriod is the period of a chart's watch where none is given.
	releasePeriod = time.Minute
	// releasePeriods are how many are measured.
	releasePeriods = 2
	// Goals of a release at rest, for each period: processor time in ms, and requests: of the
	// CR, of the revisions, and of each object, which the API proxy reads too before a dry run.
	mostReleaseCPU, mostReleaseReads, mostReleaseDryRuns = 50.0, 13.0, 5.0
)

func helloKind() schema.GroupKind { return schema.GroupKind{Group: "demo.example.com", Kind: "Hello"} }

// measureReleases measures a manager at rest that keeps many releases of the chart of
// examples/hello, each of two Deployments and two Services.
func measureReleases(ctx context.Context, s *session) error {
	n := s.settings.releases
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("release-%05d", i)
	}
	s.say("releases: booting a cluster; about 20 s")
	if err := s.boot(ctx, harness.Definition(helloKind())); err != nil {
		return err
	}
	proxy, err := apiproxy.Start(s.cluster.Config)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, proxy.Close)
	if err := s.startWithChart(ctx, proxy); err != nil {
		return err
	}
	s.say("releases: installing %d; about %d s", n, n)
	err = each(ctx, names, func(ctx context.Context, name string) error {
		return s.client.Create(ctx, harness.Custom(helloKind(), namespace, name, map[string]any{"replicaCount": int64(0)})) // Pods are no part of it.
	})
	if err != nil {
		return fmt.Errorf("create the custom resources: %w", err)
	}
	err = s.until(ctx, "all releases are installed", seldom, func(context.Context) (bool, error) {
		log, err := s.manager.Log()
		return strings.Count(log, "Installed release") >= n, err
	})
	if err != nil {
		return err
	}
	if err := s.idle(ctx, report.Row{Name: fmt.Sprintf("memory (RSS) with %d releases", n), Goal: report.AtMost(mostRSS)}); err != nil {
		return err
	}
	return s.restWithReleases(ctx, proxy, n)
}

// startWithChart starts a manager of examples/hello, behind the proxy, whose Python is a stub.
func (s *session) startWithChart(ctx context.Context, proxy *apiproxy.Proxy) error {
	o := s.options("releases")
	o.Project, o.Kubeconfig = filepath.Join(s.root, "examples", "hello"), filepath.Join(s.dir, "releases.kubeconfig")
	if err := proxy.WriteKubeconfig(o.Kubeconfig); err != nil {
		return err
	}
	environment := filepath.Join(o.Home, "env")
	if err := script.Environment(environment); err != nil {
		return err
	}
	o.Env = []string{"VIRTUAL_ENV=" + environment}
	o.Args = []string{"--leader-election-namespace=" + namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4"}
	manager, err := harness.Start(o)
	if err != nil {
		return err
	}
	s.keep(manager)
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return manager.Ready(ctx, helloKind().Kind)
}

// restWithReleases adds what periods without a change cost. A write is an error.
func (s *session) restWithReleases(ctx context.Context, proxy *apiproxy.Proxy, n int) error {
	s.say("releases: %d periods of %s", releasePeriods, releasePeriod)
	var cpu, reads, dryRuns []float64
	for range releasePeriods {
		from := len(proxy.Journal())
		before, err := treeTime(s.manager.PID())
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.manager.Ended():
			return errors.New("the manager has ended")
		case <-time.After(releasePeriod): // It is what is measured.
		}
		after, err := treeTime(s.manager.PID())
		if err != nil {
			return err
		}
		counts := countRequests(proxy.Journal()[from:])
		if counts.writes > 0 {
			return fmt.Errorf("%d writes in a period without a change", counts.writes)
		}
		cpu = append(cpu, milliseconds(after-before)/float64(n))
		reads, dryRuns = append(reads, float64(counts.reads)/float64(n)), append(dryRuns, float64(counts.dryRuns)/float64(n))
	}
	const note = "of 1 min, without a change and without a write; a release has four objects"
	s.add(report.Row{Name: "CPU for each release and period", Unit: "ms", Goal: report.AtMost(mostReleaseCPU), Note: note}, cpu...)
	s.add(report.Row{Name: "reads for each release and period", Goal: report.AtMost(mostReleaseReads), Note: note}, reads...)
	s.add(report.Row{Name: "dry runs for each release and period", Goal: report.AtMost(mostReleaseDryRuns), Note: note}, dryRuns...)
	return nil
}

// requestCounts are requests of a manager. Watches are none.
type requestCounts struct{ reads, dryRuns, writes int }

func countRequests(journal []apiproxy.Request) (counts requestCounts) {
	for _, request := range journal {
		switch {
		case request.Write() && len(request.Query["dryRun"]) > 0:
			counts.dryRuns++
		case request.Write():
			counts.writes++
		case request.Verb == "get" || request.Verb == "list":
			counts.reads++
		}
	}
	return counts
}
