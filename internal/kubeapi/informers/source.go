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

// source lists and watches for an informer, and tells it how that went. client-go
// itself retries some errors without a word.
type source struct {
	informer *Informer
	client   dynamic.ResourceInterface
}

func (s *source) listWatch() *toolscache.ListWatch {
	return &toolscache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.client.List(ctx, options)
	if err != nil {
		s.informer.failed(ctx, err)
		return nil, err
	}
	// Whether the kind can be followed shows when it is watched.
	return list, nil
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.client.Watch(ctx, options)
	first := options.SendInitialEvents != nil
	switch {
	case err == nil:
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return nil, err // A list follows at once.
	case first && apierrors.IsInvalid(err):
		return nil, err // An older API server, which can't begin a watch with what is there. A list follows.
	case first:
		s.informer.failed(ctx, err)
		// client-go would wait between some of these attempts without looking at the
		// context. It does look after an error that it does not know.
		return nil, unknownError{err.Error()}
	default:
		s.informer.failed(ctx, err)
		return nil, err
	}
	s.informer.opened()
	return &observed{stream, s.informer.closed}, nil
}

// unknownError is an error without its kind.
type unknownError struct{ text string }

func (e unknownError) Error() string { return e.text }

// observed is a watch that tells of its end: who reads it stops it then.
type observed struct {
	watch.Interface

	ended func()
}

// Stop implements watch.Interface.
func (o *observed) Stop() {
	o.ended()
	o.Interface.Stop()
}

// remedy says what somebody can do about err.
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
		return resource + " can't be listed and watched; nothing can be done about it"
	case apierrors.IsUnauthorized(err):
		return "look at the manager's credentials: the kubeconfig, or the token of its service account"
	default:
		return "see whether the API server works"
	}
}

// guarded is a handler whose panics cost one event and not the process.
type guarded struct {
	handler toolscache.ResourceEventHandler
	log     logr.Logger
}

func (g guarded) OnAdd(object any, initial bool) {
	defer g.recover()
	g.handler.OnAdd(object, initial)
}

func (g guarded) OnUpdate(before, after any) {
	defer g.recover()
	g.handler.OnUpdate(before, after)
}

func (g guarded) OnDelete(object any) {
	defer g.recover()
	g.handler.OnDelete(object)
}

func (g guarded) recover() {
	if r := recover(); r != nil {
		g.log.Error(fmt.Errorf("panic: %v", r), "could not take note of a change; the event is lost", "stack", string(debug.Stack()))
	}
}
