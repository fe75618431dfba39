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
)

const (
	// releasePeriod is the period of a chart's watch where none is given, releasePeriods how many
	// are measured.
	releasePeriod, releasePeriods = time.Minute, 2
	// objectsOfOne is how many objects a release has. No controller of Kubernetes works on them.
	objectsOfOne = 4
)

// resting is a manager of releases, and what it asks of the API server.
type resting struct {
	*session

	proxy    *apiproxy.Proxy
	releases int
}

// measureReleases measures a manager at rest that keeps many releases.
func measureReleases(ctx context.Context, s *session) error {
	kind := benchKind("Release")
	s.say("releases: booting a cluster; about 20 s")
	if err := s.boot(ctx, []schema.GroupKind{kind}); err != nil {
		return err
	}
	proxy, err := apiproxy.Start(s.cluster.Config)
	if err != nil {
		return err
	}
	s.stops = append(s.stops, proxy.Close)
	o, err := s.stubbed("releases")
	o.Project, o.Kubeconfig = filepath.Join(s.root, "hack", "bench", "charted"), filepath.Join(s.dir, "releases.kubeconfig")
	if err := errors.Join(err, proxy.WriteKubeconfig(o.Kubeconfig)); err != nil {
		return err
	}
	if err := s.start(ctx, o, kind.Kind); err != nil {
		return err
	}
	r := resting{s, proxy, s.settings.releases}
	s.say("releases: installing %d; about %d s", r.releases, r.releases/3)
	began := time.Now()
	err = each(ctx, names("release", r.releases), func(ctx context.Context, name string) error {
		return s.client.Create(ctx, harness.Custom(kind, namespace, name, nil))
	})
	if err != nil {
		return fmt.Errorf("create the custom resources: %w", err)
	}
	if err := s.logged(ctx, "Installed release", r.releases, seldom); err != nil {
		return err
	}
	s.add(report.Row{Name: "installation of each, 4 at once", Unit: "s"}, time.Since(began).Seconds()/float64(r.releases))
	if err := r.compared(ctx); err != nil {
		return err
	}
	err = s.idle(ctx, nil, report.Row{
		Name: fmt.Sprintf("memory (RSS) with %d releases", r.releases), Goal: report.AtMost(mostRSS),
	})
	if err != nil {
		return err
	}
	return r.rest(ctx)
}

// compared waits until each release has been compared once, and none is any more.
func (r *resting) compared(ctx context.Context) error {
	const quiet = releasePeriod // Each release has one in any minute.
	r.say("releases: the first comparison of each; about %s", releasePeriod)
	return r.until(ctx, "the releases rest", seldom, func(context.Context) (bool, error) {
		var count int
		var last time.Time
		for _, request := range r.proxy.Journal() {
			if isDryRun(request) {
				count, last = count+1, request.Arrived
			}
		}
		return count >= objectsOfOne*r.releases && time.Since(last) > quiet, nil
	})
}

func isDryRun(r apiproxy.Request) bool { return r.Write() && len(r.Query["dryRun"]) > 0 }

// rest adds what periods without a change cost. A write is an error. The manager's own notes, which
// it looks at once a minute, are not counted.
func (r *resting) rest(ctx context.Context) error {
	r.say("releases: %d periods of %s", releasePeriods, releasePeriod)
	var cpu, reads, dryRuns []float64
	n := float64(r.releases)
	for range releasePeriods {
		from := len(r.proxy.Journal())
		before, err := treeTime(r.manager.PID())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(releasePeriod): // It is what is measured.
		}
		after, afterErr := treeTime(r.manager.PID())
		if err := errors.Join(err, afterErr); err != nil {
			return err
		}
		var read, dryRun float64 // requests; watches are none
		for _, request := range r.proxy.Journal()[from:] {
			switch {
			case isDryRun(request):
				dryRun++
			case request.Write():
				return fmt.Errorf("a write in a period without a change: %+v", request)
			case strings.HasPrefix(request.Name, "ensign-"):
			case request.Verb == "get" || request.Verb == "list":
				read++
			}
		}
		cpu, reads, dryRuns = append(cpu, milliseconds(after-before)/n), append(reads, read/n), append(dryRuns, dryRun/n)
	}
	note := fmt.Sprintf("of 1 min, without a change and without a write; a release has %d objects", objectsOfOne)
	r.add(report.Row{Name: "CPU for each release and period", Unit: "ms", Goal: report.AtMost(2), Note: note}, cpu...)
	r.add(report.Row{Name: "reads for each release and period", Goal: report.AtMost(1), Note: note}, reads...)
	r.add(report.Row{Name: "dry runs for each release and period", Goal: report.AtMost(0.01), Note: note}, dryRuns...)
	return nil
}
