//nolint:testableexamples // They need an API server: they are compiled, not run.
package ensign_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/examples/manifests"
	"github.com/ensign-operator/ensign/pkg/content"
	"github.com/ensign-operator/ensign/pkg/ensign"
)

// The blocks of docs/howto-go.md are here too, so that they compile.

var (
	memcached = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1", Kind: "Memcached"}
	backup    = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1", Kind: "Backup"}
)

const version = "1.4.0"

// backupReconciler stands for one that kubebuilder has scaffolded.
type backupReconciler struct{ client.Client }

func (r *backupReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func (r *backupReconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(r)
}

// A manager that reconciles the kinds of watches.yaml by charts and roles, and one kind in Go.
func Example() {
	mgr, err := ensign.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "cache"}, ensign.Options{Version: version})
	if err != nil {
		panic(err)
	}
	ctx := signals.SetupSignalHandler()
	list, err := mgr.LoadWatches(ctx, "watches.yaml")
	if err != nil {
		panic(err)
	}
	for _, watch := range list {
		if err := mgr.AddWatch(watch); err != nil {
			panic(err)
		}
	}
	if err := (&backupReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		panic(err)
	}
	if err := mgr.Start(ctx); err != nil {
		panic(err)
	}
}

// Watches that no file has.
func ExampleManager_AddWatch() {
	mgr, err := ensign.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}, ensign.Options{})
	if err != nil {
		panic(err)
	}
	err = mgr.AddWatch(ensign.Chart{Kind: memcached, Chart: "helm-charts/memcached"},
		ensign.OverrideValues(map[string]any{"image": map[string]any{"registry": os.Getenv("REGISTRY")}}),
		ensign.CodeVersion(version))
	if err != nil {
		panic(err)
	}
	err = mgr.AddWatch(ensign.Role{
		Kind: backup, Role: "backup",
		AnsibleSettings: ensign.AnsibleSettings{Finalizer: &ensign.Finalizer{Name: "cache.example.com/backup", Vars: map[string]any{"state": "absent"}}},
	})
	if err != nil {
		panic(err)
	}
}

// The values of a resource, of its spec and of another object.
func ExampleTranslateValues() {
	var mgr *ensign.Manager
	translate := ensign.TranslateValues(func(ctx context.Context, cr *unstructured.Unstructured, values map[string]any) (map[string]any, error) {
		size, _, _ := unstructured.NestedInt64(values, "size")
		if size < 1 {
			return nil, ensign.InvalidSpec(errors.New("spec.size: write 1 or more"))
		}
		settings := &corev1.ConfigMap{}
		if err := mgr.GetClient().Get(ctx, client.ObjectKey{Namespace: cr.GetNamespace(), Name: "cache-settings"}, settings); err != nil {
			return nil, err
		}
		return map[string]any{"replicaCount": size, "zone": settings.Data["zone"]}, nil
	})
	_ = translate
}

// What must hold before each run, and what is done after it.
func ExamplePreHook() {
	var tell func(name string, outcome content.Outcome) error
	var maintenance atomic.Bool
	hooks := []ensign.WatchOption{
		ensign.PreHook(func(_ context.Context, cr *unstructured.Unstructured, _ map[string]any) error {
			if maintenance.Load() && cr.GetDeletionTimestamp() == nil {
				return errors.New("waits for the end of the maintenance")
			}
			return nil
		}),
		ensign.PostHook(func(_ context.Context, cr *unstructured.Unstructured, outcome content.Outcome) error {
			return tell(cr.GetName(), outcome)
		}),
	}
	_ = hooks
}

// An annotation that changes values.
func ExampleAnnotation() {
	annotation := ensign.Annotation("cache.example.com/log-level", func(text string) (map[string]any, error) {
		if text != "debug" && text != "info" {
			return nil, fmt.Errorf("%q: write debug or info", text)
		}
		return map[string]any{"logLevel": text}, nil
	})
	_ = annotation
}

// Runs that other objects cause, and runs that wait.
func ExampleWatches() {
	var mgr *ensign.Manager
	ofNamespace := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, settings *corev1.ConfigMap) []reconcile.Request {
		if settings.Name != "cache-settings" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: settings.Namespace, Name: "main"}}}
	})
	triggers := []ensign.WatchOption{
		ensign.Watches(source.Kind(mgr.GetCache(), &corev1.ConfigMap{}, ofNamespace)),
		ensign.Paused(func(cr *unstructured.Unstructured) bool { return cr.GetLabels()["frozen"] == "yes" }),
	}
	_ = triggers
}

// A kind of content of the program's own: examples/manifests has its code.
func ExampleCustom() {
	var mgr *ensign.Manager
	engine, err := manifests.New(os.DirFS("manifests"), mgr.GetRESTMapper())
	if err != nil {
		panic(err)
	}
	if err := mgr.AddWatch(ensign.Custom{Kind: memcached, Engine: engine}, ensign.CodeVersion(version)); err != nil {
		panic(err)
	}
}

// The markers for a kind that is watched in Go, and the status of its type.
func Example_status() {
	// +kubebuilder:rbac:groups=shop.example.com,resources=menus,verbs=get;list;watch;patch
	// +kubebuilder:rbac:groups=shop.example.com,resources=menus/status,verbs=patch
	// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete

	type MenuStatus struct {
		content.Status `json:",inline"`

		// Dishes is of the engine: content.Result.Fields.
		Dishes int `json:"dishes,omitempty"`
	}
	_ = MenuStatus{}
}
