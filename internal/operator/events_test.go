package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// fakeEventSink is an events.EventSink that returns err.
type fakeEventSink struct {
	events.EventSink

	err error
}

func (a fakeEventSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	return e, a.err
}

func (a fakeEventSink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return e, a.err
}

func TestForbiddenEventsAreLoggedOnce(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		answer    error
		wantError bool // which client-go logs, for each Event
		wantLines int
	}{
		"written":                    {nil, false, 0},
		"forbidden":                  {apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("you may not")), false, 1},
		"the namespace is going":     {terminating, false, 0},
		"refused for another reason": {apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "", nil), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			sink := &eventSink{EventSink: fakeEventSink{err: test.answer}, log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
			for range 2 {
				_, created := sink.Create(t.Context(), &eventsv1.Event{})
				_, patched := sink.Patch(t.Context(), &eventsv1.Event{}, nil)
				if (created != nil) != test.wantError || (patched != nil) != test.wantError {
					t.Errorf("got %v and %v, want an error: %t", created, patched, test.wantError)
				}
			}
			if len(lines) != test.wantLines || len(lines) > 0 && !strings.Contains(lines[0], "you may not") {
				t.Errorf("want %d lines, got %q", test.wantLines, lines)
			}
		})
	}
}

// Of a manager that has ended nothing goes on. synctest fails if a goroutine does.
func TestARecorderOfEventsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, end, err := newRecorder(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), logr.Discard())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}
