// Package crowd puts a manager before many children of many CRs, and takes the times
// of it. It knows nothing of Ginkgo, so that programs can use it too.
//
// The package does not judge what it measures.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

const (
	// childSize is the content of a child, in bytes.
	childSize = 1000
	// writers are how many requests are under way at once.
	writers = 16
	// interval is how exact the times are, and runsInterval how often many runs are
	// counted.
	interval     = 5 * time.Millisecond
	runsInterval = 500 * time.Millisecond
)

// live is the metric that tells that the children are followed.
func live() *regexp.Regexp {
	return regexp.MustCompile(`ansible_operator_followed_kind\{[^}]*resource="configmaps",state="live"\} 1`)
}

// Crowd is many CRs with children. The children are ConfigMaps.
type Crowd struct {
	Client client.Client
	// Kind is that of the CRs, which is served in version v1.
	Kind      schema.GroupKind
	Namespace string
	// Labels are those of the CRs.
	Labels map[string]string
	// CRs is how many there are, and Children how many each of them has.
	CRs, Children int
}

// Create makes them, and the record of an earlier manager which knew the children.
func (c Crowd) Create(ctx context.Context) error {
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range c.CRs {
		group.Go(func() error { return c.createOne(creating, i) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("create children: %w", err)
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "ensign-children"},
		Data:       map[string]string{c.Kind.String(): `[{"version":"v1","resource":"configmaps","namespaced":true}]`},
	}
	if err := c.Client.Create(ctx, record); err != nil {
		return fmt.Errorf("create the record of child kinds: %w", err)
	}
	return nil
}

func (c Crowd) name(i int) string { return fmt.Sprintf("cr-%05d", i) }

func (c Crowd) createOne(ctx context.Context, i int) error {
	cr := harness.Custom(c.Kind, c.Namespace, c.name(i), map[string]any{})
	cr.SetLabels(c.Labels)
	if err := c.Client.Create(ctx, cr); err != nil {
		return err
	}
	owner := metav1.OwnerReference{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: cr.GetName(), UID: cr.GetUID()}
	for j := range c.Children {
		child := c.child(i, j)
		child.OwnerReferences = []metav1.OwnerReference{owner}
		child.Data = map[string]string{"text": strings.Repeat("x", childSize)}
		if err := c.Client.Create(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

func (c Crowd) child(i, j int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: fmt.Sprintf("%s-%d", c.name(i), j)}}
}

// Manager is one that looks after a crowd.
type Manager struct {
	*harness.Manager

	// Live is how long it took from the start of the process until the children were
	// watched.
	Live  time.Duration
	crowd Crowd
}

// Start starts a manager whose runs do nothing: the program that calls it has called
// script.Main. The manager has to be stopped.
func (c Crowd) Start(ctx context.Context, o harness.Options) (_ *Manager, err error) {
	environment := filepath.Join(o.Home, "env")
	if err := script.Environment(environment); err != nil {
		return nil, err
	}
	o.Env = append(o.Env, "VIRTUAL_ENV="+environment)
	o.Args = append([]string{
		"--leader-election-namespace=" + c.Namespace, "--max-concurrent-reconciles=4", "--max-concurrent-runs=4", "--ansible-log-events=Nothing",
	}, o.Args...)
	followed, begun := live(), time.Now()
	m := &Manager{crowd: c}
	if m.Manager, err = harness.Start(o); err != nil {
		return nil, err
	}
	err = m.until(ctx, "the children are watched", interval, func(ctx context.Context) (bool, error) {
		metrics, err := m.Metrics(ctx)
		return err == nil && followed.MatchString(metrics), nil // The endpoint is not there from the beginning.
	})
	if err != nil {
		return nil, errors.Join(err, m.Kill())
	}
	m.Live = time.Since(begun)
	return m, nil
}

// Ran waits until each CR has been run.
func (m *Manager) Ran(ctx context.Context) error {
	return m.until(ctx, fmt.Sprintf("%d CRs have run", m.crowd.CRs), runsInterval, func(context.Context) (bool, error) {
		log, err := m.Log()
		return strings.Count(log, "run succeeded") >= m.crowd.CRs, err
	})
}

// Drift deletes a child of a CR that rests, and gives the time from then to the start
// of the run that it brings.
func (m *Manager) Drift(ctx context.Context, cr int) (time.Duration, error) {
	started := regexp.MustCompile(`run started.*"cr": "` + m.crowd.Namespace + `/` + m.crowd.name(cr) + `"`)
	before, err := m.count(started)
	if err != nil {
		return 0, err
	}
	if err := m.crowd.Client.Delete(ctx, m.crowd.child(cr, 0)); err != nil {
		return 0, fmt.Errorf("delete a child: %w", err)
	}
	deleted := time.Now()
	err = m.until(ctx, "the deletion has brought a run", interval, func(context.Context) (bool, error) {
		now, err := m.count(started)
		return now > before, err
	})
	return time.Since(deleted), err
}

func (m *Manager) count(line *regexp.Regexp) (int, error) {
	log, err := os.ReadFile(m.LogFile())
	return len(line.FindAll(log, -1)), err
}

// until polls, unless the manager or the context ends.
func (m *Manager) until(ctx context.Context, what string, interval time.Duration, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		select {
		case <-m.Ended():
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
