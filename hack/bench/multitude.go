package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ensign-operator/ensign/test/harness"
)

// load is the manager's work since its start.
type load struct {
	cpu                              time.Duration
	requests, reconciled, runs, warm float64
}

func (m multitude) sample(ctx context.Context) (l load, err error) {
	metrics, err := m.manager.Metrics(ctx)
	if err != nil {
		return l, err
	}
	l.requests, l.reconciled = sumOf(metrics, "rest_client_requests_total"), sumOf(metrics, "controller_runtime_reconcile_total")
	l.runs = sumOf(metrics, "ansible_operator_runs_total")
	l.warm = float64(launchesOf(metrics, 1).Warm)
	l.cpu, err = treeTime(m.manager.PID())
	return l, err
}

// sumOf adds the values of a metric with any labels.
func sumOf(metrics, name string) (sum float64) {
	for _, match := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(metrics, -1) {
		value, _ := strconv.ParseFloat(match[1], 64) // It is a number.
		sum += value
	}
	return sum
}

// sizeOf counts files and directories, and the bytes that they take on the disk.
func sizeOf(dir string) (files, bytes float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += 512 * float64(stat.Blocks)
		}
		files++
		return nil
	})
	return files, bytes, err
}

// upToDate waits until the status of each CR says that a run for it as it is has succeeded.
func (m multitude) upToDate(ctx context.Context) error {
	for {
		list := listOf(m.kind)
		if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
			return fmt.Errorf("list %s: %w", m.kind.Kind, err)
		}
		pending := sets.New[string]()
		for i := range list.Items {
			if done, err := succeeded(&list.Items[i]); err != nil {
				return err
			} else if !done {
				pending.Insert(list.Items[i].GetName())
			}
		}
		if len(pending) == 0 {
			return nil
		}
		if err := m.follow(ctx, list, pending); err != nil || len(pending) == 0 {
			return err
		}
	}
}

// follow watches CRs until none is pending, or until the API server ends the watch.
func (m multitude) follow(ctx context.Context, list *unstructured.UnstructuredList, pending sets.Set[string]) error {
	w, err := m.client.Watch(ctx, list, &client.ListOptions{
		Namespace: m.namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", m.kind.Kind, err)
	}
	_, err = watchtools.UntilWithoutRetry(ctx, w, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return false, watchtools.ErrWatchClosed
		}
		done, err := succeeded(object)
		if done {
			pending.Delete(object.GetName())
		}
		return len(pending) == 0, err
	})
	if errors.Is(err, watchtools.ErrWatchClosed) {
		return nil
	}
	return err
}

// succeeded reports whether a run for the CR as it is has. A run that has failed is an error.
func succeeded(cr *unstructured.Unstructured) (bool, error) {
	if failure := harness.ConditionOf(cr, "Failure"); failure.Status == "True" {
		return false, fmt.Errorf("%s: %s: %s", cr.GetName(), failure.Reason, failure.Message)
	}
	observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
	return observed == cr.GetGeneration() && harness.ConditionOf(cr, "Running").Reason == "Successful", nil
}
