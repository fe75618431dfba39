package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aclements/go-moremath/stats"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness"
	"github.com/ensign-operator/ensign/test/harness/script"
)

// childrenOfOne is how many children a custom resource has.
const childrenOfOne = 10

// measureChildren measures a manager that starts before many children, and how soon it takes note
// of drift. Its runs do not use Ansible.
func measureChildren(ctx context.Context, s *session) error {
	crs, err := s.furnish(ctx, selected())
	if err != nil {
		return err
	}
	s.say("children: starting the manager; about 5 s")
	live, err := s.startBeforeChildren(ctx)
	if err != nil {
		return err
	}
	s.add(report.Row{
		Name: "from the manager's start until all of them are watched", Unit: "s", Goal: report.AtMost(20),
		Note: fmt.Sprintf("%d children of %d custom resources", childrenOfOne*len(crs), len(crs)),
	}, live.Seconds())
	s.say("children: a run for each of %d custom resources; about 60 s", len(crs))
	err = s.idle(ctx, s.logged(ctx, "run succeeded", len(crs), seldom), report.Row{
		Name: "memory (RSS) after a run for each custom resource", Goal: report.AtMost(250),
		Note: "runs that do nothing and succeed, by a stub of ansible-runner",
	})
	if err := errors.Join(err, s.peak("the most it ever had")); err != nil {
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
		Name: "from a child's deletion to the start of the run", Unit: "s", Goal: report.AtMost(1), Note: fmt.Sprintf("the longest of %d", times),
	}.Of(took...)
	row.Value = slices.Max(took) // Each of them is to be noticed in time.
	s.add(row)
	return nil
}

// furnish starts a cluster with many custom resources, with these labels, and their children,
// and the record of an earlier manager which knew the children. It returns the names of the
// former.
func (s *session) furnish(ctx context.Context, labels map[string]string) (crs []string, err error) {
	n := s.settings.children
	s.say("%s: booting a cluster, with %d children of 1 KiB; about 40 s", s.title, n)
	if err := s.boot(ctx, []schema.GroupKind{benchKind("Bench")}); err != nil {
		return nil, err
	}
	crs = names("cr", max(1, n/childrenOfOne))
	err = each(ctx, crs, func(ctx context.Context, name string) error {
		cr := harness.Custom(benchKind("Bench"), namespace, name, map[string]any{})
		cr.SetLabels(labels)
		if err := s.client.Create(ctx, cr); err != nil {
			return err
		}
		owner := metav1.OwnerReference{APIVersion: cr.GetAPIVersion(), Kind: cr.GetKind(), Name: name, UID: cr.GetUID()}
		for i := range childrenOfOne {
			child := childOf(name, i)
			child.OwnerReferences = []metav1.OwnerReference{owner}
			child.Data = map[string]string{"text": strings.Repeat("x", 1000)}
			if err := s.client.Create(ctx, child); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("create children: %w", err)
	}
	return crs, s.client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ensign-children"},
		Data:       map[string]string{benchKind("Bench").String(): `[{"version":"v1","resource":"configmaps","namespaced":true}]`},
	})
}

func childOf(cr string, i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", cr, i)}}
}

// startBeforeChildren starts a manager whose runs this program plays, and tells how long it
// took until the children were watched.
func (s *session) startBeforeChildren(ctx context.Context) (live time.Duration, err error) {
	o, err := s.stubbed("children")
	if err != nil {
		return 0, err
	}
	followed := regexp.MustCompile(`ansible_operator_watched_kind\{[^}]*resource="configmaps",state="live"\} 1`)
	began := time.Now()
	if err := s.start(ctx, o); err != nil {
		return 0, err
	}
	err = s.until(ctx, "the children are watched", exact, func(ctx context.Context) (bool, error) {
		metrics, err := s.manager.Metrics(ctx)
		return err == nil && followed.MatchString(metrics), nil // The endpoint is not there from the beginning.
	})
	return time.Since(began), err
}

// drift deletes a child of a CR that has run once, and gives the time from then to the start of
// the run that it brings.
func (s *session) drift(ctx context.Context, cr string) (time.Duration, error) {
	started := `run started.*"cr": "` + namespace + `/` + cr + `"`
	if before, err := s.count(started); err != nil || before != 1 {
		return 0, errors.Join(err, fmt.Errorf("%s has had %d runs instead of one", cr, before))
	}
	if err := s.client.Delete(ctx, childOf(cr, 0)); err != nil {
		return 0, fmt.Errorf("delete a child: %w", err)
	}
	deleted := time.Now()
	err := s.logged(ctx, started, 2, exact)
	return time.Since(deleted), err
}

// held is the file that a run makes which lives until it is told to end.
const held = "held"

// play replaces ansible-runner in this program: it succeeds, at once unless the CR wants the run to
// be held.
func play(r *script.Run) (int, error) {
	if r.Variables["hold"] == true {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := os.WriteFile(filepath.Join(r.Private, held), nil, 0o600); err != nil {
			return 0, err
		}
		<-ctx.Done()
	}
	return script.Succeed(r)
}

// measureProxy measures requests of a run through the API proxy, in turns with the same
// requests to the API server.
func measureProxy(ctx context.Context, s *session) error {
	crs, err := s.furnish(ctx, nil)
	if err != nil {
		return err
	}
	granted, err := s.holdRun(ctx)
	if err != nil {
		return err
	}
	var clients [2]*kubernetes.Clientset // of the API server, and through the proxy
	for i, config := range []*rest.Config{s.cluster.Config, granted} {
		config = rest.CopyConfig(config)
		config.NextProtos, config.QPS = []string{"http/1.1"}, -1 // As runs do, on one connection.
		if clients[i], err = kubernetes.NewForConfig(config); err != nil {
			return err
		}
	}
	s.say("API proxy: single requests in turns; about 15 s")
	var median, p99, server []float64
	for range s.settings.repeats {
		var took [2][]float64 // in ms
		for range 400 {
			for i, c := range clients {
				began := time.Now()
				// A body as it is.
				err := c.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").Name(childOf(crs[0], 0).Name).
					SetHeader("Accept", "application/json").SetHeader("Accept-Encoding", "identity").Do(ctx).Error()
				if err != nil {
					return err
				}
				took[i] = append(took[i], milliseconds(time.Since(began)))
			}
		}
		server = append(server, report.Median(took[0]))
		median = append(median, report.Median(took[1])-report.Median(took[0]))
		p99 = append(p99, stats.Sample{Xs: took[1]}.Quantile(0.99)-stats.Sample{Xs: took[0]}.Quantile(0.99))
	}
	s.add(report.Row{Name: "added to a request, p50", Unit: "ms", Goal: report.AtMost(1)}, median...)
	s.add(report.Row{
		Name: "added to a request, p99", Unit: "ms", Goal: report.AtMost(3), Note: "difference of the two p99; each is as rough as the machine is busy",
	}, p99...)
	s.add(report.Row{Name: "GET at the API server, p50", Unit: "ms"}, server...)
	return nil
}

// holdRun starts a manager with one thread of Go, and returns the connection of
// one of its runs to the API server.
func (s *session) holdRun(ctx context.Context) (*rest.Config, error) {
	o, err := s.stubbed("proxy")
	if err != nil {
		return nil, err
	}
	o.Env = append(o.Env, "GOMAXPROCS=1")
	cr := harness.Custom(benchKind("Bench"), namespace, "held", map[string]any{"hold": true})
	cr.SetLabels(selected())
	if err := errors.Join(s.start(ctx, o, "Bench"), s.client.Create(ctx, cr)); err != nil {
		return nil, err
	}
	run := filepath.Join(s.manager.RunDir(), string(cr.GetUID()), "run")
	err = s.until(ctx, "a run is live", seldom, func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(run, held))
		return err == nil, nil
	})
	if err != nil {
		return nil, err
	}
	return clientcmd.BuildConfigFromFlags("", filepath.Join(run, "kubeconfig"))
}
