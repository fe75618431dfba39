package runapi

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
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
)

// fakeEventSink is an events.EventSink that counts its calls and returns err.
type fakeEventSink struct {
	events.EventSink

	err   error
	calls *int
}

func (a fakeEventSink) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	*a.calls++
	return e, a.err
}

func (a fakeEventSink) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	*a.calls++
	return e, a.err
}

func TestForbiddenEventsAreLoggedOnce(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("you may not"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, "", nil)
	for name, test := range map[string]struct {
		answer, ofCore error // by the group events.k8s.io and by the core group
		wantError      bool  // which client-go logs, for each Event
		wantLines      int
		wantCalls      [2]int // of both groups, for four Events
	}{
		"written":                           {nil, forbidden, false, 0, [2]int{4, 0}},
		"forbidden":                         {forbidden, forbidden, false, 1, [2]int{4, 4}},
		"forbidden in one group alone":      {forbidden, nil, false, 0, [2]int{1, 4}},
		"forbidden there, and refused here": {forbidden, invalid, true, 0, [2]int{1, 4}},
		"forbidden there, and going":        {forbidden, terminating, false, 0, [2]int{1, 4}},
		"the namespace is going":            {terminating, forbidden, false, 0, [2]int{4, 0}},
		"refused for another reason":        {invalid, nil, true, 0, [2]int{4, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			var calls [2]int
			core := fake.NewClientset()
			core.PrependReactor("*", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				calls[1]++
				return true, &corev1.Event{}, test.ofCore
			})
			sink := &eventSink{EventSink: fakeEventSink{err: test.answer, calls: &calls[0]}, core: core.CoreV1(), log: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
			for range 2 {
				_, created := sink.Create(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}})
				_, patched := sink.Patch(t.Context(), &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, nil)
				if (created != nil) != test.wantError || (patched != nil) != test.wantError {
					t.Errorf("got %v and %v, want an error: %t", created, patched, test.wantError)
				}
			}
			if calls != test.wantCalls {
				t.Errorf("the groups were asked %v times, want %v", calls, test.wantCalls)
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
		_, end, err := NewRecorder(ctx, &rest.Config{Host: "http://127.0.0.1:1"}, runtime.NewScheme(), logr.Discard())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		end()
	})
}
