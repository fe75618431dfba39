package runapi

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// NewRecorder returns a recorder of Events about CRs. It takes Events until end is called, because
// the last ones are recorded after ctx, the context of the signal, has ended. The recorder still
// writes the Events that it has taken by then.
func NewRecorder(ctx context.Context, restConfig *rest.Config, scheme *runtime.Scheme, log logr.Logger) (recorder events.EventRecorder, end func(), err error) {
	client, err := eventsclient.NewForConfig(restConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to write Events: %w", err)
	}
	core, err := coreclient.NewForConfig(restConfig)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare to write Events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&eventSink{EventSink: &events.EventSinkImpl{Interface: client}, core: core, log: log})
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(ctx), log))
	end = func() {
		broadcaster.Shutdown() // It passes on the Events that it has.
		cancel()
	}
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		end()
		return nil, nil, fmt.Errorf("begin to write Events: %w", err)
	}
	return broadcaster.NewRecorder(scheme, "ensign"), end, nil
}

// eventSink writes Events by the group events.k8s.io, and where the account may not, by the core
// group: older scaffolds grant that one. If the account may do neither, it logs that once. The
// broadcaster would log an error with the whole object for each Event.
type eventSink struct {
	events.EventSink

	core   coreclient.EventsGetter
	log    logr.Logger
	warned sync.Once
	// byCore has the namespaces in which the core group was the one that worked.
	byCore sync.Map
}

// write writes an Event in one of the two groups.
type write func(context.Context) (*eventsv1.Event, error)

// Create implements events.EventSink.
func (s *eventSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.write(ctx, "create", event,
		func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSink.Create(ctx, event) },
		func(ctx context.Context) (*eventsv1.Event, error) {
			_, err := s.core.Events(event.Namespace).Create(ctx, coreEvent(event), metav1.CreateOptions{})
			return event, err
		})
}

// Patch implements events.EventSink. The patch is about the series, which both groups have alike.
func (s *eventSink) Patch(ctx context.Context, event *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	return s.write(ctx, "patch", event,
		func(ctx context.Context) (*eventsv1.Event, error) { return s.EventSink.Patch(ctx, event, patch) },
		func(ctx context.Context) (*eventsv1.Event, error) {
			_, err := s.core.Events(event.Namespace).Patch(ctx, event.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			return event, err
		})
}

// write tries the group that worked last in the namespace, and then the other one.
func (s *eventSink) write(ctx context.Context, verb string, event *eventsv1.Event, newer, core write) (*eventsv1.Event, error) {
	ctx = context.WithoutCancel(ctx)
	_, coreWorked := s.byCore.Load(event.Namespace)
	first, second := newer, core
	if coreWorked {
		first, second = core, newer
	}
	written, err := first(ctx)
	if !lacksRight(err) {
		return s.handleTerminating(event, written, err)
	}
	written, other := second(ctx)
	if lacksRight(other) {
		s.warned.Do(func() {
			s.log.Info("WARNING: Events are not written: the account lacks create and patch of events, in the group events.k8s.io or in the core group, or something else forbids them; this is logged once",
				"verb", verb, "namespace", event.Namespace, "answer", err.Error(), "otherAnswer", other.Error())
		})
		return event, nil
	}
	if coreWorked {
		s.byCore.Delete(event.Namespace)
	} else {
		s.byCore.Store(event.Namespace, true)
	}
	return s.handleTerminating(event, written, other)
}

// lacksRight reports whether a request was forbidden, except for requests in a namespace that is
// being deleted.
func lacksRight(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (s *eventSink) handleTerminating(event, written *eventsv1.Event, err error) (*eventsv1.Event, error) {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return written, err
	}
	s.log.V(1).Info("an Event can't be written while its namespace goes", "namespace", event.Namespace)
	return event, nil
}

// coreEvent returns the Event as the core group has it. The API server stores both alike.
func coreEvent(e *eventsv1.Event) *corev1.Event {
	converted := &corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Related: e.Related, Reason: e.Reason, Action: e.Action, Type: e.Type, Message: e.Note,
		EventTime: e.EventTime, ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
		Source: e.DeprecatedSource, FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
	}
	if e.Series != nil {
		converted.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return converted
}
