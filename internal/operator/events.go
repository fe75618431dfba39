package operator

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// newRecorder returns a recorder of Events about CRs. It takes Events until end is called, because
// the last ones are recorded after ctx, the context of the signal, has ended. What it has taken by
// then is still written.
func newRecorder(ctx context.Context, restConfig *rest.Config, scheme *runtime.Scheme, log logr.Logger) (recorder events.EventRecorder, end func(), err error) {
	client, err := eventsclient.NewForConfig(restConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to write Events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&eventSink{EventSink: &events.EventSinkImpl{Interface: client}, log: log})
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), log))
	end = func() {
		broadcaster.Shutdown() // It passes on what it has.
		cancel()
	}
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("begin to write Events: %w", err)
	}
	return broadcaster.NewRecorder(scheme, "ensign"), end, nil
}

// eventSink writes Events. If the account may not write them, it logs that once. The
// broadcaster would log an error with the whole object for each Event.
type eventSink struct {
	events.EventSink

	log    logr.Logger
	warned sync.Once
}

// Create implements events.EventSink.
func (s *eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	written, err := s.EventSink.Create(context.WithoutCancel(ctx), event)
	return s.handleForbidden(event, written, err)
}

// Patch implements events.EventSink.
func (s *eventSink) Patch(ctx context.Context, event *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	written, err := s.EventSink.Patch(context.WithoutCancel(ctx), event, patch)
	return s.handleForbidden(event, written, err)
}

func (s *eventSink) handleForbidden(event, written *eventsv1.Event, err error) (*eventsv1.Event, error) {
	switch {
	case !apierrors.IsForbidden(err):
		return written, err
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause): // No right is missing.
		s.log.V(1).Info("an Event can't be written while its namespace goes", "namespace", event.Namespace)
	default:
		s.warned.Do(func() {
			s.log.Info("WARNING: Events are not written: the account lacks create and patch of events in the group events.k8s.io, or something else forbids them; this is said once", "answer", err.Error())
		})
	}
	return event, nil
}
