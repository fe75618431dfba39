package informers

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
)

// listerWatcher lists and watches for an informer, and reports the results to it. client-go
// itself retries after some errors without calling its error handler.
type listerWatcher struct {
	informer *Informer
	client   dynamic.ResourceInterface
}

func (s *listerWatcher) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *listerWatcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.client.List(ctx, options)
	if err != nil {
		s.informer.requestFailed(ctx, err)
		return nil, err
	}
	// The informer needs a working watch too.
	return list, nil
}

func (s *listerWatcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.client.Watch(ctx, options)
	withInitialEvents := options.SendInitialEvents != nil
	switch {
	case err == nil:
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return nil, err // client-go lists again at once.
	case withInitialEvents && apierrors.IsInvalid(err):
		return nil, err // An older API server does not support this. client-go lists instead.
	case withInitialEvents:
		s.informer.requestFailed(ctx, err)
		// Between attempts after some errors client-go does not notice the end of the context.
		// After an error of an unknown type it does.
		return nil, untypedError{err.Error()}
	default:
		s.informer.requestFailed(ctx, err)
		return nil, err
	}
	s.informer.watchOpened()
	return &reportingWatch{stream, s.informer.watchClosed}, nil
}

// untypedError has the text of an API error without its type.
type untypedError struct{ text string }

func (e untypedError) Error() string { return e.text }

// reportingWatch is a watch that calls ended when its reader stops it, which the reader also does
// after the API server has ended the watch.
type reportingWatch struct {
	watch.Interface

	ended func()
}

// Stop implements watch.Interface.
func (o *reportingWatch) Stop() {
	o.ended()
	o.Interface.Stop()
}

// remedy returns the advice for an administrator about err.
func remedy(key Key, err error) string {
	resource := key.Resource.GroupResource().String()
	where := "a ClusterRole"
	if key.Namespace != "" {
		where = fmt.Sprintf("a Role in namespace %q, or a ClusterRole", key.Namespace)
	}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("give the manager's service account the verbs list and watch on %s by %s", resource, where)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the API server does not serve %s in version %s: install its CustomResourceDefinition or API service, if it is wanted", resource, key.Resource.Version)
	case apierrors.IsMethodNotSupported(err):
		return resource + " does not support list and watch, so the manager cannot see its changes"
	case apierrors.IsUnauthorized(err):
		return "look at the manager's credentials: the kubeconfig, or the token of its service account"
	default:
		return "see whether the API server works"
	}
}

// recoveringHandler is a handler whose panic loses one event and does not end the process.
type recoveringHandler struct {
	handler toolscache.ResourceEventHandler
	log     logr.Logger
}

func (g recoveringHandler) OnAdd(object any, initial bool) {
	defer g.recover()
	g.handler.OnAdd(object, initial)
}

func (g recoveringHandler) OnUpdate(before, after any) {
	defer g.recover()
	g.handler.OnUpdate(before, after)
}

func (g recoveringHandler) OnDelete(object any) {
	defer g.recover()
	g.handler.OnDelete(object)
}

func (g recoveringHandler) recover() {
	if r := recover(); r != nil {
		g.log.Error(fmt.Errorf("panic: %v", r), "panic while a change was handled; the event is lost", "stack", string(debug.Stack()))
	}
}
