package fleet

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls show for each CR that is not as rows, which Look returned, have it, and then
// for each change, until the context ends. It is called once at a time. Targets that the
// cluster does not serve are left out by the caller.
func (v View) Follow(ctx context.Context, rows []Row, show func(Row)) {
	shown := map[types.UID]Row{}
	for _, row := range rows {
		shown[row.uid] = row.timeless()
	}
	var mu sync.Mutex
	changed := func(row Row) {
		mu.Lock()
		defer mu.Unlock()
		if shown[row.uid] != row.timeless() {
			shown[row.uid] = row.timeless()
			show(row)
		}
	}
	var following sync.WaitGroup
	for _, target := range v.Targets {
		for _, namespace := range v.namespaces() {
			following.Go(func() { v.follow(ctx, target, namespace, changed) })
		}
	}
	following.Wait()
}

// timeless returns the row without the fields that change in a run that ends like the one before.
func (r Row) timeless() Row {
	r.LastRun, r.NextRun = nil, nil
	return r
}

func (v View) follow(ctx context.Context, target Target, namespace string, changed func(Row)) {
	always := func(event watch.Event) (bool, error) {
		if cr, ok := event.Object.(*unstructured.Unstructured); ok {
			row := RowOf(target.Kind, v.Period, cr)
			if event.Type == watch.Deleted {
				row.Ready, row.Outcome, row.Reason, row.Message, row.Failed = "", Deleted, "", "", false
			}
			changed(row)
		}
		return false, nil
	}
	_, _ = watchtools.UntilWithSync(ctx, listWatch(v.Client, target, namespace), &unstructured.Unstructured{}, nil, always) // It ends with the context.
}

// listWatch lists and watches the CRs of a target.
func listWatch(c client.WithWatch, target Target, namespace string) *cache.ListWatch {
	with := func(options metav1.ListOptions) []client.ListOption {
		return append([]client.ListOption{&client.ListOptions{Raw: &options}}, target.options(namespace)...)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := listOf(target)
			err := c.List(ctx, list, with(options)...)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, listOf(target), with(options)...)
		},
	}
}
