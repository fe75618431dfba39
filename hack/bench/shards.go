package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/hack/bench/report"
	"github.com/ensign-operator/ensign/test/harness"
)

const (
	shardLabel = "bench.ensign.io/shard"
	// shardRounds is how often each side changes all of its resources.
	shardRounds = 3
)

// shardsOf are the managers by the value of the label of their CRs: one alone, and two that share as
// many CRs; each may use one processor.
func shardsOf() map[string]int { return map[string]int{"alone": 0, "first": 0, "second": 1} }

// measureShards compares two shards with one, in turns: each has one processor, and a role that works
// mostly in Python, as roles do.
func measureShards(ctx context.Context, s *session) error {
	s.say("shards: booting a cluster; about 20 s")
	m := multitude{session: s, kind: benchKind("Bench"), namespace: "shards"}
	if err := s.boot(ctx, []schema.GroupKind{m.kind}); err != nil {
		return err
	}
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.namespace}}); err != nil {
		return err
	}
	half := max(1, s.settings.shardRuns/2)
	sides := [][]string{names("alone", 2*half), append(names("first", half), names("second", half)...)}
	for label, processor := range shardsOf() {
		if err := m.startShard(ctx, label, processor); err != nil {
			return err
		}
	}
	s.say("shards: creating 2 times %d resources; the first run of each", 2*half)
	for _, side := range sides {
		err := each(ctx, side, func(ctx context.Context, name string) error {
			cr := harness.Custom(m.kind, m.namespace, name, map[string]any{"size": int64(3)})
			cr.SetLabels(map[string]string{shardLabel: name[:len(name)-len("-00000")]})
			return s.client.Create(ctx, cr)
		})
		if err != nil {
			return err
		}
	}
	if err := m.upToDate(ctx); err != nil {
		return err
	}
	var took [2][]float64
	for round := range shardRounds {
		for i, side := range sides {
			s.say("shards: round %d of %d, %s", round+1, shardRounds, []string{"one shard", "two shards"}[i])
			began := time.Now()
			err := each(ctx, side, func(ctx context.Context, name string) error {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"changed":%d}}`, round))
				return s.client.Patch(ctx, harness.Custom(m.kind, m.namespace, name, nil), patch)
			})
			if err := errors.Join(err, m.upToDate(ctx)); err != nil {
				return err
			}
			took[i] = append(took[i], float64(2*half)/time.Since(began).Seconds())
		}
	}
	note := fmt.Sprintf("%d resources changed at once, warm runs; the API server and etcd run on the same machine, and take some of its processors", 2*half)
	s.add(report.Row{Name: "one shard on one processor", Unit: "runs/s", Note: note}, took[0]...)
	s.add(report.Row{Name: "two shards, each on one", Unit: "runs/s", Note: note}, took[1]...)
	s.add(report.Row{Name: "two shards / one", Goal: report.AtLeast(1.8)}.Ratio(took[1], took[0]))
	return nil
}

// startShard starts the manager of the CRs with a label, with all of its processes on one processor.
func (m multitude) startShard(ctx context.Context, label string, processor int) error {
	o := m.session.options("shard-"+label, "--max-concurrent-runs=2", "--max-concurrent-reconciles=2", "--watches-file=shards.yaml",
		"--leader-election-namespace="+m.namespace, "--leader-elect", "--leader-election-id=shards", "--watch-label-selector="+shardLabel+"="+label)
	o.Namespace, o.Env = m.namespace, []string{"ANSIBLE_GATHERING=explicit"}
	pinned := filepath.Join(m.dir, "pinned-"+label)
	script := fmt.Sprintf("#!/bin/sh\nexec taskset -c %d %s \"$@\"\n", processor, o.Binary)
	if err := os.WriteFile(pinned, []byte(script), 0o700); err != nil { //nolint:gosec // It is executed.
		return err
	}
	o.Binary = pinned
	return m.start(ctx, o, m.kind.Kind)
}
