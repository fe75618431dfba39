package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/internal/chart/ledger"
	"github.com/ensign-operator/ensign/internal/chart/order"
	"github.com/ensign-operator/ensign/test/faults/apiproxy"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	// releasePeriod is the period of a chart's watch where none is given, releasePeriods how many
	// are measured.
	releasePeriod, releasePeriods = time.Minute, 2
	// ledgerEntries is how many entries the ledger has in the end. An installation makes three writes of its own.
	ledgerEntries, ledgerWrites = 10_000, 3
	// objectsOfOne is how many objects a release has. No controller of Kubernetes works on them.
	objectsOfOne = 4
)

// resting is a manager of releases, and the count of its requests to the API server.
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
	r.written()
	if err := r.compared(ctx); err != nil {
		return err
	}
	err = s.idle(ctx, nil, report.Row{
		Name: fmt.Sprintf("memory (RSS) with %d releases", r.releases), Goal: report.AtMost(mostRSS),
	})
	if err != nil {
		return err
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	return r.filled(ctx)
}

// written adds the writes of the ledger until now.
func (r *resting) written() {
	var writes float64
	for _, request := range r.proxy.Journal() {
		if request.Applied() && request.Resource == "configmaps" && bytes.Contains(request.Body, []byte(ledger.Label)) {
			writes++
		}
	}
	r.add(report.Row{Name: "writes of the ledger for each installation", Goal: report.AtMost(ledgerWrites)}, writes/float64(r.releases))
}

// filled adds the manager's memory beside a ledger of many more entries, which it also sees as it watches ConfigMaps.
func (r *resting) filled(ctx context.Context) error {
	core, err := clientv1.NewForConfig(r.cluster.Config)
	if err != nil {
		return err
	}
	store := &ledger.Store{ConfigMaps: core.ConfigMaps(namespace), Namespace: namespace, Prefix: "ensign-release"}
	more := ledgerEntries - r.releases
	r.say("releases: %d more entries of the ledger; about %d s", more, more/100)
	err = each(ctx, names("entry", more), func(ctx context.Context, name string) error {
		e := &ledger.Entry{Owner: order.Owner{Group: "bench.ensign.io", Kind: "Release", Namespace: namespace, Name: name, UID: name}, Namespace: namespace, Name: name}
		for version := range 10 {
			e.Revisions = append(e.Revisions, order.Revision{Version: version + 1, Attempt: rand.Text(), Status: order.StatusSuperseded})
		}
		for i := range 10 {
			e.Last().Objects = append(e.Last().Objects, order.Object{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("%s-%d", name, i)})
		}
		return store.Put(ctx, e)
	})
	if err != nil {
		return fmt.Errorf("fill the ledger: %w", err)
	}
	return r.idle(ctx, nil, report.Row{Name: fmt.Sprintf("memory (RSS) with a ledger of %d entries", ledgerEntries), Goal: report.AtMost(mostRSS), Note: "of ten objects and ten revisions each"})
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

// rest adds the costs of periods without a change. A write is an error. The manager's own notes,
// which it looks at once a minute, are not counted.
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
		case <-time.After(releasePeriod): // The period is measured.
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
