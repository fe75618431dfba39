package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

const (
	// Goals of a manager before many children: until it watches them, its memory in
	// MiB, and until a deleted one brings its CR back.
	mostUntilLive = 20.0
	mostForMany   = 250.0
	mostUntilRun  = 1.0
	// childrenOfOne is how many children a custom resource has, childSize the content of
	// one in bytes.
	childrenOfOne, childSize = 10, 1000
	// exact is how exact the times are, and seldom how often many runs are counted.
	exact, seldom = 5 * time.Millisecond, 500 * time.Millisecond
)

// measureChildren measures a manager that starts before many children, and how soon it
// takes note of drift. Its runs are no Ansible.
func measureChildren(ctx context.Context, s *session) error {
	crs, err := s.furnish(ctx)
	if err != nil {
		return err
	}
	s.say("children: starting the manager; about 5 s")
	live, err := s.startBeforeChildren(ctx)
	if err != nil {
		return err
	}
	s.add(report.Row{
		Name: "from the manager's start until all of them are watched", Unit: "s", Goal: report.AtMost(mostUntilLive),
		Note: fmt.Sprintf("%d children of %d custom resources", s.childrenOfEach()*len(crs), len(crs)),
	}, live.Seconds())

	s.say("children: a run for each of %d custom resources; about 60 s", len(crs))
	err = s.until(ctx, "each custom resource has been run", seldom, func(context.Context) (bool, error) {
		log, err := s.manager.Log()
		return strings.Count(log, "run succeeded") >= len(crs), err
	})
	if err != nil {
		return err
	}
	err = s.idle(ctx, report.Row{
		Name: "memory (RSS) after a run for each custom resource", Goal: report.AtMost(mostForMany),
		Note: "runs that do nothing and succeed, by a stub of ansible-runner",
	})
	if err != nil {
		return err
	}
	if err := s.peak("the most it ever had"); err != nil {
		return err
	}
	times := min(2*s.settings.repeats, len(crs))
	s.say("children: deleting %d of them, one after another; about 2 s", times)
	var took []float64
	for _, cr := range crs[:times] {
		d, err := s.drift(ctx, cr)
		if err != nil {
			return err
		}
		took = append(took, d.Seconds())
	}
	row := report.Row{
		Name: "from a child's deletion to the start of the run", Unit: "s", Goal: report.AtMost(mostUntilRun), Note: fmt.Sprintf("the longest of %d", times),
	}.Of(took...)
	row.Value = slices.Max(took) // Each of them is to be noticed in time.
	s.note(row)
	return nil
}

func (s *session) childrenOfEach() int { return min(s.settings.children, childrenOfOne) }

// furnish starts a cluster with many custom resources and their children, and the record
// of an earlier manager which knew the children. It returns the names of the former.
func (s *session) furnish(ctx context.Context) (crs []string, err error) {
	n := s.settings.children
	s.say("%s: booting a cluster, with %d children of 1 KiB; about 40 s", s.title, n)
	if err := s.boot(ctx, harness.Definition(benchKind())); err != nil {
		return nil, err
	}
	for i := range max(1, n/childrenOfOne) {
		crs = append(crs, fmt.Sprintf("cr-%05d", i))
	}
	if err := each(ctx, crs, s.createFamily); err != nil {
		return nil, fmt.Errorf("create children: %w", err)
	}
	return crs, s.client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ensign-children"},
		Data:       map[string]string{benchKind().String(): `[{"version":"v1","resource":"configmaps","namespaced":true}]`},
	})
}

func (s *session) createFamily(ctx context.Context, name string) error {
	cr := harness.Custom(benchKind(), namespace, name, map[string]any{})
	cr.SetLabels(selected())
	if err := s.client.Create(ctx, cr); err != nil {
		return err
	}
	owner := metav1.OwnerReference{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: name, UID: cr.GetUID()}
	for i := range s.childrenOfEach() {
		child := childOf(name, i)
		child.OwnerReferences = []metav1.OwnerReference{owner}
		child.Data = map[string]string{"text": strings.Repeat("x", childSize)}
		if err := s.client.Create(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

func childOf(cr string, i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", cr, i)}}
}

// startBeforeChildren starts a manager whose runs this program plays, and tells how long it
// took until the children were watched.
func (s *session) startBeforeChildren(ctx context.Context) (live time.Duration, err error) {
	o := s.options("children")
	environment := filepath.Join(o.Home, "env")
	if err := script.Environment(environment); err != nil {
		return 0, err
	}
	o.Env = []string{"VIRTUAL_ENV=" + environment}
	o.Args = []string{"--leader-election-namespace=" + namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4", "--ansible-log-events=Nothing"}
	followed := regexp.MustCompile(`ansible_operator_followed_kind\{[^}]*resource="configmaps",state="live"\} 1`)
	began := time.Now()
	manager, err := harness.Start(o)
	if err != nil {
		return 0, err
	}
	s.keep(manager)
	err = s.until(ctx, "the children are watched", exact, func(ctx context.Context) (bool, error) {
		metrics, err := manager.Metrics(ctx)
		return err == nil && followed.MatchString(metrics), nil // The endpoint is not there from the beginning.
	})
	return time.Since(began), err
}

// drift deletes a child of a CR that has run once, and gives the time from then to the start of
// the run that it brings.
func (s *session) drift(ctx context.Context, cr string) (time.Duration, error) {
	started := regexp.MustCompile(`run started.*"cr": "` + namespace + `/` + cr + `"`)
	runs := func() (int, error) {
		log, err := s.manager.Log()
		return len(started.FindAllString(log, -1)), err
	}
	if before, err := runs(); err != nil || before != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s has had %d runs instead of one", cr, before))
	}
	if err := s.client.Delete(ctx, childOf(cr, 0)); err != nil {
		return 0, fmt.Errorf("delete a child: %w", err)
	}
	deleted := time.Now()
	err := s.until(ctx, "the deletion has brought a run", exact, func(context.Context) (bool, error) {
		now, err := runs()
		return now > 1, err
	})
	return time.Since(deleted), err
}
