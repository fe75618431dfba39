package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ensign-operator/ensign/internal/suggest"
	"github.com/ensign-operator/ensign/internal/watches"
)

const (
	// discoveryInterval is how often the API server is asked whether it still serves the kind.
	discoveryInterval = 30 * time.Second
	// maxAPIBackoff caps the pause after errors of the API server. It is short, because the CR does
	// not cause such an error: work goes on soon after the API server answers again.
	maxAPIBackoff = 10 * time.Second
	// logMissingInterval is how often the log says that a kind is still missing.
	logMissingInterval = time.Minute
	// syncInterval is how often a cache that is being filled is asked whether it is full.
	syncInterval = 50 * time.Millisecond
)

// Supervisor runs the controller of one watch while its kind is served. If the kind is
// missing, at the start or later, it asks again and again; other watches are not affected.
// It is a manager.Runnable and waits for leadership.
type Supervisor struct {
	// NewReconciler makes the reconciler for the time in which the kind is served; noStatus
	// is true if the kind has no status subresource.
	NewReconciler func(noStatus bool) *Reconciler
	GVK           schema.GroupVersionKind
	Cache         cache.Cache
	Discovery     Discovery
	// OpenAPI returns the schemas of a group's version; nil if they are not available.
	OpenAPI                 func(schema.GroupVersion) (*spec3.OpenAPI, error)
	MaxConcurrentReconciles int
	// Sources are further sources of events, whose requests name CRs that are to run again.
	Sources []Source
	Logger  logr.Logger
	// Recorded returns the CRs, with their UIDs, of which the content has records that do not go with
	// them; nil for content that has none.
	Recorded func(context.Context) (map[types.NamespacedName]types.UID, error)
	// Ready is called when the controller begins and stops to work.
	Ready func(gvk schema.GroupVersionKind, ready bool)

	// unready is why the controller does not work although its kind is served; nil if it
	// works, or if the kind is not served.
	unready atomic.Pointer[error]
	// reconciler is the current one; nil if there is none.
	reconciler atomic.Pointer[Reconciler]
}

// Resources returns how many CRs are in each phase; nil while the controller does not work.
func (s *Supervisor) Resources() map[Phase]int {
	if r := s.reconciler.Load(); r != nil {
		return r.Resources()
	}
	return nil
}

// Check is a readiness check: it fails while the kind is served and its cache is not
// filled. If the kind is missing, or this replica does not lead, it passes.
func (s *Supervisor) Check(*http.Request) error {
	if reason := s.unready.Load(); reason != nil {
		return *reason
	}
	return nil
}

// setUnready sets why the controller does not work.
func (s *Supervisor) setUnready(reason error) { s.unready.Store(&reason) }

// Start runs until ctx ends.
func (s *Supervisor) Start(ctx context.Context) error {
	pause := newPause()
	for ctx.Err() == nil {
		kind, ok := s.awaitKind(ctx)
		if !ok {
			break
		}
		err := s.serve(ctx, kind)
		s.Ready(s.GVK, false)
		if err != nil && ctx.Err() == nil {
			s.setUnready(fmt.Errorf("the controller of %s stopped and is started again: %w", s.GVK, err))
			s.Logger.Error(err, "the controller stopped; it is started again")
			sleep(ctx, pause.Step())
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serve runs the controller until the kind is gone or ctx ends, and then removes its
// informer.
func (s *Supervisor) serve(ctx context.Context, kind servedKind) error {
	reconciler := s.NewReconciler(!kind.hasStatus)
	if !kind.hasStatus && reconciler.Watch.ManageStatus {
		s.Logger.Info("the kind has no status subresource: runs go on, but no conditions are written", "gvk", s.GVK.String())
	}
	c, err := s.newController(reconciler, kind)
	if err != nil {
		return err
	}
	s.reconciler.Store(reconciler)
	defer s.reconciler.Store(nil)
	ctx, cancel := s.whileServed(log.IntoContext(ctx, s.Logger))
	defer cancel(nil)
	s.setUnready(fmt.Errorf("the cache of %s is not filled yet; if this lasts, the account may lack the verbs list or watch for the kind: the log has the API server's answer", s.GVK))
	go s.awaitSync(ctx)
	go s.warnOfPaths(ctx, reconciler.Watch.References)
	err = c.Start(ctx)
	if removeErr := s.Cache.RemoveInformer(context.WithoutCancel(ctx), s.object()); removeErr != nil {
		s.Logger.Error(removeErr, "could not remove the informer of the kind")
	}
	return err
}

// whileServed returns a context that ends when the kind is no longer served: the CRs are gone then, and
// their runs are not wanted any more, also those that could outlive the manager.
func (s *Supervisor) whileServed(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		s.awaitRemoval(ctx)
		cancel(errGone)
	}()
	return ctx, cancel
}

func (s *Supervisor) newController(r *Reconciler, kind servedKind) (controller.TypedController[reconcile.Request], error) {
	skipNames := true // A kind that comes back gets a controller of the same name.
	c, err := controller.NewTypedUnmanaged(strings.ToLower(s.GVK.Kind+"."+s.GVK.Group), controller.TypedOptions[reconcile.Request]{
		Reconciler:              r,
		MaxConcurrentReconciles: s.MaxConcurrentReconciles,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstBackoff, maxAPIBackoff),
		SkipNameValidation:      &skipNames,
		LogConstructor: func(req *reconcile.Request) logr.Logger {
			if req == nil {
				return s.Logger
			}
			return s.Logger.WithValues("object", strings.TrimPrefix(req.String(), "/"))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the controller of %s: %w", s.GVK, err)
	}
	err = c.Watch(source.Kind(singleKindCache{s.Cache}, s.object(), &handler{watch: &r.Watch, states: &r.states, related: r.Related, writers: r.Writers}, triggers(&r.Watch)))
	if err == nil && r.Related != nil {
		err = c.Watch(relatedSource{s, r, kind})
	}
	if err == nil && s.Recorded != nil {
		err = c.Watch(recordedSource{s, r})
	}
	for _, one := range s.Sources {
		err = errors.Join(err, c.Watch(authoredSource{s, r, one}))
	}
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.GVK, err)
	}
	return c, nil
}

// singleKindCache makes a source wait for its own kind only. Otherwise a source waits for all kinds
// of the cache, and a kind that cannot be listed would stop all watches. The source still waits
// until its handler has received all objects of its kind in the cache.
type singleKindCache struct{ cache.Cache }

// WaitForCacheSync implements cache.Cache.
func (singleKindCache) WaitForCacheSync(context.Context) bool { return true }

// awaitSync waits until the kind's cache is filled, and reports it.
func (s *Supervisor) awaitSync(ctx context.Context) {
	synced, err := s.synced(ctx)
	if err != nil {
		return // The controller's own start meets the same error and reports it.
	}
	if wait.PollUntilContextCancel(ctx, syncInterval, true, synced) == nil {
		s.unready.Store(nil)
		s.Ready(s.GVK, true)
		s.Logger.Info("watching", "gvk", s.GVK.String())
	}
}

// synced returns a condition that is true once the cache of the watched kind is filled.
func (s *Supervisor) synced(ctx context.Context) (wait.ConditionWithContextFunc, error) {
	informer, err := s.Cache.GetInformer(ctx, s.object(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", s.GVK, err)
	}
	return func(context.Context) (bool, error) { return informer.HasSynced(), nil }, nil
}

// object returns an empty object of the watched kind.
func (s *Supervisor) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(s.GVK)
	return object
}

// newPause returns pauses that grow from 1 s to discoveryInterval.
func newPause() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 30, Cap: discoveryInterval}
}

// Discovery returns the resources that the API server serves.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	// ServerGroupsAndResources may return a part of the lists together with an error.
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// servedKind is the kind as discovery shows it.
type servedKind struct {
	found      bool
	hasStatus  bool
	namespaced bool
}

func (s *Supervisor) discover() (servedKind, error) {
	list, err := s.Discovery.ServerResourcesForGroupVersion(s.GVK.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return servedKind{}, nil
	}
	if err != nil {
		return servedKind{}, fmt.Errorf("ask the API server for %s: %w", s.GVK.GroupVersion(), err)
	}
	var kind servedKind
	for _, resource := range list.APIResources {
		if resource.Kind == s.GVK.Kind {
			kind.found = kind.found || !strings.Contains(resource.Name, "/")
			kind.namespaced = resource.Namespaced
			kind.hasStatus = kind.hasStatus || strings.HasSuffix(resource.Name, "/status")
		}
	}
	return kind, nil
}

// awaitKind blocks until the kind is served. It asks with ever longer pauses, and returns
// false if ctx ends first.
func (s *Supervisor) awaitKind(ctx context.Context) (servedKind, bool) {
	var reminded time.Time
	pause := newPause()
	for {
		kind, err := s.discover()
		if kind.found {
			return kind, true
		}
		if err == nil {
			s.unready.Store(nil) // There is nothing to watch.
		}
		if time.Since(reminded) >= logMissingInterval {
			reminded = time.Now()
			s.logMissing(err)
		}
		if sleep(ctx, pause.Step()); ctx.Err() != nil {
			return servedKind{}, false
		}
	}
}

// awaitRemoval returns when the API server answers that it does not serve the kind any
// more. An API server that does not answer proves nothing.
func (s *Supervisor) awaitRemoval(ctx context.Context) {
	gone := func(context.Context) (bool, error) {
		kind, err := s.discover()
		return err == nil && !kind.found, nil
	}
	if wait.PollUntilContextCancel(ctx, discoveryInterval, false, gone) == nil {
		s.Logger.Info("the watched kind is no longer served; its controller stops", "gvk", s.GVK.String())
	}
}

// logMissing logs that the kind is not served, or why that is unknown.
func (s *Supervisor) logMissing(err error) {
	if err != nil {
		s.Logger.Info("could not look up the watched kind; retrying. Other kinds are not affected", "gvk", s.GVK.String(), "error", err.Error())
		return
	}
	values := []any{"gvk", s.GVK.String()}
	_, served, _ := s.Discovery.ServerGroupsAndResources() // A group that cannot be read has no candidates.
	if instead := servedInstead(s.GVK.GroupKind(), served); instead != nil {
		values = append(values, "servedInstead", instead)
	}
	s.Logger.Info("WARNING: the watched kind is not served; its CRD may be missing. Other kinds are not affected", values...)
}

// servedInstead returns the kinds that a watch may have meant whose kind is not served. They are
// the same kind in other versions, or else the kind with the nearest name, as "demo.example.com/v1,
// Kind=Greeting"; nil if there is none.
func servedInstead(wanted schema.GroupKind, served []*metav1.APIResourceList) []string {
	found := map[string][]string{}
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				gvk := gv.WithKind(resource.Kind)
				found[gvk.GroupKind().String()] = append(found[gvk.GroupKind().String()], gvk.String())
			}
		}
	}
	if same := found[wanted.String()]; same != nil {
		return same
	}
	return found[suggest.Closest(wanted.String(), slices.Sorted(maps.Keys(found)))]
}

// warnOfPaths logs the paths of references that lead nowhere in any object of the kind,
// as far as its schema says. A new kind is served before its schema is.
func (s *Supervisor) warnOfPaths(ctx context.Context, references []watches.Reference) {
	if s.OpenAPI == nil || len(references) == 0 {
		return
	}
	var document *spec3.OpenAPI
	published := func(context.Context) (bool, error) {
		var err error
		document, err = s.OpenAPI(s.GVK.GroupVersion())
		return err == nil && schemaOf(document, s.GVK) != nil, nil
	}
	if wait.PollUntilContextTimeout(ctx, 2*time.Second, time.Minute, true, published) != nil {
		s.Logger.V(1).Info("the paths of references are not checked: the kind's schema can't be read", "gvk", s.GVK.String())
		return
	}
	for _, reference := range references {
		for _, path := range []watches.Path{reference.Name, reference.Namespace} {
			if field := unknownField(document, s.GVK, path); field != "" {
				s.Logger.Info("WARNING: a path of references leads to a field that the kind's schema does not have", "gvk", s.GVK.String(), "path", path.String(), "field", field)
			}
		}
	}
}

// unknownField returns the beginning of the path up to the first field that the kind's
// schema does not have; "" if all fields of the path may exist.
func unknownField(document *spec3.OpenAPI, gvk schema.GroupVersionKind, path watches.Path) string {
	at := schemaOf(document, gvk)
	for i, field := range path {
		at = resolved(document, at)
		if at == nil {
			return ""
		}
		next, absent := fieldSchema(at, field)
		if absent {
			return path[:i+1].String()
		}
		at = next
	}
	return ""
}

// fieldSchema returns the schema of a field, or of a list's elements: nil if nothing is known
// of it. absent is true if the schema excludes the field.
func fieldSchema(at *spec.Schema, field string) (next *spec.Schema, absent bool) {
	is := func(extension string) bool { on, _ := at.Extensions.GetBool(extension); return on }
	property, known := at.Properties[field]
	switch {
	case known:
		return &property, false
	case is("x-kubernetes-preserve-unknown-fields"), is("x-kubernetes-embedded-resource"), is("x-kubernetes-int-or-string"):
		return nil, false
	case len(at.Type) == 0:
		return nil, false
	case field == watches.EachElement && at.Items != nil:
		return at.Items.Schema, false
	case field == watches.EachElement:
		return nil, !slices.Contains(at.Type, "array")
	case at.AdditionalProperties != nil:
		return at.AdditionalProperties.Schema, !at.AdditionalProperties.Allows
	default: // An object of which no field is known may have any.
		return nil, len(at.Properties) > 0 || !slices.Contains(at.Type, "object")
	}
}

// schemaOf returns the schema of a kind, nil where the document has none.
func schemaOf(document *spec3.OpenAPI, gvk schema.GroupVersionKind) *spec.Schema {
	if document.Components == nil {
		return nil
	}
	for _, candidate := range document.Components.Schemas {
		kinds, _ := candidate.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, item := range kinds {
			kind, _ := item.(map[string]any)
			if kind["group"] == gvk.Group && kind["version"] == gvk.Version && kind["kind"] == gvk.Kind {
				return candidate
			}
		}
	}
	return nil
}

// resolved follows a reference to a schema of its own, as that of metadata is.
func resolved(document *spec3.OpenAPI, at *spec.Schema) *spec.Schema {
	for at != nil && len(at.AllOf) == 1 {
		at = &at.AllOf[0]
	}
	if at == nil || at.Ref.String() == "" {
		return at
	}
	return document.Components.Schemas[strings.TrimPrefix(at.Ref.String(), "#/components/schemas/")]
}
