package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "default"
	// resourceSize is that of a custom resource as it is sent, in bytes.
	resourceSize = 2 << 10
	// writers are how many requests are under way at once.
	writers = 8
	// definedLimit and reportedLimit are far beyond what it takes.
	definedLimit  = time.Minute
	reportedLimit = 5 * time.Minute
	// runLabel is what the watch selects by.
	runLabel = `{"metadata":{"labels":{"bench.ensign.io/run":"yes"}}}`
)

func benchKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "bench.ensign.io", Version: "v1", Kind: "Bench"}
}

// resources are the custom resources in the cluster.
type resources struct{ client client.Client }

// newResources defines their kind and waits until it is served.
func newResources(ctx context.Context, config *rest.Config, definition string) (*resources, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	text, err := os.ReadFile(definition)
	if err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &crd.Object); err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	if err := c.Create(ctx, crd); err != nil {
		return nil, fmt.Errorf("define the kind: %w", err)
	}
	r := &resources{client: c}
	var last error
	served := func(ctx context.Context) (bool, error) {
		_, last = r.list(ctx)
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, definedLimit, true, served); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the kind to be served: %w", err), last)
	}
	return r, nil
}

func (r *resources) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(benchKind())
	if err := r.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list the custom resources: %w", err)
	}
	return list.Items, nil
}

// create makes n resources, of which the first can be run.
func (r *resources) create(ctx context.Context, n, runnable int) error {
	return parallel(ctx, 0, n, func(ctx context.Context, i int) error {
		object, err := resource(i, i < runnable)
		if err != nil {
			return err
		}
		if err := r.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create %s: %w", object.GetName(), err)
		}
		return nil
	})
}

// label makes the watch's selector match the resources from and up to, but
// without, two numbers.
func (r *resources) label(ctx context.Context, from, to int) error {
	return parallel(ctx, from, to, func(ctx context.Context, i int) error {
		object := identity(i)
		if err := r.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(runLabel))); err != nil {
			return fmt.Errorf("label %s: %w", object.GetName(), err)
		}
		return nil
	})
}

// await waits until the condition is True on so many resources.
func (r *resources) await(ctx context.Context, condition string, n int) error {
	reported := 0
	all := func(ctx context.Context) (bool, error) {
		items, err := r.list(ctx)
		if err != nil {
			return false, err
		}
		reported = 0
		for _, item := range items {
			if holds(item.Object, condition) {
				reported++
			}
		}
		return reported == n, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, reportedLimit, true, all); err != nil {
		return fmt.Errorf("wait for condition %s on %d resources, %d have it: %w", condition, n, reported, err)
	}
	return nil
}

// holds reports whether an object's condition is True.
func holds(object map[string]any, condition string) bool {
	conditions, _, err := unstructured.NestedSlice(object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, item := range conditions {
		c, ok := item.(map[string]any)
		if ok && c["type"] == condition {
			return c["status"] == "True"
		}
	}
	return false
}

func identity(i int) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(benchKind())
	object.SetNamespace(namespace)
	object.SetName(fmt.Sprintf("bench-%05d", i))
	return object
}

// resource is one of resourceSize. One that can't be run has a variable that no
// custom resource may set.
func resource(i int, runnable bool) (*unstructured.Unstructured, error) {
	object := identity(i)
	settings := map[string]any{}
	spec := map[string]any{"size": int64(3), "benchSettings": settings}
	if !runnable {
		spec["ansible_connection"] = "local"
	}
	object.Object["spec"] = spec
	for field := 0; ; field++ {
		name := fmt.Sprintf("field%02d", field)
		settings[name] = ""
		encoded, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("encode a resource: %w", err)
		}
		missing := resourceSize - len(encoded)
		if missing <= 64 {
			settings[name] = strings.Repeat("x", max(0, missing))
			return object, nil
		}
		settings[name] = strings.Repeat("x", 32)
	}
}

// parallel calls f with each number from and up to, but without, to.
func parallel(ctx context.Context, from, to int, f func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := from; i < to; i++ {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}
