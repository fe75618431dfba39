package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/controlplane"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

const (
	namespace = "default"
	// exact is how exact times are, and seldom how often many runs are counted.
	exact, seldom = 5 * time.Millisecond, 500 * time.Millisecond
)

func benchKind(name string) schema.GroupKind {
	return schema.GroupKind{Group: "bench.ensign.io", Kind: name}
}

// selected are the labels that the watch of Bench selects by.
func selected() map[string]string { return map[string]string{"bench.ensign.io/run": "yes"} }

// session is one part while it is measured.
type session struct {
	*bench

	title    string
	fail     context.CancelCauseFunc // Ends the part when something of it ends.
	stops    []func() error          // functions to call at its end
	cluster  *controlplane.Cluster
	client   client.WithWatch
	manager  *harness.Manager // the last one, whose log an error quotes
	managers []func() error   // stop those that were started
	rows     []report.Row
}

// measure measures a part, and returns the figures also with an error.
func (b *bench) measure(parent context.Context, p part) ([]report.Row, error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	s := &session{bench: b, title: p.title, fail: cancel}
	err := p.measure(ctx, s)
	if err != nil && parent.Err() == nil {
		err = fmt.Errorf("measure %s: %w", p.name, errors.Join(err, context.Cause(ctx)))
		if s.manager != nil {
			log, logErr := s.manager.Log()
			err = errors.Join(err, fmt.Errorf("the end of the manager's log: %s", log[max(0, len(log)-3000):]), logErr)
		}
	}
	for _, stop := range append([]func() error{s.dismiss}, s.stops...) {
		err = errors.Join(err, stop())
	}
	return s.rows, err
}

// add adds a row: of samples, where there are any.
func (s *session) add(row report.Row, samples ...float64) {
	if len(samples) > 0 {
		row = row.Of(samples...)
	}
	row.Part = s.title
	s.rows = append(s.rows, row.Judged())
}

// boot starts a cluster, which ends with the part. It serves the kinds, which take anything,
// and those of the repository's operator, by their names in plural.
func (s *session) boot(ctx context.Context, kinds []schema.GroupKind, plurals ...string) (err error) {
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
	definitions := envtest.CRDInstallOptions{ErrorIfPathMissing: true}
	for _, kind := range kinds {
		definitions.CRDs = append(definitions.CRDs, harness.Definition(kind))
	}
	for _, plural := range plurals {
		definitions.Paths = append(definitions.Paths, filepath.Join(s.root, "config", "crd", "bases", mysqlGroup+"_"+plural+".yaml"))
	}
	if err := errors.Join(envtest.ReadCRDFiles(&definitions), apiextensionsv1.AddToScheme(scheme.Scheme)); err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.cluster.Config, client.Options{}); err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	return harness.Define(ctx, s.client, definitions.CRDs...)
}

// options are those of a manager of the project.
func (s *session) options(home string, args ...string) harness.Options {
	return harness.Options{
		Binary: filepath.Join(s.root, "bin", "manager"), Project: s.project(), Kubeconfig: s.cluster.Kubeconfig, Home: filepath.Join(s.dir, home), Args: args,
	}
}

// stubbed are those of one whose runs this program plays.
func (s *session) stubbed(home string) (harness.Options, error) {
	o := s.options(home, "--leader-election-namespace="+namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4", "--ansible-log-events=Nothing")
	environment := filepath.Join(o.Home, "env")
	o.Env = []string{"VIRTUAL_ENV=" + environment}
	return o, script.Environment(environment)
}

// start starts a manager, and waits until it watches the kinds. The manager ends with the
// part, and the part with the manager.
func (s *session) start(ctx context.Context, o harness.Options, kinds ...string) error {
	m, err := harness.Start(o)
	if err != nil {
		return err
	}
	wanted, dismiss := context.WithCancel(ctx)
	go func() {
		select {
		case <-m.Ended():
			if wanted.Err() == nil {
				s.fail(errors.New("the manager has ended"))
			}
		case <-wanted.Done():
		}
	}()
	s.manager, s.managers = m, append(s.managers, func() error {
		dismiss()
		return m.Stop()
	})
	return m.Ready(ctx, kinds...)
}

// dismiss stops all managers.
func (s *session) dismiss() (err error) {
	for _, stop := range s.managers {
		err = errors.Join(err, stop())
	}
	s.managers = nil
	return err
}

func (s *session) until(ctx context.Context, what string, interval time.Duration, holds wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, interval, true, holds); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// count counts the matches of the expression in the manager's log.
func (s *session) count(expression string) (int, error) {
	log, err := s.manager.Log()
	return len(regexp.MustCompile(expression).FindAllString(log, -1)), err
}

// logged waits until that is so many.
func (s *session) logged(ctx context.Context, expression string, times int, interval time.Duration) error {
	return s.until(ctx, fmt.Sprintf("%q is logged %d times", expression, times), interval, func(context.Context) (bool, error) {
		count, err := s.count(expression)
		return count >= times, err
	})
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// names are n of those that begin with a prefix.
func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return all
}

// each calls f for each name, several at once.
func each(ctx context.Context, names []string, f func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error { return f(ctx, name) })
	}
	return group.Wait()
}
